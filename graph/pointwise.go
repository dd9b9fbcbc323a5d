package graph

// Softmax of each row: y = exp(x - max) / sum exp(x - max).
//
//	x, y (..., n)
func (b *Builder) Softmax(x *Value) *Value { return b.unary(OpSoftmax, nil, x) }

// GELU is x Φ(x) with the exact Φ, (1 + erf(x/√2))/2 (Hendrycks & Gimpel 2016).
func (b *Builder) GELU(x *Value) *Value { return b.unary(OpGELU, nil, x) }

// ReLU is max(x, 0). Its gradient at 0 is 0. A NaN stays a NaN.
func (b *Builder) ReLU(x *Value) *Value { return b.unary(OpReLU, nil, x) }

// SoftCapAttr is the attribute of soft_cap and its gradient.
type SoftCapAttr struct {
	Cap float32 // positive
}

// SoftCap is c tanh(x/c) (Gemma 2).
func (b *Builder) SoftCap(x *Value, c float32) *Value {
	return b.unary(OpSoftCap, SoftCapAttr{Cap: c}, x)
}

// SwiGLU is silu(gate) * up with silu(t) = t / (1 + exp(-t)) (Shazeer 2020).
//
//	gate, up, y (..., n)
func (b *Builder) SwiGLU(gate, up *Value) *Value { return b.unary(OpSwiGLU, nil, gate, up) }

// unary appends an operator of one output whose operands all have that output's size. It has the format of the last of them, which
// for gradients is that of the value whose gradient it is.
func (b *Builder) unary(op Op, attr any, in ...*Value) *Value {
	wantFloat(op, in...)
	wantElems(op, in[0].Elems(), in...)
	y := b.Temp(op.String(), in[len(in)-1].dtype, in[0].shape...)
	b.node(op, in, []*Value{y}, attr)
	return y
}

// The gradients. dx of softmax is y (dy - sum over the row of dy y); of soft_cap dy (1 - (y/c)²); of gelu
// dy (Φ(x) + x φ(x)); of relu dy where x > 0 (0 elsewhere, NaN where x is); of swiglu, with σ the logistic function of gate,
// dgate = dy up σ (1 + gate (1 - σ)), dup = dy gate σ.

func gradSoftmax(s *gradState, n *Node, dy []*Value) {
	s.giveOwned(n.In[0], s.b.unary(OpSoftmaxGrad, nil, dy[0], n.Out[0]))
}

func gradSoftCap(s *gradState, n *Node, dy []*Value) {
	s.giveOwned(n.In[0], s.b.unary(OpSoftCapGrad, n.Attr, dy[0], n.Out[0]))
}

func gradGELU(s *gradState, n *Node, dy []*Value) {
	s.giveOwned(n.In[0], s.b.unary(OpGELUGrad, nil, dy[0], n.In[0]))
}

func gradReLU(s *gradState, n *Node, dy []*Value) {
	s.giveOwned(n.In[0], s.b.unary(OpReLUGrad, nil, dy[0], n.In[0]))
}

func gradSwiGLU(s *gradState, n *Node, dy []*Value) {
	gate, up := n.In[0], n.In[1]
	dgate := s.b.Temp("dgate", gate.dtype, gate.shape...)
	dup := s.b.Temp("dup", up.dtype, gate.shape...)
	s.b.node(OpSwiGLUGrad, []*Value{dy[0], gate, up}, []*Value{dgate, dup}, nil)
	s.giveOwned(gate, dgate)
	s.giveOwned(up, dup)
}

// Cast converts between f32, bf16 and f16, rounding to nearest even; too large for f16 is inf, a NaN stays one.
func (b *Builder) Cast(x *Value, to DType) *Value {
	if x.dtype == I32 || to == I32 || x.dtype == to {
		misuse("cast of %s to %s", x.dtype, to)
	}
	y := b.Temp("cast", to, x.shape...)
	b.node(OpCast, []*Value{x}, []*Value{y}, nil)
	return y
}

type castKey struct {
	v  *Value
	to DType
}

// Stored is v itself if it has the format, else its cast, which is made once however often it is asked for: a parameter as matrix products read it.
// [Builder.Grad] gives the gradient of what was cast in float32, without rounding it to the cast's format on the way.
func (b *Builder) Stored(v *Value, to DType) *Value {
	if v.dtype == to {
		return v
	}
	key := castKey{v, to}
	if b.casts[key] == nil {
		if b.casts == nil {
			b.casts = map[castKey]*Value{}
		}
		b.casts[key] = b.Cast(v, to)
	}
	return b.casts[key]
}

func gradCast(s *gradState, n *Node, dy []*Value) {
	x := n.In[0]
	if dy[0].dtype == x.dtype {
		s.pass(x, dy[0])
		return
	}
	s.giveOwned(x, s.b.Cast(dy[0], x.dtype))
}

// Add is a + b, elementwise. dst may be either of them, or nil: then it is a new value in a's format.
func (b *Builder) Add(x, y, dst *Value) *Value {
	wantFloat(OpAdd, x, y)
	wantElems(OpAdd, x.Elems(), y)
	c := b.out(OpAdd, dst, "add", x.dtype, x.shape)
	b.node(OpAdd, []*Value{x, y}, []*Value{c}, nil)
	return c
}

func gradAdd(s *gradState, n *Node, dy []*Value) {
	s.pass(n.In[0], dy[0])
	s.pass(n.In[1], dy[0])
}
