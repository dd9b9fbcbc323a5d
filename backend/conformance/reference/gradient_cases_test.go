package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

type declare = func(name string, shape ...int) *graph.Value

func gradientCases() []gradientCase {
	list := matMulGradients()
	list = append(list, normGradients()...)
	list = append(list, attentionGradients()...)
	list = append(list, lossGradients()...)
	return append(list, reuseGradients()...)
}

func matMulGradients() []gradientCase {
	var list []gradientCase
	for _, at := range []graph.MatMulAttr{{}, {TransB: true}, {TransA: true}, {TransA: true, TransB: true}} {
		for _, batched := range []bool{false, true} {
			for _, addend := range []bool{false, true} {
				at := at
				at.Batched = batched
				shape := func(rows, cols int, swap bool) []int {
					if swap {
						rows, cols = cols, rows
					}
					if batched {
						return []int{2, rows, cols}
					}
					return []int{rows, cols}
				}
				name := "matmul"
				for i, on := range []bool{at.TransA, at.TransB, batched, addend} {
					if on {
						name += []string{" Aᵀ", " Bᵀ", " batched", " addend"}[i]
					}
				}
				list = append(list, gradientCase{name: name, build: func(b *graph.Builder, v declare) *graph.Value {
					x, y := v("x", shape(3, 4, at.TransA)...), v("y", shape(4, 5, at.TransB)...)
					var c *graph.Value
					if addend {
						c = v("c", shape(3, 5, false)...)
					}
					return b.MatMul(x, y, c, nil, at)
				}})
			}
		}
	}
	return append(list,
		gradientCase{name: "matmul of x with itself", build: func(b *graph.Builder, v declare) *graph.Value {
			x := v("x", 3, 3)
			return b.MatMul(x, x, x, nil, graph.MatMulAttr{TransB: true})
		}},
		gradientCase{name: "linear of a sequence", build: func(b *graph.Builder, v declare) *graph.Value {
			return b.Linear(v("x", 2, 3, 4), v("w", 5, 4), v("c", 2, 3, 5))
		}})
}

func normGradients() []gradientCase {
	var list []gradientCase
	for _, layer := range []bool{false, true} {
		norm, name := (*graph.Builder).RMSNorm, "rms_norm"
		if layer {
			norm, name = (*graph.Builder).LayerNorm, "layer_norm"
		}
		list = append(list,
			gradientCase{name: name, build: func(b *graph.Builder, v declare) *graph.Value {
				return norm(b, v("x", 4, 6), nil, nil, 1e-3)
			}},
			gradientCase{name: name + " gain", build: func(b *graph.Builder, v declare) *graph.Value {
				return norm(b, v("x", 2, 20, 3), v("gain", 3), nil, 1e-3)
			}},
			gradientCase{name: name + " gain addend", build: func(b *graph.Builder, v declare) *graph.Value {
				return norm(b, v("x", 4, 6), v("gain", 6), v("h", 4, 6), 1e-3)
			}},
			gradientCase{name: name + " of the residual stream", build: func(b *graph.Builder, v declare) *graph.Value {
				x := v("x", 4, 6)
				return norm(b, b.Linear(norm(b, x, v("gain1", 6), nil, 1e-3), v("w", 6, 6), nil), v("gain2", 6), x, 1e-3)
			}})
	}
	for _, q := range []graph.QKNorm{graph.QKNone, graph.QKRMS, graph.QKLayerNorm, graph.QKL2} {
		for _, gain := range []bool{false, true} {
			if gain && (q == graph.QKNone || q == graph.QKL2) {
				continue
			}
			name := "qk_norm_rope " + q.String()
			if gain {
				name += " gain"
			}
			list = append(list, gradientCase{name: name, build: func(b *graph.Builder, v declare) *graph.Value {
				var g *graph.Value
				if gain {
					g = v("gain", 6)
				}
				return b.QKNormRoPE(v("x", 2, 5, 12), g, graph.QKNormRoPEAttr{Norm: q, Heads: 2, HeadDim: 6, Eps: 1e-3, Theta: 100})
			}})
		}
	}
	return list
}

func attentionGradients() []gradientCase {
	var list []gradientCase
	for _, c := range []struct {
		name  string
		kv    int
		scale bool
		cap   float32
	}{{"attention", 4, false, 0}, {"attention GQA scale", 2, true, 0}, {"attention MQA", 1, false, 0}, {"attention GQA scale soft cap", 2, true, 1.5}} {
		list = append(list, gradientCase{name: c.name, build: func(b *graph.Builder, v declare) *graph.Value {
			at := graph.AttentionAttr{Heads: 4, KVHeads: c.kv, HeadDim: 2, Scale: 0.7, SoftCap: c.cap}
			var scale *graph.Value
			if c.scale {
				scale, at.Scale = v("scale", 1), 0
			}
			o, _ := b.Attention(v("q", 2, 5, 8), v("k", 2, 5, 2*c.kv), v("v", 2, 5, 2*c.kv), scale, at)
			return o
		}})
	}
	return append(list, gradientCase{name: "attention of one value for q, k and v", build: func(b *graph.Builder, v declare) *graph.Value {
		x := v("x", 1, 6, 4)
		o, _ := b.Attention(x, x, x, nil, graph.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: 2, Scale: 0.7})
		return b.Add(o, x, nil)
	}})
}

