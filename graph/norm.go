package graph

// NormAttr is the attribute of rms_norm, layer_norm and their gradients.
type NormAttr struct {
	Eps float32
}

// RMSNorm normalises each row by its root mean square (Zhang & Sennrich 2019):
//
//	y = addend + x / sqrt(mean(x²) + eps) * gain
//
//	x, y, addend (..., n); gain (n), nil for 1
//
// With an addend it is the output norm of Peri-LN fused with the residual add, y = h + Norm(M(Norm(h))) (Kim et al. 2025, eq. 3).
func (b *Builder) RMSNorm(x, gain, addend *Value, eps float32) *Value {
	return b.norm(OpRMSNorm, x, gain, addend, eps)
}

// LayerNorm is RMSNorm of x minus its row's mean (Ba et al. 2016), without a bias:
//
//	y = addend + (x - mean(x)) / sqrt(var(x) + eps) * gain, var the biased variance (divided by n)
func (b *Builder) LayerNorm(x, gain, addend *Value, eps float32) *Value {
	return b.norm(OpLayerNorm, x, gain, addend, eps)
}

func (b *Builder) norm(op Op, x, gain, addend *Value, eps float32) *Value {
	wantFloat(op, x, gain, addend)
	wantElems(op, x.shape.Last(), gain)
	wantElems(op, x.Elems(), addend)
	y := b.Temp(op.String(), x.dtype, x.shape...)
	b.node(op, []*Value{x, gain, addend}, []*Value{y}, NormAttr{Eps: eps})
	return y
}

// RowsPerPart is how many consecutive rows are summed into one row of a gain's partial gradient, so that the sum's
// order depends on the shape alone and not on the device or its threads.
func RowsPerPart(rows int) int { return max(16, (rows+63)/64) }

// Parts is the number of rows of a partial gradient over rows rows, at most 64.
func Parts(rows int) int { return (rows + RowsPerPart(rows) - 1) / RowsPerPart(rows) }

// NormGrad is the gradient of RMSNorm (op OpRMSNormGrad) or LayerNorm (OpLayerNormGrad). With x̂ the normalised row, r the reciprocal
// root, u = dy * gain:
//
//	rms_norm:   dx = addend + r (u - x̂ mean(u x̂))
//	layer_norm: dx = addend + r (u - mean(u) - x̂ mean(u x̂))
//	dgain_rows[p] = sum over the rows of part p of dy * x̂
//
//	dy, x, addend, dx (..., n); dgain_rows (Parts(R), n), nil without a gain
//
// Row statistics are computed again from x.
func (b *Builder) NormGrad(op Op, dy, x, gain, addend *Value, eps float32) (dx, dgainRows *Value) {
	wantElems(op, x.Elems(), dy, addend)
	wantElems(op, x.shape.Last(), gain)
	dx = b.Temp(op.String(), x.dtype, x.shape...)
	if gain != nil {
		dgainRows = b.Temp("dgain_rows", F32, Parts(x.shape.Rows()), x.shape.Last())
	}
	b.node(op, []*Value{dy, x, gain, addend}, []*Value{dx, dgainRows}, NormAttr{Eps: eps})
	return dx, dgainRows
}

func gradNorm(s *gradState, n *Node, dy []*Value) {
	x, gain, addend := n.In[0], n.In[1], n.In[2]
	op := OpRMSNormGrad
	if n.Op == OpLayerNorm {
		op = OpLayerNormGrad
	}
	var rows *Value
	s.giveFresh(x, func(addend *Value) *Value {
		dx, r := s.b.NormGrad(op, dy[0], x, gain, addend, AttrOf[NormAttr](n).Eps)
		rows = r
		return dx
	})
	s.giveRows(gain, rows)
	s.pass(addend, dy[0])
}
