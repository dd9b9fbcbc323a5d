package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vktrain/vktrain/graph"
)

// BenchmarkOps times operators at the shapes of a model of 14 M parameters: 2048 tokens of 384, 1024 in the middle, 4096 classes. It
// reports the best of each node, forward and backward.
func BenchmarkOps(b *testing.B) {
	const batch, seq, d, ff, vocab, heads = 8, 256, 384, 1024, 4096, 6
	type values = []*graph.Value
	x := func(g *graph.Builder, name string, cols int) *graph.Value {
		return g.Input(name, graph.F32, batch, seq, cols)
	}
	for _, c := range []struct {
		name  string
		build func(g *graph.Builder) (y *graph.Value, wrt values)
	}{
		{"rms_norm", func(g *graph.Builder) (*graph.Value, values) {
			a, w := x(g, "x", d), g.Input("w", graph.F32, d)
			return g.RMSNorm(a, w, x(g, "addend", d), 1e-6), values{a, w}
		}},
		{"layer_norm", func(g *graph.Builder) (*graph.Value, values) {
			a, w := x(g, "x", d), g.Input("w", graph.F32, d)
			return g.LayerNorm(a, w, nil, 1e-6), values{a, w}
		}},
		{"qk_norm_rope", func(g *graph.Builder) (*graph.Value, values) {
			a, w := x(g, "x", d), g.Input("w", graph.F32, d/heads)
			attr := graph.QKNormRoPEAttr{Norm: graph.QKRMS, Heads: heads, HeadDim: d / heads, Eps: 1e-6, Theta: 1e4}
			return g.QKNormRoPE(a, w, attr), values{a, w}
		}},
		{"swiglu", func(g *graph.Builder) (*graph.Value, values) {
			a, u := x(g, "x", ff), x(g, "u", ff)
			return g.SwiGLU(a, u), values{a, u}
		}},
		{"gelu", func(g *graph.Builder) (*graph.Value, values) { a := x(g, "x", ff); return g.GELU(a), values{a} }},
		{"relu", func(g *graph.Builder) (*graph.Value, values) { a := x(g, "x", ff); return g.ReLU(a), values{a} }},
		{"soft_cap", func(g *graph.Builder) (*graph.Value, values) { a := x(g, "x", ff); return g.SoftCap(a, 30), values{a} }},
		{"softmax", func(g *graph.Builder) (*graph.Value, values) { a := x(g, "x", ff); return g.Softmax(a), values{a} }},
		{"add", func(g *graph.Builder) (*graph.Value, values) { return g.Add(x(g, "x", ff), x(g, "u", ff), nil), nil }},
		{"cross_entropy", func(g *graph.Builder) (*graph.Value, values) {
			a := g.Input("x", graph.F32, batch*seq, vocab)
			y, _ := g.CrossEntropy(a, g.Input("t", graph.I32, batch*seq), nil, graph.CrossEntropyAttr{})
			return y, values{a}
		}},
		{"embedding", func(g *graph.Builder) (*graph.Value, values) {
			w := g.Input("w", graph.F32, vocab, d)
			return g.Embedding(w, g.Input("t", graph.I32, batch, seq)), values{w}
		}},
		{"sum_squares", func(g *graph.Builder) (*graph.Value, values) {
			return g.SumSquares(g.Input("x", graph.F32, vocab, d), nil), nil
		}},
		{"cast", func(g *graph.Builder) (*graph.Value, values) {
			return g.Cast(g.Cast(x(g, "x", ff), graph.BF16), graph.F32), nil
		}},
		{"adamw", func(g *graph.Builder) (*graph.Value, values) {
			w := func(name string) *graph.Value { return g.Var(name, graph.F32, vocab, d) }
			clip := g.Input("clip", graph.F32, 1)
			g.AdamW(w("p"), w("m"), w("v"), g.Input("g", graph.F32, vocab, d), g.Input("hyper", graph.F32, graph.HyperLen), clip, nil, graph.AdamWAttr{Decay: 1})
			return g.Broadcast(clip, nil, 1), nil
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			be, err := New(Options{Threads: 1})
			require.NoError(b, err)
			defer be.Close()
			g := graph.NewBuilder()
			y, wrt := c.build(g)
			g.Output("y", y)
			if wrt != nil {
				grads, err := g.Grad(y, g.Input("dy", graph.F32, y.Shape()...), wrt, nil)
				require.NoError(b, err)
				for _, v := range grads {
					g.Output("d"+v.Name(), v)
				}
			}
			p := g.Build("p")
			s, err := be.NewStore(p.Vars())
			require.NoError(b, err)
			e, err := be.Compile(p, s)
			require.NoError(b, err)
			for _, in := range p.Inputs() {
				data := make([]float32, in.Bytes()/4)
				for i := range data {
					data[i] = float32(3 * math.Sin(float64(i)*1.7))
					if in.DType() == graph.I32 {
						int32s(data)[i] = int32(i * 7919 % vocab)
					}
				}
				require.NoError(b, e.Feed(in.Name(), bytesOf(data)))
			}
			best := map[string]float64{}
			for b.Loop() {
				seconds, err := e.(*executable).Profile()
				require.NoError(b, err)
				for i, n := range p.Nodes() {
					name := n.Op.String()
					if n.Op == graph.OpCast {
						name += "_" + n.Out[0].DType().String()
					}
					if t, ok := best[name]; !ok || seconds[i] < t {
						best[name] = seconds[i]
					}
				}
			}
			for name, t := range best {
				b.ReportMetric(t*1e6, name+"-µs")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
