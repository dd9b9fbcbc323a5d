package vulkan

import "github.com/vktrain/vktrain/graph"

type rowsPush struct{ RowCount, N uint32 }

// lowerSoftmax serves softmax and its gradient.
func lowerSoftmax(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	shape := n.In[0].Shape()
	lanes := d.rowLanes(shape.Last())
	bind := append(append([]*graph.Value{}, n.In...), n.Out...)
	return []dispatch{{
		kernel: n.Op.String(), spec: []uint32{uint32(lanes)}, push: rowsPush{uint32(shape.Rows()), uint32(shape.Last())},
		bind: bind, groups: d.grid(ceilDiv(shape.Rows(), d.threads()/lanes)),
	}}, nil
}

type crossEntropyPush struct {
	RowCount, N uint32
	ZLoss       float32
}

// lowerCrossEntropy serves the loss and its gradient.
func lowerCrossEntropy(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	shape := n.In[0].Shape()
	lanes := d.rowLanes(shape.Last())
	bind := append(append([]*graph.Value{}, n.In...), n.Out...)
	kernel, spec := forFormats(n, n.Op.String(), []uint32{uint32(lanes)}, n.In[0], n.Out[0])
	return []dispatch{{
		kernel: kernel, spec: spec,
		push: crossEntropyPush{uint32(shape.Rows()), uint32(shape.Last()), graph.AttrOf[graph.CrossEntropyAttr](n).ZLoss},
		bind: bind, groups: d.grid(ceilDiv(shape.Rows(), d.threads()/lanes)),
	}}, nil
}

type sumPush struct{ Count uint32 }

func lowerSum(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x, scale, y := n.In[0], n.In[1], n.Out[0]
	if err := d.checkLoops(n, ceilDiv(x.Elems(), d.threads())); err != nil {
		return nil, err
	}
	return []dispatch{{
		kernel: "sum", spec: []uint32{uint32(d.threads()), flag(scale != nil)}, push: sumPush{uint32(x.Elems())},
		bind: []*graph.Value{x, scale, y}, groups: [3]uint32{1, 1, 1},
	}}, nil
}

func lowerSumRows(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x, addend, y := n.In[0], n.In[1], n.Out[0]
	rows, length := x.Shape().Rows(), x.Shape().Last()
	return []dispatch{{
		kernel: "sum_rows", spec: []uint32{flag(addend != nil)}, push: rowsPush{uint32(rows), uint32(length)},
		bind: []*graph.Value{x, addend, y}, groups: d.grid(ceilDiv(length, 64)),
	}}, nil
}

type sumSquaresPush struct{ Count, Chunk, First, End, Base uint32 }

func lowerSumSquares(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	if err := d.checkSumSquares(n); err != nil {
		return nil, err
	}
	return []dispatch{d.sumSquares(n, n.In[0], 0, 0, graph.SumSquaresParts)}, nil
}

func (d *deviceCaps) checkSumSquares(n *graph.Node) error {
	chunk := ceilDiv(n.In[0].Elems(), graph.SumSquaresParts)
	return d.checkLoops(n, ceilDiv(chunk, d.sumLanes(n.In[0].Elems())))
}

// sumLanes is how many threads share a chunk of a tensor's sum of squares. All tensors that can share a launch get those of the largest such, so that the order
// of a sum, and with it its bits, does not depend on which of them do: arenas and barriers decide that.
func (d *deviceCaps) sumLanes(elems int) int {
	return d.rowLanes(ceilDiv(max(elems, mergeEach), graph.SumSquaresParts))
}

// sumSquares sums so many chunks from a first one on; x is the tensor from element base on.
func (d *deviceCaps) sumSquares(n *graph.Node, x *graph.Value, base, first, chunks int) dispatch {
	count := n.In[0].Elems()
	chunk := ceilDiv(count, graph.SumSquaresParts)
	lanes := d.sumLanes(count)
	return dispatch{
		kernel: "sum_squares", spec: []uint32{uint32(lanes)},
		push: sumSquaresPush{uint32(count), uint32(chunk), uint32(first), uint32(first + chunks), uint32(base)},
		bind: []*graph.Value{x, n.Out[0]}, groups: [3]uint32{uint32(ceilDiv(chunks*lanes, d.threads())), 1, 1},
	}
}

type clipNormPush struct {
	Count   uint32
	MaxNorm float32
}

func lowerClipNorm(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	partials, scale := n.In[0], n.In[1]
	return []dispatch{{
		kernel: "clip_norm", spec: []uint32{uint32(d.threads()), flag(scale != nil)}, push: clipNormPush{uint32(partials.Elems()), graph.AttrOf[graph.ClipNormAttr](n).MaxNorm},
		bind: []*graph.Value{partials, scale, n.Out[0], n.Out[1]}, groups: [3]uint32{1, 1, 1},
	}}, nil
}
