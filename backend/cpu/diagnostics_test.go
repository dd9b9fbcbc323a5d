package cpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

// Reductions of one block run beside each other: each must convert 16-bit operands in the memory of the worker that it runs on.
func TestSmallReductionsDoNotShareMemory(t *testing.T) {
	const nodes, n, runs = 32, taskElems, 100
	b, err := New(Options{Threads: 3})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	g := graph.NewBuilder()
	hyper, clip := g.Input("hyper", graph.F32, graph.HyperLen), g.Input("clip", graph.F32, 1) // zeros: without an update
	var wide, narrow [nodes]*graph.Value                                                      // all are alive at once, so that no memory is used again, which would keep nodes apart
	for i := range nodes {
		wide[i] = g.Input(fmt.Sprint("p", i), graph.F32, n)
		narrow[i] = g.Cast(wide[i], graph.BF16)
	}
	for i, p := range wide {
		g.Output(fmt.Sprint("stats", i), g.AdamWStats(narrow[i], p, p, p, hyper, clip, nil, graph.AdamWAttr{}))
		g.Output(fmt.Sprint("summary", i), g.Summary(narrow[i], nil, nil, 0))
	}
	s, err := b.NewStore(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	e, err := b.Compile(g.Build("reductions"), s)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for i := range nodes {
		p := make([]float32, n)
		for j := range p {
			p[j] = float32(i)
		}
		require.NoError(t, e.Feed(fmt.Sprint("p", i), bytesOf(p)))
	}
	require.NoError(t, e.Feed("hyper", make([]byte, 4*graph.HyperLen)))
	require.NoError(t, e.Feed("clip", make([]byte, 4)))
	for range runs {
		ticket, err := e.Submit()
		require.NoError(t, err)
		for i := range nodes {
			stats, summary := make([]float32, graph.DotsLen), make([]float32, graph.SummaryLen)
			require.NoError(t, e.Fetch(ticket, fmt.Sprint("stats", i), bytesOf(stats)))
			require.NoError(t, e.Fetch(ticket, fmt.Sprint("summary", i), bytesOf(summary)))
			require.Equal(t, float32(n*i*i), stats[graph.DotsV])
			require.Equal(t, float32(i), summary[graph.SummaryMagnitude])
		}
	}
}
