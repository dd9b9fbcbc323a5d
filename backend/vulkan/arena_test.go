//go:build cgo

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

// Executables over a store have one arena, of the largest that came; whoever leaves takes nothing from the others.
func TestExecutablesShareAnArena(t *testing.T) {
	b := openTest(t, Options{})
	program := func(n int) *graph.Program { // y = 4 x, by way of the arena
		g := graph.NewBuilder()
		x := g.Input("x", graph.F32, n)
		twice := g.Add(x, x, nil)
		g.Output("y", g.Add(twice, twice, nil))
		return g.Build("four times")
	}
	large, small := program(100_000), program(50_000)
	s := newStore(t, b, large)
	first := compile(t, b, large, s)
	arena := int64(graph.NewPlan(large).ArenaBytes())
	second, third := compile(t, b, large, s), compile(t, b, small, s)
	require.Equal(t, first.DeviceBytes()-arena, second.DeviceBytes())
	require.Same(t, first.arena, third.arena)
	require.NoError(t, first.Close())
	for _, e := range []*Executable{second, third} {
		n := e.program.Input("x").Elems()
		x := make([]float32, n)
		x[n-1] = 3
		require.NoError(t, e.Feed("x", floats(x...)))
	}
	for range 3 { // in turn
		one, err := second.Submit()
		require.NoError(t, err)
		other, err := third.Submit()
		require.NoError(t, err)
		require.Equal(t, floats(0, 12), fetch(t, third, other, "y", 4*50_000)[4*49_998:])
		require.Equal(t, floats(0, 12), fetch(t, second, one, "y", 4*100_000)[4*99_998:])
	}
	require.NoError(t, second.Close())
	require.NoError(t, third.Close())
	require.Nil(t, s.(*Store).arena)
}

// What programs take together is known before: arenas and scratch memory, each in turns, and tables.
func TestSharedBytesAreWhatIsHeld(t *testing.T) {
	b := openTest(t, Options{tweak: asGPU})
	program := func(rows, width int) *graph.Program { // a product over many rows has its parts in scratch memory, a sum in the arena
		g := graph.NewBuilder()
		x, y := g.Input("x", graph.F32, rows, width), g.Input("y", graph.F32, rows, width)
		sum := g.Add(x, y, nil)
		g.Output("z", g.MatMul(sum, y, nil, nil, graph.MatMulAttr{TransA: true}))
		return g.Build("product")
	}
	tall, wide, small := program(8192, 24), program(2048, 80), program(64, 8)
	require.Less(t, b.ScratchBytes(tall), b.ScratchBytes(wide))
	require.Greater(t, graph.NewPlan(tall).ArenaBytes(), graph.NewPlan(wide).ArenaBytes())
	for _, programs := range [][]*graph.Program{{tall, wide, small}, {small, wide, tall}, {wide, wide}, {tall, small, wide, tall}} {
		s := newStore(t, b, tall)
		held := int64(0)
		for _, p := range programs {
			e := compile(t, b, p, s)
			held += e.DeviceBytes() - int64(e.inputs.size)
		}
		require.Equal(t, held, b.SharedBytes(programs...))
	}
}