func lossGradients() []gradientCase {
	unary := func(name string, f func(b *graph.Builder, x *graph.Value) *graph.Value) gradientCase {
		return gradientCase{name: name, build: func(b *graph.Builder, v declare) *graph.Value { return f(b, v("x", 3, 7)) }}
	}
	targets := map[string][]int32{"targets": {4, graph.IgnoreTarget, 0, 99, 2, 2}}
	loss := func(z float32) func(b *graph.Builder, v declare) *graph.Value {
		return func(b *graph.Builder, v declare) *graph.Value {
			l, _ := b.CrossEntropy(v("logits", 2, 3, 5), b.Input("targets", graph.I32, 2, 3), nil, graph.CrossEntropyAttr{ZLoss: z})
			return b.Sum(l, b.Var("scale", graph.F32, 1))
		}
	}
	return []gradientCase{
		unary("softmax", (*graph.Builder).Softmax), unary("gelu", (*graph.Builder).GELU), unary("relu", (*graph.Builder).ReLU),
		unary("soft_cap", func(b *graph.Builder, x *graph.Value) *graph.Value { return b.SoftCap(x, 1.5) }),
		unary("sum", func(b *graph.Builder, x *graph.Value) *graph.Value { return b.Sum(x, nil) }),
		{name: "swiglu", build: func(b *graph.Builder, v declare) *graph.Value { return b.SwiGLU(v("gate", 3, 7), v("up", 3, 7)) }},
		{name: "cross_entropy", build: loss(0), ints: targets},
		{name: "cross_entropy z-loss", build: loss(0.1), ints: targets},
		{name: "cross_entropy by the row", ints: targets, build: func(b *graph.Builder, v declare) *graph.Value {
			l, _ := b.CrossEntropy(v("logits", 2, 3, 5), b.Input("targets", graph.I32, 2, 3), nil, graph.CrossEntropyAttr{ZLoss: 0.1})
			return l
		}},
		{name: "embedding", ints: map[string][]int32{"tokens": {1, 3, 1, 1, 0, 3}}, build: func(b *graph.Builder, v declare) *graph.Value {
			return b.Embedding(v("table", 5, 4), b.Input("tokens", graph.I32, 2, 3))
		}},
	}
}

// reuseGradients use a value more than once, so that gradients add up in each of the ways that graph has for it.
func reuseGradients() []gradientCase {
	tokens := map[string][]int32{"tokens": {1, 3, 1, 1, 0, 3}, "targets": {3, 1, 1, 0, 3, -100}}
	return []gradientCase{
		{name: "add of x with itself", build: func(b *graph.Builder, v declare) *graph.Value {
			x := v("x", 3, 4)
			return b.Add(x, x, nil)
		}},
		{name: "swiglu of x with itself", build: func(b *graph.Builder, v declare) *graph.Value {
			x := v("x", 3, 4)
			return b.SwiGLU(x, x)
		}},
		{name: "one gain for two norms", build: func(b *graph.Builder, v declare) *graph.Value {
			g := v("gain", 4)
			return b.LayerNorm(b.RMSNorm(v("x", 3, 4), g, nil, 1e-3), g, nil, 1e-3)
		}},
		{name: "many uses of one value", build: func(b *graph.Builder, v declare) *graph.Value {
			x, w := v("x", 3, 4), v("w", 4, 4)
			h := b.Add(b.GELU(x), x, nil)
			h = b.Linear(h, w, x)
			h = b.RMSNorm(h, nil, x, 1e-3)
			return b.Add(b.Softmax(x), b.Linear(h, w, h), nil)
		}},
		{name: "tied head", ints: tokens, build: func(b *graph.Builder, v declare) *graph.Value {
			table := v("table", 4, 3)
			h := b.RMSNorm(b.Embedding(table, b.Input("tokens", graph.I32, 2, 3)), nil, nil, 1e-3)
			l, _ := b.CrossEntropy(b.Linear(h, table, nil), b.Input("targets", graph.I32, 2, 3), nil, graph.CrossEntropyAttr{})
			return b.Sum(l, nil)
		}},
		{name: "a table looked up twice", ints: tokens, build: func(b *graph.Builder, v declare) *graph.Value {
			table, ids := v("table", 4, 3), b.Input("tokens", graph.I32, 2, 3)
			return b.SwiGLU(b.Embedding(table, ids), b.Embedding(table, ids))
		}},
		{name: "a table used before the look-up's gradient", ints: tokens, build: func(b *graph.Builder, v declare) *graph.Value {
			table := v("table", 4, 3)
			e := b.Embedding(table, b.Input("tokens", graph.I32, 2, 3))
			return b.Add(b.Sum(table, nil), project(b, e), nil)
		}},
	}
}

// A cast's gradient goes through unchanged but for its own rounding, so central differences cannot see it.
func TestGradientOfCast(t *testing.T) {
	b := graph.NewBuilder()
	x := b.Var("x", graph.F32, 2, 3)
	loss := project(b, b.Cast(b.Cast(x, graph.BF16), graph.F32))
	grads, err := b.Grad(loss, b.Fill(b.Temp("dy", graph.F32, 1), 1), []*graph.Value{x}, nil)
	require.NoError(t, err)
	b.Output("dx", grads[0])
	m := reference.New(b.Build("cast"))
	m.Set("c1", []float64{1.001, -2.003, 0.1})
	m.Set("c2", []float64{1, 3})
	require.NoError(t, m.Run())
	want := make([]float64, 6)
	for i, c := range []float64{1.001, -2.003, 0.1, 3.003, -6.009, 0.3} {
		want[i] = reference.ToBF16(c)
	}
	require.InDeltaSlice(t, want, m.Get("dx"), 1e-12)
}
