package graph

// IgnoreTarget is the target of a position that the loss leaves out.
const IgnoreTarget = -100

// CrossEntropyAttr is the attribute of cross_entropy and its gradient.
type CrossEntropyAttr struct {
	ZLoss float32 // coefficient of lse² (PaLM, Chowdhery et al. 2022); 0: off
}

// CrossEntropy gives each row's loss in nats, and keeps its log-sum-exp:
//
//	lse    = log sum exp(logits)
//	losses = lse - logits[target] + zloss lse²
//
//	logits (..., V), targets (...) i32; losses, lse (...) f32, R elements
//
// A target outside 0..V-1, IgnoreTarget among them, gives a loss of 0 and a gradient of 0. The mean over the kept targets is
// Sum(losses, scale) with scale = 1/(number kept), which the host knows and feeds: so that a step over several
// micro-batches has the very gradient of the whole batch. dst, if not nil, is where the losses go.
func (b *Builder) CrossEntropy(logits, targets, dst *Value, attr CrossEntropyAttr) (losses, lse *Value) {
	wantFloat(OpCrossEntropy, logits)
	wantElems(OpCrossEntropy, logits.shape.Rows(), targets)
	if targets.dtype != I32 {
		misuse("cross_entropy: targets %q are %s, want i32", targets.name, targets.dtype)
	}
	losses = b.out(OpCrossEntropy, dst, "losses", F32, targets.shape)
	lse = b.Temp("lse", F32, targets.shape...)
	b.node(OpCrossEntropy, []*Value{logits, targets}, []*Value{losses, lse}, attr)
	return losses, lse
}

// dlogits[r,j] = dlosses[r] (p[r,j] (1 + 2 zloss lse[r]) - [j == target[r]]) with p = exp(logits - lse).
func gradCrossEntropy(s *gradState, n *Node, dy []*Value) {
	logits := n.In[0]
	d := s.b.Temp("dlogits", logits.dtype, logits.shape...)
	s.b.node(OpCrossEntropyGrad, []*Value{logits, n.In[1], n.Out[1], dy[0]}, []*Value{d}, n.Attr)
	s.giveOwned(logits, d)
}

// Sum is scale times the sum of all elements; a nil scale is 1.
//
//	x (...), scale (1), y (1) f32
func (b *Builder) Sum(x, scale *Value) *Value {
	wantFloat(OpSum, x, scale)
	wantElems(OpSum, 1, scale)
	y := b.Temp("sum", F32, 1)
	b.node(OpSum, []*Value{x, scale}, []*Value{y}, nil)
	return y
}

func gradSum(s *gradState, n *Node, dy []*Value) {
	x := n.In[0]
	s.giveOwned(x, s.b.broadcast(dy[0], n.In[1], x.dtype, x.shape))
}

// Broadcast is x times scale in each element; a nil scale is 1.
//
//	x, scale (1), y (shape...)
func (b *Builder) Broadcast(x, scale *Value, shape ...int) *Value {
	return b.broadcast(x, scale, F32, shape)
}

func (b *Builder) broadcast(x, scale *Value, d DType, shape Shape) *Value {
	wantFloat(OpBroadcast, x, scale)
	wantElems(OpBroadcast, 1, x, scale)
	y := b.Temp("broadcast", d, shape...)
	b.node(OpBroadcast, []*Value{x, scale}, []*Value{y}, nil)
	return y
}

// SumRows is addend + the sum over the rows, in their order.
//
//	x (R, n), y, addend (n)
func (b *Builder) SumRows(x, addend, dst *Value) *Value {
	wantFloat(OpSumRows, x, addend)
	n := x.shape.Last()
	y := b.out(OpSumRows, dst, "sum_rows", F32, Shape{n})
	wantElems(OpSumRows, n, addend)
	b.node(OpSumRows, []*Value{x, addend}, []*Value{y}, nil)
	return y
}

// FillAttr is the attribute of fill.
type FillAttr struct {
	Value float32
}

// Fill sets every element of dst.
func (b *Builder) Fill(dst *Value, value float32) *Value {
	wantFloat(OpFill, dst)
	b.node(OpFill, nil, []*Value{dst}, FillAttr{value})
	return dst
}
