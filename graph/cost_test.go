package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCost(t *testing.T) {
	b := NewBuilder()
	const rows, width, out, vocab = 16, 32, 48, 100
	x, w := b.Var("x", F32, 2, 8, width), b.Var("w", F32, out, width)
	gain, tokens := b.Var("gain", F32, width), b.Var("tokens", I32, 2, 8)
	table := b.Var("table", F32, vocab, width)
	y := b.Linear(x, w, nil)
	b.Linear(x, w, y)
	b.Attention(x, x, x, nil, AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 8, Scale: 1})
	b.Embedding(table, tokens)
	b.RMSNorm(x, nil, nil, 1)
	b.RMSNorm(x, gain, x, 1)
	b.QKNormRoPE(x, nil, QKNormRoPEAttr{Heads: 4, HeadDim: 8})
	b.QKNormRoPE(x, b.Var("qgain", F32, 8), QKNormRoPEAttr{Norm: QKRMS, Heads: 4, HeadDim: 8})
	b.SwiGLU(x, x)
	m, v, g := b.Var("m", F32, out, width), b.Var("v", F32, out, width), b.Var("g", F32, out, width)
	b.AdamW(w, m, v, g, b.Var("hyper", F32, HyperLen), b.Var("clip", F32, 1), nil, AdamWAttr{})
	b.Fill(m, 0)
	pairs := int64(2 * 4 * (8 * 9 / 2)) // batch, heads, pairs at or below the diagonal
	nodes := b.nodes
	for i, want := range []struct{ flops, words int64 }{
		{2 * rows * out * width, rows*width + out*width + rows*out},
		{2*rows*out*width + rows*out, rows*width + out*width + 2*rows*out},
		{2 * 2 * 8 * pairs, 4*rows*width + 2*4*8},
		{0, rows + 2*rows*width}, // the looked-up rows only
		{3 * rows * width, 2 * rows * width},
		{5 * rows * width, 3*rows*width + width},
		{3 * rows * width, 2 * rows * width},
		{7 * rows * width, 2*rows*width + 8},
		{4 * rows * width, 3 * rows * width},
		{16 * out * width, 7*out*width + HyperLen + 1},
		{0, out * width},
	} {
		flops, bytes := Cost(nodes[i])
		require.Equal(t, want.flops, flops, nodes[i].String())
		require.Equal(t, 4*want.words, bytes, nodes[i].String())
	}
}

// Every operator has a row, of an operand that it has.
func TestEveryOpHasACost(t *testing.T) {
	for _, op := range Ops() {
		switch op {
		case OpMatMul, OpAttention, OpAttentionGrad:
			continue
		}
		in, _ := op.Operands()
		c := elementCosts[op]
		require.Less(t, c.in, len(in), op.String())
		require.True(t, c.in < 0 || c.ops > 0 || op == OpBroadcast || op == OpCast, op.String())
	}
}
