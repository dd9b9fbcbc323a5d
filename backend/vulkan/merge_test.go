package vulkan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// manyTensors sums the squares of gradients of such sizes, and updates parameters of a format by them, which are rounded by random bits if that is asked for.
// All but the inputs are variables.
func manyTensors(format graph.DType, random bool, sizes ...int) *graph.Program {
	b := graph.NewBuilder()
	partials := b.Var("partials", graph.F32, len(sizes)*graph.SumSquaresParts)
	hyper, clip := b.Input("hyper", graph.F32, graph.HyperLen), b.Input("clip", graph.F32, 1)
	var key *graph.Value
	if random {
		key = b.Input("key", graph.I32, graph.KeyLen)
	}
	tensors := make([][4]*graph.Value, len(sizes))
	for k, name := range []string{"p", "m", "v", "g"} {
		for i, n := range sizes {
			of := graph.F32
			if k == 0 {
				of = format
			}
			tensors[i][k] = b.Var(fmt.Sprint(name, i), of, n)
		}
	}
	for i := range sizes {
		b.SumSquares(tensors[i][3], b.View(partials, i*graph.SumSquaresParts, graph.SumSquaresParts))
	}
	for i, v := range tensors {
		b.AdamW(v[0], v[1], v[2], v[3], hyper, clip, key, graph.AdamWAttr{Decay: float32(i%3) / 2, Tensor: uint32(i)})
	}
	return b.Build("many")
}

// standIns are the launches that stand for several others.
func standIns(t *testing.T, d *deviceCaps, p *graph.Program, place func(*graph.Value) interval) (list []launch) {
	t.Helper()
	launches, err := lowerProgram(d, p, lowerNode, lookupShader)
	require.NoError(t, err)
	all, err := combine(d, p, graph.NewPlan(p).Barrier, launches, place, lookupShader)
	require.NoError(t, err)
	for _, l := range all {
		if l.covers > 0 {
			list = append(list, l)
		}
	}
	require.Len(t, all, len(launches)+len(list))
	return list
}

func TestMergeLaunches(t *testing.T) {
	d := roomyCaps(backend.Discrete)
	covers := func(p *graph.Program) (n []int) {
		for _, l := range standIns(t, d, p, anywhere) {
			n = append(n, l.covers)
		}
		return n
	}
	require.Equal(t, []int{3, 3}, covers(manyTensors(graph.F32, false, 5, 7, 100)))
	require.Empty(t, covers(manyTensors(graph.F32, false, 5)), "one is no many")
	require.Equal(t, []int{2, 2, 2, 2}, covers(manyTensors(graph.F32, false, 5, 7, mergeEach+1, 8, 9)), "a large tensor is by itself")
	require.Equal(t, []int{8, 2, 8, 2}, covers(manyTensors(graph.F32, false, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, 3, 4)),
		"no launch is longer than a submission may be")

	require.Equal(t, []int{3, 3}, covers(manyTensors(graph.BF16, false, 5, 7, 100)))
	require.Equal(t, []int{3, 3}, covers(manyTensors(graph.BF16, true, 5, 7, 100)))

	b := graph.NewBuilder()
	x := b.Var("x", graph.F32, 9)
	partials := b.Var("partials", graph.F32, 128)
	b.SumSquares(x, b.View(partials, 0, 64))
	b.SumSquares(partials, b.View(b.Var("more", graph.F32, 64), 0, 64))
	require.Empty(t, covers(b.Build("dependent")), "one needs the other")
}

// Barriers part a launch over many tensors from others of which one of the two writes what a window lies over: the validation layer would take it for a hazard.
func TestMergedWindowsArePartedFromOthers(t *testing.T) {
	d := roomyCaps(backend.Discrete)
	b := graph.NewBuilder()
	one := func(name string) *graph.Value { return b.Var(name, graph.F32, 64) }
	b.Fill(one("before"), 1)
	partials := b.Var("partials", graph.F32, 3*graph.SumSquaresParts)
	for i := range 3 {
		b.SumSquares(one(fmt.Sprint("x", i)), b.View(partials, i*graph.SumSquaresParts, graph.SumSquaresParts))
	}
	read := one("read")
	b.Add(read, read, one("after"))
	p := b.Build("between")
	launches, err := lowerProgram(d, p, lowerNode, lookupShader)
	require.NoError(t, err)
	barriers := func(order ...string) (kernels []string) { // the launches that wait, with some variables in such an order, and the others elsewhere
		place := func(v *graph.Value) interval {
			base, offset := v.Base()
			i := slices.Index(order, base.Name())
			if i < 0 {
				return interval{uint64(len(base.Name())), int64(offset), int64(offset + v.Bytes())}
			}
			return interval{100, int64(1024*i + offset), int64(1024*i + offset + v.Bytes())}
		}
		all, err := combine(d, p, graph.NewPlan(p).Barrier, launches, place, lookupShader)
		require.NoError(t, err)
		require.Len(t, all, len(launches)+1)
		require.Equal(t, 3, all[1].covers)
		for _, l := range all {
			if l.barrier {
				kernels = append(kernels, l.kernel)
			}
		}
		return kernels
	}
	require.Empty(t, barriers("x0", "x1", "x2", "before", "after"))
	require.Empty(t, barriers("x0", "x1", "read", "x2"), "both read")
	require.Equal(t, []string{"sum_squares_many"}, barriers("x0", "before", "x1", "x2", "after"))
	require.Equal(t, []string{"add"}, barriers("before", "x0", "x1", "after", "x2"))
	require.Equal(t, []string{"sum_squares_many", "add"}, barriers("x0", "before", "x1", "after", "x2"))
	require.Empty(t, barriers(), "what was changed for other places is not kept")
}
