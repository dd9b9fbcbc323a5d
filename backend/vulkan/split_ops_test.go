//go:build cgo

package vulkan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// runOnce gives the outputs of a program whose variables are random, and the kernels that it ran.
func runOnce(t *testing.T, b *Backend, p *graph.Program) (map[string][]byte, []string) {
	t.Helper()
	e := compile(t, b, p, randomStores(t, b, p)[0])
	ticket, err := e.Submit()
	require.NoError(t, err)
	got := map[string][]byte{}
	for _, o := range p.Outputs() {
		got[o.Name] = fetch(t, e, ticket, o.Name, o.Value.Bytes())
	}
	return got, e.Kernels()
}

// headNorms is QK-Norm with RoPE, and its gradient.
func headNorms(norm graph.QKNorm, format graph.DType, gains bool, batch, positions, heads, headDim int) *graph.Program {
	b := graph.NewBuilder()
	x, dy := b.Var("x", graph.F32, batch, positions, heads*headDim), b.Var("dy", graph.F32, batch, positions, heads*headDim)
	if format != graph.F32 {
		x, dy = b.Cast(x, format), b.Cast(dy, format)
	}
	var gain *graph.Value
	if gains {
		gain = b.Var("gain", graph.F32, headDim)
	}
	at := graph.QKNormRoPEAttr{Norm: norm, Heads: heads, HeadDim: headDim, Eps: 1e-6, Theta: 10000}
	b.Output("y", b.QKNormRoPE(x, gain, at))
	dx, dgain := b.QKNormRoPEGrad(dy, x, gain, at)
	b.Output("dx", dx)
	if gains {
		b.Output("dgain", dgain)
	}
	return b.Build("heads")
}

// rowNorms is the gradient of a norm of rows with a gain and an addend.
func rowNorms(op graph.Op, format graph.DType, rows, length int) *graph.Program {
	b := graph.NewBuilder()
	x, dy, addend := b.Var("x", graph.F32, rows, length), b.Var("dy", graph.F32, rows, length), b.Var("addend", graph.F32, rows, length)
	if format != graph.F32 {
		x, dy, addend = b.Cast(x, format), b.Cast(dy, format), b.Cast(addend, format)
	}
	dx, dgain := b.NormGrad(op, dy, x, b.Var("gain", graph.F32, length), addend, 1e-6)
	b.Output("dx", dx)
	b.Output("dgain", dgain)
	return b.Build("rows")
}

// Norms in parts keep every bit, of the gain's gradient too: where its rows do not end with a sequence, where the last of them is the sum of fewer, and where a
// sequence is larger than what can be bound.
func TestNormsInPartsKeepBits(t *testing.T) {
	whole, parts := openTest(t, Options{}), openTest(t, Options{Limits: "range=64K"})
	for _, p := range []*graph.Program{
		headNorms(graph.QKRMS, graph.F32, true, 1, 61, 5, 64), // 305 heads in 20 sums, the last of one
		headNorms(graph.QKRMS, graph.F32, true, 2, 171, 3, 20),
		headNorms(graph.QKLayerNorm, graph.F32, true, 7, 59, 3, 64),
		headNorms(graph.QKRMS, graph.BF16, true, 1, 131, 5, 64),
		headNorms(graph.QKLayerNorm, graph.F16, true, 1, 131, 5, 64),
		headNorms(graph.QKRMS, graph.BF16, true, 1, 331, 5, 10), // through float32
		headNorms(graph.QKL2, graph.F32, false, 1, 61, 5, 64),
		headNorms(graph.QKNone, graph.BF16, false, 3, 131, 5, 64),
		rowNorms(graph.OpRMSNormGrad, graph.F32, 305, 64),
		rowNorms(graph.OpLayerNormGrad, graph.BF16, 1031, 96),
		rowNorms(graph.OpRMSNormGrad, graph.F32, 611, 36),
	} {
		want, _ := runOnce(t, whole, p)
		got, kernels := runOnce(t, parts, p)
		require.Equal(t, want, got, p)
		require.NotEmpty(t, kernels)
		for i, n := range p.Nodes() {
			large := parts.caps.needsSplit(n)
			require.True(t, large || n.Op == graph.OpCast, "%s", n)
			list, err := lowerNode(parts.caps, n)
			require.NoError(t, err)
			require.Greater(t, len(list), 1, "node %d", i)
		}
	}
}

// Sums of squares in parts keep every bit, whether a part's chunks fill its workgroups or not.
func TestSumSquaresInPartsKeepBits(t *testing.T) {
	whole, parts := openTest(t, Options{}), openTest(t, Options{Limits: "range=64K"})
	squares := func(elems int) *graph.Program {
		b := graph.NewBuilder()
		b.Output("sums", b.SumSquares(b.Var("x", graph.F32, elems), nil))
		return b.Build("squares")
	}
	for elems, launches := range map[int]int{16385: 2, 70001: 5, 100003: 7, 500009: 32} {
		p := squares(elems)
		list, err := lowerNode(parts.caps, p.Nodes()[0])
		require.NoError(t, err)
		require.Len(t, list, launches, elems)
		want, _ := runOnce(t, whole, p)
		got, _ := runOnce(t, parts, p)
		require.Equal(t, want, got, elems)
	}
	_, err := lowerNode(parts.caps, squares(1 << 20).Nodes()[0])
	require.ErrorContains(t, err, `tensor "x" has 4194304 bytes, kernels bind at most 65536`, "a chunk and where it begins in its binding do not fit")
}

