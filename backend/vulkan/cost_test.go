package vulkan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

func TestASlowDeviceTakesLonger(t *testing.T) {
	b := graph.NewBuilder()
	x, w := b.Var("x", graph.F32, 2, 8, 32), b.Var("w", graph.F32, 48, 32)
	b.Output("y", b.Linear(x, w, nil))
	n := b.Build("p").Nodes()[0]
	require.Greater(t, estimate(backend.Software, n), estimate(backend.Discrete, n))
	require.Equal(t, estimate(backend.Integrated, n), estimate(backend.CPU, n), "a kind without a row")
}

func TestCut(t *testing.T) {
	b := graph.NewBuilder()
	x := b.Var("x", graph.F32, 1000)
	for range 10 {
		x = b.Add(x, x, nil)
	}
	b.Output("x", x)
	nodes := b.Build("p").Nodes()
	one := estimate(backend.Integrated, nodes[0])
	times := slices.Repeat([]time.Duration{one}, len(nodes))
	require.Equal(t, []int{0}, cut(times, 0))
	require.Equal(t, []int{0}, cut(times, time.Hour))
	require.Equal(t, []int{0, 3, 6, 9}, cut(times, 3*one))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, cut(times, 1))
	require.Equal(t, []int{0}, cut(nil, 1))
}

func TestEstimatesAreCorrected(t *testing.T) {
	times := []time.Duration{10, 30, 40, 1}
	starts := []int{0, 2, 3}
	got, off := correct(times, starts, []time.Duration{60, 50, 2})
	require.Equal(t, []time.Duration{15, 45, 50, 2}, got)
	require.False(t, off, "1.5, 1.25, and twice of next to nothing")
	got, off = correct(times, starts, []time.Duration{84, 40, 1})
	require.Equal(t, []time.Duration{21, 63, 40, 1}, got)
	require.True(t, off, "the first took more than twice as long")
	_, off = correct(times, starts, []time.Duration{40, 19, 1})
	require.True(t, off, "the second took less than half")
	got, off = correct(nil, []int{0}, []time.Duration{5})
	require.Empty(t, got)
	require.False(t, off)
}

func TestSubmitLimit(t *testing.T) {
	require.Equal(t, DefaultSubmitLimit, submitLimit(Options{}, backend.Discrete))
	require.Zero(t, submitLimit(Options{}, backend.Software), "no watchdog")
	require.Equal(t, NiceSubmitLimit, submitLimit(Options{Nice: true}, backend.Discrete))
	require.Equal(t, NiceSubmitLimit, submitLimit(Options{Nice: true}, backend.Software))
	require.Equal(t, time.Second, submitLimit(Options{Nice: true, SubmitLimit: time.Second}, backend.Discrete))
	require.Equal(t, time.Second, submitLimit(Options{SubmitLimit: time.Second}, backend.Software))
	require.Zero(t, submitLimit(Options{SubmitLimit: -1}, backend.Discrete))
}
