//go:build cgo

package vulkan

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

var lostResult = &vkx.Result{Call: "vkQueueSubmit", Code: vk.ErrorDeviceLost}

// requireLost checks that everything but closing fails, with the first loss.
func requireLost(t *testing.T, b *Backend, s backend.Store, e backend.Executable, first error) {
	t.Helper()
	var lost *DeviceLostError
	require.ErrorAs(t, first, &lost)
	require.Equal(t, b.Info().Name, lost.Device)
	require.Equal(t, vk.ErrorDeviceLost, vkx.Code(first))
	_, err := e.Submit()
	require.ErrorIs(t, err, lost)
	require.ErrorIs(t, e.Feed("x", make([]byte, 16)), lost)
	require.ErrorIs(t, s.Read("acc", make([]byte, 16)), lost)
	_, err = b.NewStore(nil)
	require.ErrorIs(t, err, lost)
}

func TestDeviceLostAtSubmit(t *testing.T) {
	b := openArith(t, Options{SubmitLimit: 1}) // every node is a submission of its own
	p := chain(4, 3)
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	require.NoError(t, e.Feed("x", repeated(1, 4)))
	real, calls := b.submit, 0
	b.submit = func(cb vk.CommandBuffer, fence vk.Fence) error {
		if calls++; calls == 3 {
			return lostResult
		}
		return real(cb, fence)
	}
	_, err := e.Submit()
	require.ErrorContains(t, err, "program chain, node 2 of 7: %zero = fill()")
	requireLost(t, b, s, e, err)
}

func TestDeviceLostWhileRunning(t *testing.T) {
	b := openArith(t, Options{})
	p := chain(4, 3)
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	require.NoError(t, e.Feed("x", repeated(1, 4)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	b.await = func(fences []vk.Fence) error {
		require.NoError(t, b.waitForFences(fences)) // the device is well: only what it says is not
		return lostResult
	}
	err = e.Fetch(ticket, "sum", make([]byte, 16))
	require.ErrorContains(t, err, "program chain, nodes 0 to 6 of 7: %one = fill() Value=1 ... %acc = add(%acc, ")
	requireLost(t, b, s, e, err)
}

func TestDeviceLostInATransfer(t *testing.T) {
	b := openArith(t, Options{})
	p := chain(4, 3)
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	b.submit = func(vk.CommandBuffer, vk.Fence) error { return lostResult }
	err := s.Write("acc", make([]byte, 16))
	require.ErrorContains(t, err, `writing variable "acc"`)
	requireLost(t, b, s, e, err)
}

// Another failure of a submission is told once, and does not end the backend.
func TestFailedSubmission(t *testing.T) {
	b := openArith(t, Options{})
	p := chain(4, 0)
	e := compile(t, b, p, newStore(t, b, p))
	require.NoError(t, e.Feed("x", repeated(1, 4)))
	real := b.submit
	b.submit = func(vk.CommandBuffer, vk.Fence) error {
		return &vkx.Result{Call: "vkQueueSubmit", Code: vk.ErrorOutOfHostMemory}
	}
	_, err := e.Submit()
	require.ErrorContains(t, err, "vkQueueSubmit: out of host memory")
	require.ErrorContains(t, e.Fetch(1, "sum", make([]byte, 16)), "out of host memory")
	b.submit = real
	for range 2 {
		ticket, err := e.Submit()
		require.NoError(t, err)
		fetch(t, e, ticket, "sum", 16)
	}
}

func TestNoDriver(t *testing.T) {
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none.json"))
	}
	_, err := Open(Options{Software: true})
	require.ErrorIs(t, err, ErrNoDevice)
	_, err = Devices()
	require.ErrorIs(t, err, ErrNoDevice)
}

func TestAbsentDevice(t *testing.T) {
	openTest(t, Options{}) // there is Vulkan, or this skips
	_, err := Open(Options{Device: "99"})
	require.ErrorIs(t, err, ErrNoDevice)
	require.ErrorContains(t, err, `"99"`)
}

func TestOutOfMemoryIsKnownBefore(t *testing.T) {
	narrow := func(bytes int64) func(*DeviceInfo) {
		return func(d *DeviceInfo) {
			for i := range d.Heaps {
				d.Heaps[i].Bytes = bytes
			}
			d.Features.MemoryBudget = false
			d.Limits.AllocBytes = 1 << 19
		}
	}
	b := openArith(t, Options{tweak: narrow(1 << 20)})
	_, err := b.NewStore([]graph.Var{{Name: "a", Shape: graph.Shape{1 << 17}}, {Name: "b", Shape: graph.Shape{1 << 17}}, {Name: "c", Shape: graph.Shape{1}}})
	var m *MemoryError
	require.ErrorAs(t, err, &m)
	require.EqualValues(t, 1<<20+256, m.Need)
	require.EqualValues(t, 1<<20, m.Available)
	require.Zero(t, b.memory.heaps[0], "nothing was allocated")

	g := graph.NewBuilder()
	x := g.Fill(g.Temp("x", graph.F32, 1<<17), 1)
	y := g.Add(x, x, nil)
	g.Output("z", g.Add(y, y, nil))
	p := g.Build("arena")
	_, err = b.Compile(p, newStore(t, b, p))
	require.ErrorAs(t, err, &m)
	slots := int64(0) // of the output, where the host reads it in the same memory
	if b.physical.Unified {
		slots = numSlots << 19
	}
	require.EqualValues(t, 1<<20+slots, m.Need)
	b = openArith(t, Options{tweak: narrow(4 << 20)})
	_, err = b.NewStore([]graph.Var{{Name: "a", Shape: graph.Shape{1<<17 + 1}}})
	require.ErrorAs(t, err, &m)
	require.EqualValues(t, 1<<19+4, m.Need)
	require.Contains(t, m.Error(), "largest single allocation")
	g = graph.NewBuilder()
	x = g.Fill(g.Temp("x", graph.F32, 1<<17+1), 1)
	g.Output("y", g.Add(x, x, nil))
	p = g.Build("large")
	_, err = b.Compile(p, newStore(t, b, p))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, `tensor "x" has 524292 bytes, one allocation at most 524288 (maxMemoryAllocationSize)`)
	small := chain(100, 1)
	compile(t, b, small, newStore(t, b, small)) // there is still room for others
}

