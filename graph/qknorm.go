package graph

import "fmt"

// QKNorm is the normalisation of a query or key head.
type QKNorm uint8

const (
	QKNone      QKNorm = iota // no normalisation: RoPE alone
	QKRMS                     // RMSNorm over the head's elements (Gemma 3, Qwen 3)
	QKLayerNorm               // LayerNorm over them, scale only (ViT-22B, Dehghani et al. 2023)
	QKL2                      // x / sqrt(sum x² + eps), no gain (Henry et al. 2020)
)

// String gives none, rms, layernorm or l2.
func (k QKNorm) String() string {
	switch k {
	case QKNone:
		return "none"
	case QKRMS:
		return "rms"
	case QKLayerNorm:
		return "layernorm"
	case QKL2:
		return "l2"
	}
	return fmt.Sprintf("QKNorm(%d)", uint8(k))
}

// QKNormRoPEAttr is the attribute of qk_norm_rope and its gradient.
type QKNormRoPEAttr struct {
	Norm    QKNorm
	Heads   int
	HeadDim int // even
	Eps     float32
	Theta   float32 // RoPE's base
}

// QKNormRoPE normalises each head of each position, then rotates it by its position (Su et al. 2021, pairs in half-split
// order). With x̂ = norm(head) * gain, position t in 0..T-1 and i in 0..h/2-1:
//
//	a = t * theta^(-2i/h)
//	y[i]     = x̂[i] cos a - x̂[i+h/2] sin a
//	y[i+h/2] = x̂[i+h/2] cos a + x̂[i] sin a
//
//	x, y (B, T, heads*h); gain (h), shared by the heads, nil for 1 (always nil for none and l2)
//
// QK-Norm over the whole projection (OLMo 2) is RMSNorm and then this with QKNone.
func (b *Builder) QKNormRoPE(x, gain *Value, attr QKNormRoPEAttr) *Value {
	checkHeads(OpQKNormRoPE, x, attr.Heads, attr.HeadDim)
	wantFloat(OpQKNormRoPE, x, gain)
	wantElems(OpQKNormRoPE, attr.HeadDim, gain)
	if attr.HeadDim%2 != 0 || gain != nil && (attr.Norm == QKNone || attr.Norm == QKL2) {
		misuse("qk_norm_rope of %q %v with %+v", x.name, x.shape, attr)
	}
	y := b.Temp("qk_norm_rope", x.dtype, x.shape...)
	b.node(OpQKNormRoPE, []*Value{x, gain}, []*Value{y}, attr)
	return y
}

func checkHeads(op Op, x *Value, heads, headDim int) {
	if len(x.shape) != 3 || heads <= 0 || x.shape[2] != heads*headDim {
		misuse("%s: %q has shape %v, want (B, T, %d*%d)", op, x.name, x.shape, heads, headDim)
	}
}

// QKNormRoPEGrad rotates dy back, u = Rᵀ dy, then is the gradient of the norm over each head: as NormGrad for rms and
// layernorm; for l2, with r = 1/sqrt(sum x² + eps) and x̂ = r x, dx = r (u - x̂ sum(u x̂)); for none, dx = u.
//
//	dy, x, dx (B, T, heads*h); dgain_rows (Parts(B*T*heads), h), rows in order (b, t, head), nil without a gain
func (b *Builder) QKNormRoPEGrad(dy, x, gain *Value, attr QKNormRoPEAttr) (dx, dgainRows *Value) {
	wantElems(OpQKNormRoPEGrad, x.Elems(), dy)
	dx = b.Temp("qk_norm_rope_grad", x.dtype, x.shape...)
	if gain != nil {
		dgainRows = b.Temp("dgain_rows", F32, Parts(x.Elems()/attr.HeadDim), attr.HeadDim)
	}
	b.node(OpQKNormRoPEGrad, []*Value{dy, x, gain}, []*Value{dx, dgainRows}, attr)
	return dx, dgainRows
}

func gradQKNormRoPE(s *gradState, n *Node, dy []*Value) {
	dx, rows := s.b.QKNormRoPEGrad(dy[0], n.In[0], n.In[1], AttrOf[QKNormRoPEAttr](n))
	s.giveOwned(n.In[0], dx)
	s.giveRows(n.In[1], rows)
}
