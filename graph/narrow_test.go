package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A step with bf16 activations: parameters are cast once, their gradients are float32 and never go through the cast.
func TestNarrowStep(t *testing.T) {
	b := NewBuilder()
	tokens, targets := b.Input("tokens", I32, 2, 3), b.Input("targets", I32, 2, 3)
	emb, up, down, gain := b.Var("emb", F32, 7, 4), b.Var("up", F32, 6, 4), b.Var("down", F32, 4, 6), b.Var("gain", F32, 4)
	params := []*Value{emb, up, down, gain}
	into := map[*Value]*Value{}
	for _, p := range params {
		into[p] = b.Var("grad."+p.Name(), F32, p.Shape()...)
	}
	x := b.EmbeddingAs(emb, tokens, BF16)
	h := b.GELU(b.Linear(x, b.Stored(up, BF16), nil))
	x = b.RMSNorm(b.Linear(h, b.Stored(down, BF16), nil), gain, x, 1e-6)
	losses, _ := b.CrossEntropy(b.Linear(x, b.Stored(emb, BF16), nil), targets, nil, CrossEntropyAttr{})
	require.Same(t, b.Stored(emb, BF16), b.Stored(emb, BF16))
	require.Same(t, emb, b.Stored(emb, F32))
	loss := b.Sum(losses, nil)
	grads, err := b.Grad(loss, b.Fill(b.Temp("one", F32, 1), 1), params, into)
	require.NoError(t, err)
	for i, p := range params {
		require.Same(t, into[p], grads[i])
	}
	b.Output("loss", loss)
	golden(t, "narrow.program.txt", b.Build("narrow").String())
}

func TestNarrowOperandsAreChecked(t *testing.T) {
	b := NewBuilder()
	x, gain := b.Input("x", BF16, 3, 4), b.Input("gain", BF16, 4)
	require.PanicsWithValue(t, `graph: rms_norm: "gain" is bf16, want f32`, func() { b.RMSNorm(x, gain, nil, 0) })
	require.PanicsWithValue(t, `graph: add: "i" is i32, want f32, bf16 or f16`, func() { b.Add(x, b.Input("i", I32, 3, 4), nil) })
	one := func(name string, d DType, n int) *Value { return b.Var(name, d, n) }
	require.PanicsWithValue(t, `graph: adamw: key "key" is i32[4] and "p" f32, want i32[4] and bf16`, func() {
		p := one("p", F32, 3)
		b.AdamW(p, p, p, p, one("hyper", F32, HyperLen), one("clip", F32, 1), one("key", I32, KeyLen), AdamWAttr{})
	})
	// A variable's gradient is float32, whatever it came through.
	v := b.Var("v", F32, 3, 4)
	y := b.Sum(b.SwiGLU(x, b.Add(x, v, nil)), nil)
	grads, err := b.Grad(y, b.Fill(b.Temp("one", F32, 1), 1), []*Value{v, x}, nil)
	require.NoError(t, err)
	require.Equal(t, []DType{F32, BF16}, []DType{grads[0].DType(), grads[1].DType()})
}

func TestWiden(t *testing.T) {
	b := NewBuilder()
	x, y := b.Input("x", BF16, 2, 3), b.Input("y", F32, 4, 3)
	acc := b.Var("acc", F16, 2, 4)
	b.MatMul(x, y, acc, acc, MatMulAttr{TransB: true})
	n := b.Nodes()[0]
	wide, load, store := Widen(n)
	require.Equal(t, []*Value{x, acc}, []*Value{load[0].Of, load[1].Of})
	require.Equal(t, []Pair{load[1]}, store)
	require.Equal(t, []*Value{load[0].Wide, y, load[1].Wide}, wide.In)
	require.Equal(t, []*Value{load[1].Wide}, wide.Out)
	require.Equal(t, F32, wide.Out[0].DType())
	b.Cast(x, F32)
	same, _, _ := Widen(b.Nodes()[1])
	require.Same(t, b.Nodes()[1], same)
}