// The QK-Norm of a model of width 1280 on 32 times 1024 tokens, on a device that binds 128 MiB.
func TestQKNormOfALargeBatch(t *testing.T) {
	d := roomyCaps(backend.Integrated)
	d.maxBindBytes = 128 << 20
	for _, n := range headNorms(graph.QKRMS, graph.F32, true, 32, 1024, 20, 64).Nodes() {
		list, err := lowerNode(d, n)
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, dis := range list {
			_, err := checkDispatch(d, dis, lookupShader)
			require.NoError(t, err)
		}
	}
}

// attentionCase is attention and its gradient.
type attentionCase struct {
	format                              graph.DType
	batch, positions, heads, kv, length int
	stats, scale                        bool
	softCap                             float32
}

func (a attentionCase) program() *graph.Program {
	b := graph.NewBuilder()
	operand := func(name string, heads int) *graph.Value {
		x := b.Var(name, graph.F32, a.batch, a.positions, heads*a.length)
		if a.format != graph.F32 {
			return b.Cast(x, a.format)
		}
		return x
	}
	q, k, v, do := operand("q", a.heads), operand("k", a.kv), operand("v", a.kv), operand("do", a.heads)
	at := graph.AttentionAttr{Heads: a.heads, KVHeads: a.kv, HeadDim: a.length, Scale: 0.5, SoftCap: a.softCap}
	var scale *graph.Value
	if a.scale {
		at.Scale, scale = 0, b.Var("scale", graph.F32, 1)
	}
	names := map[string]*graph.Value{}
	if a.stats {
		names["o"], names["lse"], names["top"], names["entropy"] = b.AttentionStats(q, k, v, scale, at)
	} else {
		names["o"], names["lse"] = b.Attention(q, k, v, scale, at)
	}
	names["dq"], names["dk"], names["dv"], names["dscale"] = b.AttentionGrad(do, q, k, v, names["o"], names["lse"], scale, at)
	for name, v := range names {
		if v != nil {
			b.Output(name, v)
		}
	}
	return b.Build("attention")
}

// Attention in parts keeps every bit: over sequences, over heads of a sequence that is too large, and over sequences that do not begin where they can be bound.
func TestAttentionInPartsKeepsBits(t *testing.T) {
	whole, parts := openTest(t, Options{}), openTest(t, Options{Limits: "range=64K"})
	for _, a := range []attentionCase{
		{format: graph.F32, batch: 4, positions: 64, heads: 4, kv: 4, length: 32},                                        // sequences
		{format: graph.F32, batch: 1, positions: 101, heads: 6, kv: 3, length: 32},                                       // two key heads, and one
		{format: graph.F32, batch: 2, positions: 131, heads: 5, kv: 5, length: 34, stats: true, scale: true, softCap: 2}, // heads of two sequences
		{format: graph.F32, batch: 3, positions: 101, heads: 2, kv: 2, length: 34, scale: true},                          // whole sequences
		{format: graph.BF16, batch: 1, positions: 201, heads: 6, kv: 3, length: 32, scale: true},
		{format: graph.F16, batch: 1, positions: 101, heads: 6, kv: 3, length: 32, stats: true, softCap: 5}, // through float32, of which its gradient needs none
	} {
		p := a.program()
		want, _ := runOnce(t, whole, p)
		got, _ := runOnce(t, parts, p)
		require.Equal(t, want, got, "%+v", a)
		require.True(t, slices.ContainsFunc(p.Nodes(), func(n *graph.Node) bool { return n.Op == graph.OpAttention && parts.caps.needsSplit(n) }), "%+v", a)
	}
}

// Products in parts, of which some would copy odd rows of 16-bit elements. All numbers are whole and small, so that every order gives the same.
func TestOddProductsInParts(t *testing.T) {
	b := openTest(t, Options{Limits: "range=64K"})
	for _, format := range []graph.DType{graph.BF16, graph.F16} {
		for _, c := range []struct {
			transA, transB, addend bool
			m, n, k                int
		}{
			{true, false, false, 131, 256, 9}, // rows of c, columns of a
			{false, true, true, 5, 701, 50},   // columns of c
			{true, true, false, 50, 7, 701},   // the inner dimension, columns of b
			{false, false, true, 5, 50, 701},  // the inner dimension, columns of a
		} {
			t.Run(fmt.Sprint(format, c), func(t *testing.T) {
				shape := func(rows, cols int, swap bool) []int {
					if swap {
						return []int{cols, rows}
					}
					return []int{rows, cols}
				}
				g := graph.NewBuilder()
				var addend *graph.Value
				if c.addend {
					addend = g.Var("addend", format, c.m, c.n)
				}
				g.MatMul(g.Var("a", format, shape(c.m, c.k, c.transA)...), g.Var("b", format, shape(c.k, c.n, c.transB)...), addend,
					g.Var("c", format, c.m, c.n), graph.MatMulAttr{TransA: c.transA, TransB: c.transB})
				p := g.Build("odd")
				require.Contains(t, compile(t, b, p, newStore(t, b, p)).Kernels()[0], "cast")
				why, err := b.testLowered(p, lowerNode)
				require.NoError(t, err)
				require.Empty(t, why)
			})
		}
	}
}

// What cannot go over parts is refused with the tensor's and the limit's names.
func TestUnsplitTensorsAreNamed(t *testing.T) {
	b := graph.NewBuilder()
	x := b.Input("x", graph.F32, 1<<14, 3)
	_, dgain := b.NormGrad(graph.OpRMSNormGrad, x, x, b.Input("gain", graph.F32, 3), nil, 1e-6)
	b.Output("dgain", dgain)
	d := roomyCaps(backend.Discrete)
	d.maxBindBytes = 1 << 16
	_, err := lowerNode(d, b.Build("p").Nodes()[0])
	var unsupported *backend.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, `tensor "x" has 196608 bytes, kernels bind at most 65536 at once (maxStorageBufferRange)`)
	require.ErrorContains(t, err, "use a smaller batch")
}
