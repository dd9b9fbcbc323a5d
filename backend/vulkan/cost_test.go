package vulkan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

func TestNodeFlops(t *testing.T) {
	b := graph.NewBuilder()
	x, w := b.Var("x", graph.F32, 2, 8, 32), b.Var("w", graph.F32, 48, 32)
	b.Output("y", b.Linear(x, w, nil))
	o, _ := b.Attention(x, x, x, nil, graph.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 8, Scale: 1})
	b.Output("o", o)
	nodes := b.Build("p").Nodes()
	require.Equal(t, 2.0*16*48*32, nodeFlops(nodes[0]))
	pairs := 2.0 * 4 * (8 * 9 / 2) // batch, heads, pairs at or below the diagonal
	require.Equal(t, 2*2*8*pairs, nodeFlops(nodes[1]), "q k and p v, two operations an element")
	require.Equal(t, 4.0*(16*32+48*32+16*48), nodeBytes(nodes[0]))
	require.Greater(t, estimate(backend.Software, nodes[0]), estimate(backend.Discrete, nodes[0]))
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
	require.Equal(t, []int{0}, cut(backend.Integrated, nodes, 0))
	require.Equal(t, []int{0}, cut(backend.Integrated, nodes, time.Hour))
	require.Equal(t, []int{0, 3, 6, 9}, cut(backend.Integrated, nodes, 3*one))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, cut(backend.Integrated, nodes, 1))
	require.Equal(t, []int{0}, cut(backend.Integrated, nil, 1))
}

func TestSubmitLimit(t *testing.T) {
	require.Equal(t, DefaultSubmitLimit, submitLimit(Options{}, backend.Discrete))
	require.Zero(t, submitLimit(Options{}, backend.Software), "no watchdog")
	require.Equal(t, time.Second, submitLimit(Options{SubmitLimit: time.Second}, backend.Software))
	require.Zero(t, submitLimit(Options{SubmitLimit: -1}, backend.Discrete))
}
