//go:build cgo

package vulkan

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// journal notes the submissions and the waits of a backend, in order; a wait for several fences ends a run.
type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) note(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

func (j *journal) watch(b *Backend) {
	submit, await := b.submit, b.await
	b.submit = func(cb vk.CommandBuffer, fence vk.Fence) error {
		j.note("submit")
		return submit(cb, fence)
	}
	b.await = func(fences []vk.Fence) error {
		err := await(fences)
		if len(fences) == 1 {
			j.note("done")
		}
		return err
	}
}

// A nice backend cuts a program that others run in one piece, never has two parts with the device, and computes the same bits.
func TestNice(t *testing.T) {
	defer func() { arithSpin = 0 }()
	arithSpin = 200
	const n, runs = 4096, 5
	train := func(opts Options) (parts int, sums [][]byte, events []string) {
		b := openArith(t, opts)
		p := chain(n, 20)
		s := newStore(t, b, p)
		e := compile(t, b, p, s)
		var j journal
		j.watch(b)
		var last backend.Ticket
		for i := range runs {
			require.NoError(t, e.Feed("x", repeated(float32(i), n)))
			ticket, err := e.Submit()
			require.NoError(t, err)
			if i > 0 { // one run late, so that two are in flight
				sums = append(sums, fetch(t, e, last, "sum", 4*n))
			}
			last = ticket
		}
		acc := make([]byte, 4*n)
		require.NoError(t, s.Read("acc", acc), "after all runs, without waiting for one by name")
		sums = append(sums, fetch(t, e, last, "sum", 4*n), acc)
		return e.Submissions(), sums, j.events
	}
	whole, want, _ := train(Options{})
	require.Equal(t, 1, whole)
	for _, limits := range []string{"", "timestamps=off"} {
		parts, sums, events := train(Options{Nice: true, SubmitLimit: time.Microsecond, Limits: limits})
		require.Greater(t, parts, 1)
		require.Equal(t, want, sums)
		require.GreaterOrEqual(t, len(events), 2*runs*parts)
		for i, event := range events[:2*runs*parts] {
			require.Equal(t, []string{"submit", "done"}[i%2], event, "event %d", i)
		}
	}
	parts, sums, _ := train(Options{Nice: true})
	require.Greater(t, parts, 1, "cut at NiceSubmitLimit")
	require.Equal(t, want, sums)
}

// Two runs are taken while the device has not done the first part of the first one.
func TestNiceDoesNotWait(t *testing.T) {
	b := openArith(t, Options{Nice: true, SubmitLimit: 1})
	p := chain(4, 3)
	e := compile(t, b, p, newStore(t, b, p))
	require.NoError(t, e.Feed("x", repeated(1, 4)))
	gate, await := make(chan struct{}), b.await
	b.await = func(fences []vk.Fence) error {
		<-gate
		return await(fences)
	}
	for range numSlots {
		_, err := e.Submit()
		require.NoError(t, err)
	}
	close(gate)
	require.Equal(t, repeated(4, 4), fetch(t, e, 2, "sum", 16))
	require.Equal(t, repeated(2, 4), fetch(t, e, 1, "sum", 16))
}

// Errors of a run that is submitted later come when it is waited for, with the part's nodes.
func TestNiceFailures(t *testing.T) {
	open := func() (*Backend, backend.Store, *Executable) {
		b := openArith(t, Options{Nice: true, SubmitLimit: 1})
		p := chain(4, 3)
		s := newStore(t, b, p)
		e := compile(t, b, p, s)
		require.NoError(t, e.Feed("x", repeated(1, 4)))
		return b, s, e
	}
	fail := func(e *Executable) error {
		ticket, err := e.Submit()
		require.NoError(t, err)
		return e.Fetch(ticket, "sum", make([]byte, 16))
	}
	b, s, e := open()
	submit, calls := b.submit, 0
	b.submit = func(cb vk.CommandBuffer, fence vk.Fence) error {
		if calls++; calls == 3 {
			return lostResult
		}
		return submit(cb, fence)
	}
	err := fail(e)
	require.ErrorContains(t, err, "program chain, node 2 of 7: %zero = fill()")
	requireLost(t, b, s, e, err)

	b, s, e = open()
	waits := 0
	b.await = func(fences []vk.Fence) error {
		require.NoError(t, b.waitForFences(fences))
		if waits++; waits == 2 {
			return lostResult
		}
		return nil
	}
	err = fail(e)
	require.ErrorContains(t, err, "program chain, node 1 of 7: ")
	requireLost(t, b, s, e, err)

	b, _, e = open()
	submit = b.submit
	b.submit = func(vk.CommandBuffer, vk.Fence) error {
		return &vkx.Result{Call: "vkQueueSubmit", Code: vk.ErrorOutOfHostMemory}
	}
	require.ErrorContains(t, fail(e), "out of host memory")
	b.submit = submit
	require.NoError(t, fail(e), "the next run is well")
}
