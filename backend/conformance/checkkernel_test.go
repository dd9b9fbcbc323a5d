package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// The cases that are left for one kernel see every fault of a matmul that the kit sees.
func TestCheckKernel(t *testing.T) {
	last := func(build func(b *graph.Builder)) *graph.Node {
		b := graph.NewBuilder()
		build(b)
		return b.Nodes()[len(b.Nodes())-1]
	}
	node := func(d graph.DType) *graph.Node {
		return last(func(b *graph.Builder) { b.Linear(b.Var("x", d, 2, 3), b.Var("w", d, 4, 3), nil) })
	}
	heads := func(b *graph.Builder, d graph.DType) (*graph.Value, *graph.Value, graph.AttentionAttr) {
		return b.Var("q", d, 1, 3, 8), b.Var("k", d, 1, 3, 4), graph.AttentionAttr{Heads: 2, KVHeads: 1, HeadDim: 4, Scale: 0.5}
	}
	for op, node := range map[graph.Op]func(d graph.DType) *graph.Node{
		graph.OpMatMul: node,
		graph.OpAttention: func(d graph.DType) *graph.Node {
			return last(func(b *graph.Builder) {
				q, k, at := heads(b, d)
				b.Attention(q, k, k, nil, at)
			})
		},
		graph.OpAttentionGrad: func(d graph.DType) *graph.Node {
			return last(func(b *graph.Builder) {
				q, k, at := heads(b, d)
				b.AttentionGrad(q, q, k, k, q, b.Var("lse", graph.F32, 1, 2, 3), nil, at)
			})
		},
	} {
		for _, d := range []graph.DType{graph.F32, graph.BF16, graph.F16} {
			b := reference.NewBackend()
			seen := map[graph.DType]bool{}
			b.Hook = func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
				require.Equal(t, op, n.Op)
				seen[n.In[0].DType()] = true
				run(n, in, out)
			}
			require.NoError(t, CheckKernel(b, node(d)))
			require.True(t, seen[d], "%s in %s", op, d)
			for other := range seen { // some cases have both
				require.Contains(t, []graph.DType{d, graph.F32}, other)
			}
			faults := slices.DeleteFunc(faults(), func(f fault) bool { return !slices.Contains(f.ops, op) })
			require.NotEmpty(t, faults, op)
			for _, f := range faults {
				if d != graph.F32 && (strings.Contains(f.name, "tensor-float-32") || strings.Contains(f.name, "float16")) {
					continue // the results have few bits anyway
				}
				b.Hook = f.spoil
				require.Error(t, CheckKernel(b, node(d)), "%s: %s in %s", op, f.name, d)
			}
		}
	}
	require.ErrorContains(t, CheckKernel(refusesAll{reference.NewBackend()}, node(graph.F32)), "no case of the conformance kit")
}

// refusesAll supports nothing.
type refusesAll struct{ backend.Backend }

func (refusesAll) Compile(*graph.Program, backend.Store) (backend.Executable, error) {
	return nil, errors.ErrUnsupported
}
