package vulkan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// manyTensors sums the squares of gradients of such sizes, and updates parameters by them. All but the inputs are variables.
func manyTensors(sizes ...int) *graph.Program {
	b := graph.NewBuilder()
	partials := b.Var("partials", graph.F32, len(sizes)*graph.SumSquaresParts)
	hyper, clip := b.Input("hyper", graph.F32, graph.HyperLen), b.Input("clip", graph.F32, 1)
	tensors := make([][4]*graph.Value, len(sizes))
	for i, n := range sizes {
		for k, name := range []string{"p", "m", "v", "g"} {
			tensors[i][k] = b.Var(fmt.Sprint(name, i), graph.F32, n)
		}
		b.SumSquares(tensors[i][3], b.View(partials, i*graph.SumSquaresParts, graph.SumSquaresParts))
	}
	for i, v := range tensors {
		b.AdamW(v[0], v[1], v[2], v[3], hyper, clip, nil, graph.AdamWAttr{Decay: float32(i%3) / 2})
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
	require.Equal(t, []int{3, 3}, covers(manyTensors(5, 7, 100)))
	require.Empty(t, covers(manyTensors(5)), "one is no many")
	require.Equal(t, []int{2, 2, 2, 2}, covers(manyTensors(5, 7, mergeEach+1, 8, 9)), "a large tensor is by itself")
	require.Equal(t, []int{8, 2, 8, 2}, covers(manyTensors(mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, mergeEach, 3, 4)),
		"no launch is longer than a submission may be")

	b := graph.NewBuilder()
	x := b.Var("x", graph.F32, 9)
	partials := b.Var("partials", graph.F32, 128)
	b.SumSquares(x, b.View(partials, 0, 64))
	b.SumSquares(partials, b.View(b.Var("more", graph.F32, 64), 0, 64))
	require.Empty(t, covers(b.Build("dependent")), "one needs the other")
}
