//go:build cgo

package vulkan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// A software driver is far from what a discrete GPU is thought to do, and each node is slow: the program that fits one submission by the estimates
// is cut by the times, once, without a change in what it computes; the device's clock and the fences serve alike.
func TestCutsAreCorrected(t *testing.T) {
	defer func() { arithSpin = 0 }()
	arithSpin = 2000
	const n = 4096
	run := func(opts Options) (before, after int, sum []byte) {
		b := openArith(t, opts)
		p := chain(n, 20)
		e := compile(t, b, p, newStore(t, b, p))
		require.NoError(t, e.Feed("x", repeated(1, n)))
		before = e.Submissions()
		for i := range 6 {
			ticket, err := e.Submit()
			require.NoError(t, err)
			sum = fetch(t, e, ticket, "sum", 4*n)
			require.Equal(t, repeated(float32(2*(i+1)), n), sum)
			if i < measuredRun {
				require.Equal(t, before, e.Submissions(), "run %d", i+1)
			} else if i == measuredRun {
				after = e.Submissions()
			}
			require.True(t, i < measuredRun || after == e.Submissions(), "cut anew once")
		}
		return before, after, sum
	}
	whole, same, want := run(Options{SubmitLimit: -1})
	require.Equal(t, []int{1, 1}, []int{whole, same})
	asGPU := func(d *DeviceInfo) { d.Kind = backend.Discrete }
	for _, limits := range []string{"", "timestamps=off"} {
		before, after, sum := run(Options{SubmitLimit: time.Millisecond, tweak: asGPU, Limits: limits})
		require.Equal(t, 1, before, "a GPU would take microseconds")
		require.Greater(t, after, 1, "%q", limits)
		require.Equal(t, want, sum)
	}
}

// What goes wrong while fences are timed is told when the run is waited for.
func TestDeviceLostWhileTimed(t *testing.T) {
	b := openArith(t, Options{SubmitLimit: 1, Limits: "timestamps=off"})
	p := chain(4, 3)
	s := newStore(t, b, p)
	e := compile(t, b, p, s)
	require.NoError(t, e.Feed("x", repeated(1, 4)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	fetch(t, e, ticket, "sum", 16)
	b.await = func(fences []vk.Fence) error {
		require.NoError(t, b.waitForFences(fences))
		return lostResult
	}
	ticket, err = e.Submit()
	require.NoError(t, err)
	err = e.Fetch(ticket, "sum", make([]byte, 16))
	require.Equal(t, vk.ErrorDeviceLost, vkx.Code(err))
	requireLost(t, b, s, e, err)
}