// The driver itself runs out: the error says what was wanted, and what was taken so far comes back.
func TestDriverOutOfMemory(t *testing.T) {
	b := openArith(t, Options{tweak: func(d *DeviceInfo) {
		d.Features.MemoryBudget = false
		d.Limits.AllocBytes = math.MaxInt64 / 2
		d.Limits.BindBytes = math.MaxInt64 / 2
		for i := range d.Heaps {
			d.Heaps[i].Bytes = math.MaxInt64 / 2
		}
	}})
	_, err := b.NewStore([]graph.Var{{Name: "small", Shape: graph.Shape{4}}, {Name: "huge", Shape: graph.Shape{1 << 48}}})
	require.Error(t, err)
	require.ErrorContains(t, err, `"huge"`)
	for _, list := range b.memory.blocks {
		for _, block := range list {
			require.True(t, block.spans.empty(), "nothing is left of the store")
		}
	}
	p := chain(100, 1)
	compile(t, b, p, newStore(t, b, p))
}

// needCache skips where the driver has nothing to keep: some releases of lavapipe give a header without its end.
func needCache(t *testing.T) {
	t.Helper()
	b := openArith(t, Options{CacheDir: t.TempDir()})
	p := chain(10, 1)
	compile(t, b, p, newStore(t, b, p))
	data, err := b.pipelines.content()
	require.NoError(t, err)
	if !b.cache.ours(data) {
		t.Skipf("the driver's cache is no cache of its own: % x", data[:min(len(data), 32)])
	}
}

func TestPipelineCacheOnDisk(t *testing.T) {
	needCache(t)
	dir := t.TempDir()
	use := func() {
		b := openArith(t, Options{CacheDir: dir})
		p := chain(10, 1)
		s := newStore(t, b, p)
		e := compile(t, b, p, s)
		require.NoError(t, e.Feed("x", repeated(1, 10)))
		ticket, err := e.Submit()
		require.NoError(t, err)
		require.Equal(t, repeated(2, 10), fetch(t, e, ticket, "sum", 40))
		require.NoError(t, b.Close())
	}
	use()
	files, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	good, err := os.ReadFile(files[0])
	require.NoError(t, err)
	use()
	for _, bad := range [][]byte{{}, []byte("rubbish"), good[:len(good)/2], append([]byte{0}, good...)} {
		require.NoError(t, os.WriteFile(files[0], bad, 0o644))
		use()
		again, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.Equal(t, cacheMagic, string(again[:len(cacheMagic)]), "a good one was written over it")
	}
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o644)) // a file where the folder should be: nothing can be written
	use()
}

// The cache is saved while a program runs too, not at the end alone: a run may be killed.
func TestPipelineCacheIsSavedAfterCompile(t *testing.T) {
	needCache(t)
	b := openArith(t, Options{CacheDir: t.TempDir()})
	b.saved = time.Time{}
	p := chain(10, 1)
	compile(t, b, p, newStore(t, b, p))
	require.FileExists(t, b.cache.path)
}

// A driver that recovers from a hang without a word: the fence is signalled, and the work was not done. Each part has its mark, so that the
// nodes are named.
func TestSkippedSubmission(t *testing.T) {
	for name, opts := range map[string]Options{"one part": {}, "a part a node": {SubmitLimit: 1}} {
		t.Run(name, func(t *testing.T) {
			b := openArith(t, opts)
			p := chain(4, 3)
			s := newStore(t, b, p)
			e := compile(t, b, p, s)
			empty, err := b.newCommandBuffers(1)
			require.NoError(t, err)
			defer empty.close()
			require.NoError(t, empty.record(0, nil, nil))
			require.NoError(t, e.Feed("x", repeated(1, 4)))
			for range 5 { // what earlier runs have written is no mark of this one
				ticket, err := e.Submit()
				require.NoError(t, err)
				fetch(t, e, ticket, "sum", 16)
			}
			real, left := b.submit, e.Submissions()/2
			b.submit = func(cb vk.CommandBuffer, fence vk.Fence) error {
				if left--; left == -1 {
					cb = empty.list[0]
				}
				return real(cb, fence)
			}
			ticket, err := e.Submit()
			require.NoError(t, err)
			err = e.Fetch(ticket, "sum", make([]byte, 16))
			require.ErrorIs(t, err, errSkipped)
			if opts.SubmitLimit == 1 {
				require.ErrorContains(t, err, "program chain, node 3 of 7: %add#2 = add(%add, %zero)")
			} else {
				require.ErrorContains(t, err, "program chain, nodes 0 to 6 of 7: %one = fill()")
			}
			var lost *DeviceLostError
			require.ErrorAs(t, err, &lost)
			_, err = e.Submit()
			require.ErrorIs(t, err, lost)
			require.ErrorIs(t, s.Read("acc", make([]byte, 16)), lost)
		})
	}
}
