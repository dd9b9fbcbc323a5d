package graph

// MatMulAttr says how the operands of a matmul are read.
type MatMulAttr struct {
	TransA, TransB bool
	Batched        bool
}

// MatMul computes c = addend + op(a) op(b), with op(x) = x or its transpose.
//
// Not batched, a and b are seen as matrices (rows, last): a linear layer y = x Wᵀ with x (B, T, K) and W (N, K) is NT, its
// gradients are dx = dy W, which is NN, and dW = dyᵀ x, which is TN. Batched, they are (batch, rows, last) with the
// batch over all leading dimensions.
//
//	op(a) (M, K), op(b) (K, N), c (M, N), each with the batch before it
//
// The addend has c's size and may be dst. A nil dst is a new value in x's format.
func (b *Builder) MatMul(x, y, addend, dst *Value, attr MatMulAttr) *Value {
	wantFloat(OpMatMul, x, y, addend)
	batch, m, n, k := matMulDims(x, y, attr)
	_, k2 := matrix(y, attr.Batched, !attr.TransB)
	if k != k2 {
		misuse("matmul: %q %v and %q %v with %+v do not fit", x.name, x.shape, y.name, y.shape, attr)
	}
	if yb := y.Elems() / (n * k2); yb != batch {
		misuse("matmul: batches of %q %v and %q %v differ", x.name, x.shape, y.name, y.shape)
	}
	shape := append(Shape{}, x.shape[:len(x.shape)-1]...)
	if attr.TransA {
		if shape = (Shape{m}); attr.Batched {
			shape = append(append(Shape{}, x.shape[:len(x.shape)-2]...), m)
		}
	}
	shape = append(shape, n)
	c := b.out(OpMatMul, dst, "matmul", x.dtype, shape)
	wantElems(OpMatMul, c.Elems(), addend)
	b.node(OpMatMul, []*Value{x, y, addend}, []*Value{c}, attr)
	return c
}

// Linear is y = x Wᵀ for x (..., K) and W (N, K), plus the addend (..., N) if there is one.
func (b *Builder) Linear(x, w, addend *Value) *Value {
	return b.MatMul(x, w, addend, nil, MatMulAttr{TransB: true})
}

// matrix gives the dimensions of op(v): outer first if not swapped.
func matrix(v *Value, batched, swap bool) (int, int) {
	cols := v.shape.Last()
	rows := v.shape.Rows()
	if batched {
		if len(v.shape) < 3 {
			misuse("matmul: %q %v is not a batch of matrices", v.name, v.shape)
		}
		rows = v.shape[len(v.shape)-2]
	}
	if swap {
		return cols, rows
	}
	return rows, cols
}

func matMulDims(x, y *Value, attr MatMulAttr) (batch, m, n, k int) {
	m, k = matrix(x, attr.Batched, attr.TransA)
	n, _ = matrix(y, attr.Batched, !attr.TransB)
	return x.Elems() / (m * k), m, n, k
}

// MatMulDims gives the sizes of a matmul node; batch is 1 when it is not batched.
func MatMulDims(n *Node) (batch, rows, cols, inner int) {
	return matMulDims(n.In[0], n.In[1], AttrOf[MatMulAttr](n))
}

func gradMatMul(s *gradState, n *Node, dy []*Value) {
	x, y, at := n.In[0], n.In[1], AttrOf[MatMulAttr](n)
	dc := dy[0]
	mm := func(v, p, q *Value, ta, tb bool) {
		if !s.wants(v) {
			return
		}
		s.give(v, func(addend, dst *Value) *Value {
			if dst == nil {
				dst = s.temp(v)
			}
			return s.b.MatMul(p, q, addend, dst, MatMulAttr{TransA: ta, TransB: tb, Batched: at.Batched})
		})
	}
	// C = op(A) op(B): d op(A) = dC op(B)ᵀ, d op(B) = op(A)ᵀ dC.
	if at.TransA {
		mm(x, y, dc, at.TransB, true)
	} else {
		mm(x, dc, y, false, !at.TransB)
	}
	if at.TransB {
		mm(y, dc, x, true, at.TransA)
	} else {
		mm(y, x, dc, !at.TransA, false)
	}
	s.pass(n.In[2], dc)
}
