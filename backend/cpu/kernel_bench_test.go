package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

// GFLOP/s count the products with keys that are not masked: two matrices forward, five backward.
func BenchmarkAttention(b *testing.B) {
	for _, s := range []struct{ batch, seq, heads, kv, h int }{{16, 128, 4, 4, 32}, {8, 256, 6, 6, 64}, {1, 1024, 4, 2, 64}} {
		for _, grad := range []bool{false, true} {
			b.Run(fmt.Sprintf("B%d_T%d_H%d_KV%d_h%d/grad=%t", s.batch, s.seq, s.heads, s.kv, s.h, grad), func(b *testing.B) {
				at := graph.AttentionAttr{Heads: s.heads, KVHeads: s.kv, HeadDim: s.h, Scale: 0.125}
				g := graph.NewBuilder()
				input := func(name string, shape ...int) *graph.Value { return g.Input(name, graph.F32, shape...) }
				q, k, v := input("q", s.batch, s.seq, s.heads*s.h), input("k", s.batch, s.seq, s.kv*s.h), input("v", s.batch, s.seq, s.kv*s.h)
				products := 2
				if grad {
					products = 5
					do, o := input("do", q.Shape()...), input("o", q.Shape()...)
					dq, _, _, _ := g.AttentionGrad(do, q, k, v, o, input("lse", s.batch, s.heads, s.seq), nil, at)
					g.Output("y", dq)
				} else {
					y, _ := g.Attention(q, k, v, nil, at)
					g.Output("y", y)
				}
				run := benchProgram(b, g.Build("attention"))
				for b.Loop() {
					run()
				}
				flops := 2 * products * s.batch * s.heads * s.h * s.seq * (s.seq + 1) / 2
				b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// benchProgram compiles a program of inputs alone, feeds each with small numbers, and returns what runs it on two workers.
func benchProgram(b *testing.B, p *graph.Program) (run func()) {
	dev, err := New(Options{Threads: 2})
	require.NoError(b, err)
	b.Cleanup(func() { dev.Close() })
	st, err := dev.NewStore(nil)
	require.NoError(b, err)
	compiled, err := dev.Compile(p, st)
	require.NoError(b, err)
	e := compiled.(*executable)
	r := rand.New(rand.NewPCG(1, 2))
	for _, in := range p.Inputs() {
		x := make([]float32, in.Elems())
		for i := range x {
			x[i] = r.Float32() - 0.5
		}
		copy(bytesOf(e.inputs[in.Name()].memory), bytesOf(x))
	}
	return func() {
		if err := e.runKernels(nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Cubes, with the pool that programs run on.
func BenchmarkMatMul(b *testing.B) {
	for _, n := range []int{512, 1024, 2048} {
		for name, at := range map[string]graph.MatMulAttr{"NN": {}, "NT": {TransB: true}, "TN": {TransA: true}} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				g := graph.NewBuilder()
				g.Output("y", g.MatMul(g.Input("x", graph.F32, n, n), g.Input("w", graph.F32, n, n), nil, nil, at))
				run := benchProgram(b, g.Build("matmul"))
				run()
				for b.Loop() {
					run()
				}
				b.ReportMetric(2*float64(n)*float64(n)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
