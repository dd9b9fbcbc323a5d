package cpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Executables over a store share the arena of the first that is large enough, which lives until the last of them is closed, as the variables do.
func TestArenaIsShared(t *testing.T) {
	b, err := New(Options{Threads: 1})
	require.NoError(t, err)
	defer b.Close()
	build := func(n int) *graph.Program {
		g := graph.NewBuilder()
		y := g.Add(g.Var("x", graph.F32, mapFloor), g.Var("x2", graph.F32, mapFloor), nil)
		for range n {
			y = g.GELU(g.MatMul(g.View(y, 0, 1, mapFloor), g.Var(fmt.Sprint("w", n), graph.F32, 1, mapFloor), nil, nil, graph.MatMulAttr{TransB: true}))
		}
		g.Output("y", y)
		return g.Build("p")
	}
	large, small := build(1), build(0)
	vars := append(large.Vars(), graph.Var{Name: "w0", DType: graph.F32, Shape: graph.Shape{1, mapFloor}})
	st, err := b.NewStore(vars)
	require.NoError(t, err)
	s := st.(*store)
	var exes []*executable
	for _, p := range []*graph.Program{large, small} {
		e, err := b.Compile(p, st)
		require.NoError(t, err)
		exes = append(exes, e.(*executable))
	}
	require.Same(t, exes[0].arena, exes[1].arena)
	require.Zero(t, exes[1].DeviceBytes(), "the arena counts once")
	require.NoError(t, st.Close())
	require.ErrorIs(t, st.Write("x", nil), backend.ErrClosed)
	require.NotNil(t, s.block.words, "programs are still open")
	tick, err := exes[1].Submit()
	require.NoError(t, err)
	require.NoError(t, exes[1].Fetch(tick, "y", make([]byte, 4*mapFloor)))
	require.NoError(t, exes[0].Close())
	require.NoError(t, exes[0].Close(), "twice")
	require.NotNil(t, exes[1].arena.words)
	require.NoError(t, exes[1].Close())
	require.Nil(t, exes[1].arena.words)
	require.Nil(t, s.block.words)
	_, err = b.Compile(small, st)
	require.ErrorIs(t, err, backend.ErrClosed)
}

func TestPartsOfVariables(t *testing.T) {
	b, err := New(Options{Threads: 1})
	require.NoError(t, err)
	defer b.Close()
	v := graph.Var{Name: "x", DType: graph.F32, Shape: graph.Shape{600_000}} // three parts
	st, err := b.NewStore([]graph.Var{v})
	require.NoError(t, err)
	defer st.Close()
	want := make([]byte, v.Bytes())
	for i := range want {
		want[i] = byte(i % 251)
	}
	require.NoError(t, backend.WriteParts(st, v, func(part []byte, offset int) error { copy(part, want[offset:]); return nil }))
	got := make([]byte, v.Bytes())
	require.NoError(t, st.Read("x", got))
	require.Equal(t, want, got)
	got = got[:0]
	require.NoError(t, backend.ReadParts(st, v, func(part []byte) error { got = append(got, part...); return nil }))
	require.Equal(t, want, got)
	p := st.(backend.PartStore)
	require.ErrorContains(t, p.ReadAt("x", make([]byte, 8), v.Bytes()-4), "8 bytes from 2399996 on")
	require.ErrorContains(t, p.WriteAt("x", make([]byte, 8), -4), "from -4 on")
	require.ErrorContains(t, p.WriteAt("y", nil, 0), `no variable "y"`)
}
