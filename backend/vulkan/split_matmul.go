package vulkan

import "github.com/vktrain/vktrain/graph"

// splitMatMul cuts the rows of op(a) and c, the columns of op(b) and c, or the inner dimension, whichever makes a tensor that is too large smaller by whole
// rows as it is stored. What a part needs of the other tensors is columns then, which kernels do not read in place: they are copied to scratch
// memory, and columns of c from there. Only parts of the inner dimension change the order of a sum.
func (d *deviceCaps) splitMatMul(n *graph.Node) ([]dispatch, error) {
	at := graph.AttrOf[graph.MatMulAttr](n)
	a, addend, c := n.In[0], n.In[2], n.Out[0]
	large := func(v *graph.Value) bool { return d.tooLarge(n, v) }
	switch {
	case at.Batched:
		batch, _, _, _ := graph.MatMulDims(n)
		p := pieces{units: batch, in: shares(n.In, batch, []int{0, 1, 2}), out: shares(n.Out, batch, []int{0})}
		return d.independent(n, p, func(v *graph.Value, units, _ int) []int {
			s := v.Shape()
			return []int{units, s[len(s)-2], s[len(s)-1]}
		})
	case at.TransA && large(a):
		return d.splitInner(n)
	case large(c), large(addend), large(a):
		return d.splitMatMulRows(n)
	case at.TransB:
		return d.splitMatMulColumns(n)
	}
	return d.splitInner(n)
}

// matMulPart is how a matmul is cut.
type matMulPart struct{ from, to int }

// matMulParts cuts n units into as few parts as may be that are multiples of what each operand's unit of so many elements can be bound at, and no larger than
// what is bound; nil if there are none.
func (d *deviceCaps) matMulParts(node *graph.Node, n int, each map[*graph.Value]int, copied map[*graph.Value]int) []matMulPart {
	step, most := 2, int64(n) // copies are of words
	for v, unit := range each {
		bytes := unit * v.DType().Size()
		step = lcm(step, lcm(bytes, graph.ViewAlign)/bytes)
		most = min(most, d.maxBindBytes/int64(unit*d.boundSize(node, v)))
	}
	for v, unit := range copied {
		most = min(most, d.maxBindBytes/int64(unit*d.boundSize(node, v)))
	}
	length := evenly(n, int(most), step)
	if length == 0 || length == n {
		return nil
	}
	var parts []matMulPart
	for from := 0; from < n; from += length {
		parts = append(parts, matMulPart{from, min(from+length, n)})
	}
	return parts
}

// splitMatMulRows goes over rows of c.
func (d *deviceCaps) splitMatMulRows(n *graph.Node) ([]dispatch, error) {
	a, b, addend, c := n.In[0], n.In[1], n.In[2], n.Out[0]
	at := graph.AttrOf[graph.MatMulAttr](n)
	_, m, cols, inner := graph.MatMulDims(n)
	each, copied := map[*graph.Value]int{c: cols}, map[*graph.Value]int{}
	if addend != nil {
		each[addend] = cols
	}
	if at.TransA {
		copied[a] = inner
	} else {
		each[a] = inner
	}
	parts := d.matMulParts(n, m, each, copied)
	if parts == nil || at.TransA && d.tooLarge(n, a) {
		return nil, d.cannotSplit(n)
	}
	s := copySplit{d: d}
	var room *graph.Value
	if at.TransA {
		room = graph.Spare("columns", a.DType(), inner, parts[0].to)
	}
	for _, p := range parts {
		rows := p.to - p.from
		in := []*graph.Value{nil, b, nil}
		if at.TransA {
			in[0] = graph.Part(room, 0, inner, rows)
			s.copyColumns(a, m, p.from, in[0], rows, 0, inner, rows)
		} else {
			in[0] = graph.Part(a, p.from*inner, rows, inner)
		}
		if addend != nil {
			in[2] = graph.Part(addend, p.from*cols, rows, cols)
		}
		s.node(&graph.Node{Op: n.Op, In: in, Out: []*graph.Value{graph.Part(c, p.from*cols, rows, cols)}, Attr: n.Attr}, at.TransA)
	}
	return s.done(n)
}

// splitMatMulColumns goes over columns of c, for a b that is stored by them.
func (d *deviceCaps) splitMatMulColumns(n *graph.Node) ([]dispatch, error) {
	a, b, addend, c := n.In[0], n.In[1], n.In[2], n.Out[0]
	_, m, cols, inner := graph.MatMulDims(n)
	parts := d.matMulParts(n, cols, map[*graph.Value]int{b: inner}, map[*graph.Value]int{c: m})
	if parts == nil {
		return nil, d.cannotSplit(n)
	}
	s := copySplit{d: d}
	room := graph.Spare("columns", c.DType(), m, parts[0].to)
	for _, p := range parts {
		w := p.to - p.from
		out, in := graph.Part(room, 0, m, w), []*graph.Value{a, graph.Part(b, p.from*inner, w, inner), nil}
		if addend != nil {
			s.copyColumns(addend, cols, p.from, out, w, 0, m, w)
			in[2] = out
		}
		s.node(&graph.Node{Op: n.Op, In: in, Out: []*graph.Value{out}, Attr: n.Attr}, true)
		s.copyColumns(out, w, 0, c, cols, p.from, m, w)
	}
	return s.done(n)
}

// splitInner goes over the inner dimension and adds up.
func (d *deviceCaps) splitInner(n *graph.Node) ([]dispatch, error) {
	a, b, c := n.In[0], n.In[1], n.Out[0]
	at := graph.AttrOf[graph.MatMulAttr](n)
	_, m, cols, inner := graph.MatMulDims(n)
	each, copied := map[*graph.Value]int{}, map[*graph.Value]int{}
	sort := func(v *graph.Value, rows bool, unit int) {
		if rows {
			each[v] = unit
		} else {
			copied[v] = unit
		}
	}
	sort(a, at.TransA, m)
	sort(b, !at.TransB, cols)
	parts := d.matMulParts(n, inner, each, copied)
	if parts == nil || !at.TransA && d.tooLarge(n, a) || at.TransB && d.tooLarge(n, b) {
		return nil, d.cannotSplit(n)
	}
	s := copySplit{d: d}
	var roomA, roomB *graph.Value
	if !at.TransA {
		roomA = graph.Spare("columns", a.DType(), m, parts[0].to)
	}
	if at.TransB {
		roomB = graph.Spare("columns", b.DType(), cols, parts[0].to)
	}
	addend, sum := n.In[2], c
	if c.DType() != graph.F32 { // it is rounded once, not after each part
		sum = graph.Spare("sum", graph.F32, c.Shape()...)
	}
	for _, p := range parts {
		k := p.to - p.from
		var in [3]*graph.Value
		if at.TransA {
			in[0] = graph.Part(a, p.from*m, k, m)
		} else {
			in[0] = graph.Part(roomA, 0, m, k)
			s.copyColumns(a, inner, p.from, in[0], k, 0, m, k)
		}
		if at.TransB {
			in[1] = graph.Part(roomB, 0, cols, k)
			s.copyColumns(b, inner, p.from, in[1], k, 0, cols, k)
		} else {
			in[1] = graph.Part(b, p.from*cols, k, cols)
		}
		in[2] = addend
		s.node(&graph.Node{Op: n.Op, In: in[:], Out: []*graph.Value{sum}, Attr: n.Attr}, true)
		addend = sum
	}
	if sum != c {
		s.node(&graph.Node{Op: graph.OpCast, In: []*graph.Value{sum}, Out: []*graph.Value{c}}, true)
	}
	return s.done(n)
}
