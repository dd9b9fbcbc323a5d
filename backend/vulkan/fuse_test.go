package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// normChain is x + Norm(m), and the norm of that, by any of the norms, in any format.
func normChain(first, second graph.Op, format graph.DType, gains bool, shape ...int) *graph.Program {
	b := graph.NewBuilder()
	x, m := b.Var("x", graph.F32, shape...), b.Var("m", graph.F32, shape...)
	sum, z2 := b.Var("y + z", graph.F32, shape...), b.Var("z + z", graph.F32, shape...)
	if format != graph.F32 {
		x, m = b.Cast(x, format), b.Cast(m, format)
	}
	var gain, next *graph.Value
	if gains {
		gain, next = b.Var("gain", graph.F32, shape[len(shape)-1]), b.Var("next", graph.F32, shape[len(shape)-1])
	}
	norm := func(op graph.Op, x, gain, addend *graph.Value, eps float32) *graph.Value {
		if op == graph.OpLayerNorm {
			return b.LayerNorm(x, gain, addend, eps)
		}
		return b.RMSNorm(x, gain, addend, eps)
	}
	h := b.ReLU(m)
	y := norm(first, h, gain, x, 1e-6)
	z := norm(second, y, next, nil, 1e-3)
	b.Add(y, z, sum)
	b.Add(z, z, z2)
	return b.Build("norms")
}

func TestFuseNorms(t *testing.T) {
	d := roomyCaps(backend.Discrete)
	p := normChain(graph.OpRMSNorm, graph.OpLayerNorm, graph.F32, true, 5, 8)
	require.Len(t, standIns(t, d, p, anywhere), 1)

	nodes := p.Nodes() // relu, norm, norm, add
	h, x, y, z := nodes[0].Out[0], nodes[1].In[2], nodes[1].Out[0], nodes[2].Out[0]
	at := func(places map[*graph.Value]interval) func(*graph.Value) interval {
		return func(v *graph.Value) interval {
			if i, ok := places[v]; ok {
				return i
			}
			return interval{buffer: 9}
		}
	}
	where := func(from int64) interval { return interval{0, from, from + 160} }
	require.Len(t, standIns(t, d, p, at(map[*graph.Value]interval{h: where(0), x: where(256), y: where(512), z: where(0)})), 1,
		"rows in the place of the rows they are made of")
	require.Empty(t, standIns(t, d, p, at(map[*graph.Value]interval{h: where(0), x: where(256), y: where(512), z: where(32)})),
		"rows in the place of other rows")
	require.Empty(t, standIns(t, d, p, at(map[*graph.Value]interval{h: where(0), nodes[1].In[1]: {0, 256, 288}, z: where(256)})),
		"in the place of the gain")

	b := graph.NewBuilder()
	v := b.Var("v", graph.F32, 5, 8)
	b.Output("apart", b.RMSNorm(b.ReLU(b.RMSNorm(v, nil, nil, 1e-6)), nil, nil, 1e-6))
	require.Empty(t, standIns(t, d, b.Build("apart"), anywhere))
	b = graph.NewBuilder()
	v = b.Var("v", graph.F32, 5, 8)
	y1, y2 := b.RMSNorm(v, nil, nil, 1e-6), b.RMSNorm(v, nil, nil, 1e-3)
	b.Output("two", b.Add(y1, y2, nil))
	require.Empty(t, standIns(t, d, b.Build("two"), anywhere), "the second norm is of something else")
}
