package vulkan

import (
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// A kernel sees at most maxStorageBufferRange bytes of a buffer at once, 128 MiB on some drivers. A node with a larger operand becomes several, over
// parts of its operands, each of which is lowered as any other and may be split again. Parts begin where every device can bind, and hold whole rows where
// rows belong together, so that most results have the bits of the node in one piece. The rules of products of matrices are in split_matmul.go.

// tooLarge tells an operand that the kernels of a node could not bind.
func (d *deviceCaps) tooLarge(n *graph.Node, v *graph.Value) bool {
	return v != nil && int64(storageBytes(v.Elems()*d.boundSize(n, v))) > d.maxBindBytes
}

// boundSize is the size of an operand's elements as the kernels of a node see them: some see 16-bit tensors through float32 stand-ins.
func (d *deviceCaps) boundSize(n *graph.Node, v *graph.Value) int {
	if d.needsWide(n) {
		return max(v.DType().Size(), 4)
	}
	return v.DType().Size()
}

func (d *deviceCaps) needsSplit(n *graph.Node) bool {
	large := func(v *graph.Value) bool { return d.tooLarge(n, v) }
	return slices.ContainsFunc(n.In, large) || slices.ContainsFunc(n.Out, large)
}

// lowerSplit lowers a node over parts of its operands.
func (d *deviceCaps) lowerSplit(n *graph.Node) ([]dispatch, error) {
	switch n.Op {
	case graph.OpEmbedding:
		return d.splitEmbedding(n)
	case graph.OpEmbeddingGrad:
		return d.splitEmbeddingGrad(n)
	case graph.OpMatMul:
		return d.splitMatMul(n)
	case graph.OpRMSNorm, graph.OpLayerNorm:
		return d.splitRows(n, []int{0, 2}, []int{0})
	case graph.OpRMSNormGrad, graph.OpLayerNormGrad:
		return d.splitNormGrad(n)
	case graph.OpQKNormRoPE, graph.OpQKNormRoPEGrad:
		return d.splitQKNorm(n)
	case graph.OpAttention, graph.OpAttentionGrad:
		return d.splitAttention(n)
	case graph.OpSoftmax:
		return d.splitRows(n, []int{0}, []int{0})
	case graph.OpSoftmaxGrad:
		return d.splitRows(n, []int{0, 1}, []int{0})
	case graph.OpCrossEntropy:
		return d.splitRows(n, []int{0, 1}, []int{0, 1})
	case graph.OpCrossEntropyGrad:
		return d.splitRows(n, []int{0, 1, 2, 3}, []int{0})
	case graph.OpRowMoments:
		return d.splitRows(n, []int{0}, []int{0, 1})
	case graph.OpRowAngle:
		return d.splitRows(n, []int{0, 1}, []int{0})
	case graph.OpRowNorms:
		return d.splitRows(n, []int{0, 1, 2}, []int{0})
	case graph.OpSummary, graph.OpTopMagnitudes, graph.OpDots, graph.OpAdamWStats: // which go over parts by themselves
		return lowerings[n.Op](d, n)
	case graph.OpSum:
		return d.splitSum(n)
	case graph.OpSumRows:
		return d.splitSumRows(n)
	case graph.OpSumSquares:
		return d.splitSumSquares(n)
	case graph.OpSwiGLU, graph.OpSwiGLUGrad, graph.OpGELU, graph.OpGELUGrad, graph.OpReLU, graph.OpReLUGrad, graph.OpSoftCap, graph.OpSoftCapGrad,
		graph.OpAdd, graph.OpBroadcast, graph.OpFill, graph.OpAdamW, graph.OpCast:
		return d.splitElements(n)
	}
	return nil, d.cannotSplit(n)
}

// cannotSplit names the operand and the limit.
func (d *deviceCaps) cannotSplit(n *graph.Node) error {
	for _, v := range slices.Concat(n.In, n.Out) {
		if d.tooLarge(n, v) {
			return d.unsupported(n, "tensor %q has %d bytes, kernels bind at most %d at once (maxStorageBufferRange), and the operator cannot go over parts of that: "+
				"use a smaller batch, sequence, or vocabulary", v.Name(), v.Elems()*d.boundSize(n, v), d.maxBindBytes)
		}
	}
	return d.unsupported(n, "it cannot go over parts of its operands")
}

// lowerAll lowers nodes that stand for one. Those after the first wait for those before if inOrder.
func (d *deviceCaps) lowerAll(nodes []*graph.Node, inOrder bool) ([]dispatch, error) {
	var list []dispatch
	for i, n := range nodes {
		part, err := lowerNode(d, n)
		if err != nil {
			return nil, err
		}
		part[0].barrier = part[0].barrier || inOrder && i > 0
		list = append(list, part...)
	}
	return list, nil
}

// pieces says how a node is cut along an axis of so many units: how many elements of each operand belong to a unit, 0 of one that each part sees whole.
type pieces struct {
	units   int
	in, out []int
	unit    int // parts are multiples of this many units, but for the last
}

// length is the most units that a part may have so that it begins where it can be bound and its operands fit, evened out; 0: there is none.
func (d *deviceCaps) length(n *graph.Node, p pieces) int {
	step, most := max(p.unit, 1), int64(p.units)
	for i, v := range slices.Concat(n.In, n.Out) {
		each := slices.Concat(p.in, p.out)[i]
		if v == nil || each == 0 {
			continue
		}
		bytes := each * v.DType().Size()
		step = lcm(step, lcm(bytes, graph.ViewAlign)/bytes)
		most = min(most, d.maxBindBytes/int64(each*d.boundSize(n, v)))
	}
	return evenly(p.units, int(most), step)
}

// evenly gives the length of parts, a multiple of step and at most `most`, that n is cut into as few as can be; 0: there is none.
func evenly(n, most, step int) int {
	if most >= n {
		return n
	}
	most = most / step * step
	if most == 0 {
		return 0
	}
	count := ceilDiv(n, most)
	return ceilDiv(ceilDiv(n, count), step) * step
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// part is units from..to-1 of a node; shape gives that of an operand's part by its units.
func (p pieces) part(n *graph.Node, from, to int, shape func(v *graph.Value, units, each int) []int) *graph.Node {
	of := map[*graph.Value]*graph.Value{} // what is an input and an output stays one
	cut := func(list []*graph.Value, each []int) []*graph.Value {
		parts := slices.Clone(list)
		for i, v := range list {
			if v != nil && each[i] > 0 {
				if of[v] == nil {
					of[v] = graph.Part(v, from*each[i], shape(v, to-from, each[i])...)
				}
				parts[i] = of[v]
			}
		}
		return parts
	}
	attr := n.Attr
	if at, ok := attr.(graph.AdamWAttr); ok {
		at.First += from
		attr = at
	}
	return &graph.Node{Op: n.Op, In: cut(n.In, p.in), Out: cut(n.Out, p.out), Attr: attr}
}

// cut gives the parts of a node, none if it cannot be.
func (d *deviceCaps) cut(n *graph.Node, p pieces, shape func(v *graph.Value, units, each int) []int) []*graph.Node {
	length := d.length(n, p)
	if length == 0 || length >= p.units {
		return nil
	}
	var list []*graph.Node
	for from := 0; from < p.units; from += length {
		list = append(list, p.part(n, from, min(from+length, p.units), shape))
	}
	return list
}

// independent lowers the parts of a node that do not need each other.
func (d *deviceCaps) independent(n *graph.Node, p pieces, shape func(v *graph.Value, units, each int) []int) ([]dispatch, error) {
	parts := d.cut(n, p, shape)
	if parts == nil {
		return nil, d.cannotSplit(n)
	}
	return d.lowerAll(parts, false)
}

// shares gives each operand's elements a unit: those that the indices name are divided among the units.
func shares(list []*graph.Value, units int, of []int) []int {
	each := make([]int, len(list))
	for _, i := range of {
		if i < len(list) && list[i] != nil {
			each[i] = list[i].Elems() / units
		}
	}
	return each
}

// asRows and its like give the shape of a part.
func asRows(v *graph.Value, units, each int) []int { return []int{units, each} }

func asElements(_ *graph.Value, units, each int) []int { return []int{units * each} }

func asBatch(v *graph.Value, units, _ int) []int {
	return append([]int{units}, v.Shape()[1:]...)
}

// splitElements goes over ranges of elements: every operand that has as many as the output.
func (d *deviceCaps) splitElements(n *graph.Node) ([]dispatch, error) {
	count := n.Out[0].Elems()
	one := func(list []*graph.Value) []int {
		each := make([]int, len(list))
		for i, v := range list {
			if v != nil && v.Elems() == count {
				each[i] = 1
			}
		}
		return each
	}
	return d.independent(n, pieces{units: count, in: one(n.In), out: one(n.Out)}, asElements)
}

// splitRows goes over rows of the first operand, of the operands that the indices name.
func (d *deviceCaps) splitRows(n *graph.Node, in, out []int) ([]dispatch, error) {
	rows := n.In[0].Shape().Rows()
	return d.independent(n, pieces{units: rows, in: shares(n.In, rows, in), out: shares(n.Out, rows, out)}, asRows)
}

// splitNormGrad is splitRows, but each row of a gain's partial gradient stays the sum of the same rows.
func (d *deviceCaps) splitNormGrad(n *graph.Node) ([]dispatch, error) {
	in, rows := []int{0, 1, 3}, n.In[0].Shape().Rows()
	if n.Out[1] == nil {
		return d.splitRows(n, in, []int{0})
	}
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	return d.lowerParts(n, d.cutGainRows(n, rows, in), func(part *graph.Node) ([]dispatch, error) { return d.normGrad(part, graph.RowsPerPart(rows)) })
}

// splitQKNorm goes over heads of positions, in order (b, t, head), each of which is turned by its place in the whole.
func (d *deviceCaps) splitQKNorm(n *graph.Node) ([]dispatch, error) {
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	x := n.In[0]
	in, lower := []int{0}, d.qkNormRoPE
	if n.Op == graph.OpQKNormRoPEGrad {
		in, lower = []int{0, 1}, d.qkNormRoPEGrad
	}
	headDim := graph.AttrOf[graph.QKNormRoPEAttr](n).HeadDim
	rows, which := x.Elems()/headDim, allQKRows(n, x)
	var parts []*graph.Node
	if n.Op == graph.OpQKNormRoPEGrad && n.Out[1] != nil {
		parts = d.cutGainRows(n, rows, in)
	} else {
		parts = d.cut(n, pieces{units: rows, in: shares(n.In, rows, in), out: shares(n.Out, rows, []int{0})}, asRows)
	}
	return d.lowerParts(n, parts, func(part *graph.Node) ([]dispatch, error) {
		list, err := lower(part, which)
		which.first += part.In[0].Elems() / headDim
		return list, err
	})
}

// lowerParts lowers the parts of a node, of which no kernel needs another's, by a function of their own.
func (d *deviceCaps) lowerParts(n *graph.Node, parts []*graph.Node, lower func(*graph.Node) ([]dispatch, error)) ([]dispatch, error) {
	if parts == nil {
		return nil, d.cannotSplit(n)
	}
	var list []dispatch
	for _, p := range parts {
		part, err := lower(p)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// cutGainRows cuts rows of the operands that the indices name where those of a gain's partial gradient, Out[1], end; its last may be the sum of fewer than the
// others.
func (d *deviceCaps) cutGainRows(n *graph.Node, rows int, in []int) (parts []*graph.Node) {
	span, sums := graph.RowsPerPart(rows), n.Out[1].Shape().Rows()
	row := pieces{in: shares(n.In, rows, in), out: shares(n.Out, rows, []int{0})}
	sum := pieces{units: sums, in: slices.Clone(row.in), out: []int{row.out[0] * span, n.Out[1].Shape().Last()}}
	for i := range sum.in {
		sum.in[i] *= span
	}
	length := d.length(n, sum)
	if length == 0 || length >= sums {
		return nil
	}
	for from := 0; from < sums; from += length {
		to := min(from+length, sums)
		part := row.part(n, from*span, min(to*span, rows), asRows)
		part.Out[1] = graph.Part(n.Out[1], from*sum.out[1], to-from, sum.out[1])
		parts = append(parts, part)
	}
	return parts
}

// splitSumRows adds the rows of one part after those of the one before.
func (d *deviceCaps) splitSumRows(n *graph.Node) ([]dispatch, error) {
	rows := n.In[0].Shape().Rows()
	parts := d.cut(n, pieces{units: rows, in: []int{n.In[0].Shape().Last(), 0}, out: []int{0}}, asRows)
	if parts == nil {
		return nil, d.cannotSplit(n)
	}
	for _, p := range parts[1:] {
		p.In[1] = n.Out[0]
	}
	return d.lowerAll(parts, true)
}

// splitSum adds up the sums of parts: the order is another one.
func (d *deviceCaps) splitSum(n *graph.Node) ([]dispatch, error) {
	x, scale := n.In[0], n.In[1]
	length := d.length(n, pieces{units: x.Elems(), in: []int{1, 0}, out: []int{0}})
	if length == 0 {
		return nil, d.cannotSplit(n)
	}
	const apart = graph.ViewAlign / 4
	count := ceilDiv(x.Elems(), length)
	sums := graph.Spare("sums", graph.F32, count*apart)
	nodes := []*graph.Node{{Op: graph.OpFill, Out: []*graph.Value{sums}, Attr: graph.FillAttr{}}}
	for i := range count {
		from := i * length
		nodes = append(nodes, &graph.Node{
			Op: n.Op, In: []*graph.Value{graph.Part(x, from, min(length, x.Elems()-from)), nil}, Out: []*graph.Value{graph.Part(sums, i*apart, 1)},
		})
	}
	return d.lowerAll(append(nodes, &graph.Node{Op: n.Op, In: []*graph.Value{sums, scale}, Out: n.Out}), true)
}

// splitEmbedding goes over tokens where it must, and then over rows of the table: each pass writes the rows of the tokens that it has.
func (d *deviceCaps) splitEmbedding(n *graph.Node) ([]dispatch, error) {
	table, y := n.In[0], n.Out[0]
	if d.tooLarge(n, y) || d.tooLarge(n, n.In[1]) {
		count := n.In[1].Elems()
		return d.independent(n, pieces{units: count, in: []int{0, 1}, out: []int{y.Elems() / count}}, asRows)
	}
	vocab, dim := table.Shape()[0], table.Shape()[1]
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	length := d.length(n, pieces{units: vocab, in: []int{dim, 0}, out: []int{0}})
	if length == 0 {
		return nil, d.cannotSplit(n)
	}
	var list []dispatch
	for first := 0; first < vocab; first += length {
		rows := min(length, vocab-first)
		part := d.embedding(n, graph.Part(table, first*dim, rows, dim), first)
		part.barrier = first > 0 // each writes some rows of y, which it binds whole
		list = append(list, part)
	}
	return list, nil
}

// splitEmbeddingGrad goes over tokens, whose sums it adds to in their order, and over rows of the table.
func (d *deviceCaps) splitEmbeddingGrad(n *graph.Node) ([]dispatch, error) {
	tokens, dy, dtable := n.In[0], n.In[1], n.Out[0]
	vocab, dim := dtable.Shape()[0], dtable.Shape()[1]
	if d.tooLarge(n, tokens) || d.tooLarge(n, dy) {
		parts := d.cut(n, pieces{units: tokens.Elems(), in: []int{1, dim, 0}, out: []int{0}}, asRows)
		if parts == nil {
			return nil, d.cannotSplit(n)
		}
		for _, p := range parts[1:] {
			p.In[2] = dtable
		}
		return d.lowerAll(parts, true)
	}
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	length := d.length(n, pieces{units: vocab, in: []int{0, 0, 0}, out: []int{dim}})
	if length == 0 {
		return nil, d.cannotSplit(n)
	}
	var list []dispatch
	for first := 0; first < vocab; first += length {
		rows := min(length, vocab-first)
		part, err := d.embeddingGrad(n, graph.Part(dtable, first*dim, rows, dim), first)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// splitSumSquares goes over the chunks whose sums it gives.
func (d *deviceCaps) splitSumSquares(n *graph.Node) ([]dispatch, error) {
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	x := n.In[0]
	chunk := ceilDiv(x.Elems(), graph.SumSquaresParts)
	const align = graph.ViewAlign / 4
	most := (int(d.maxBindBytes/4) - align) / chunk // a part begins at the last place before it that can be bound
	length := evenly(graph.SumSquaresParts, most, 1)
	if length == 0 {
		return nil, d.cannotSplit(n)
	}
	if err := d.checkSumSquares(n); err != nil {
		return nil, err
	}
	var list []dispatch
	for first := 0; first < graph.SumSquaresParts; first += length {
		from := first * chunk / align * align
		to := min((first+length)*chunk, x.Elems())
		part := d.sumSquares(n, graph.Part(x, from, to-from), from, first, min(length, graph.SumSquaresParts-first))
		part.barrier = first > 0 // each writes some of the sums, which it binds whole
		list = append(list, part)
	}
	return list, nil
}
