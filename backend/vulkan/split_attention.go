package vulkan

import "github.com/vktrain/vktrain/graph"

// attentionRows is how many of the inputs and outputs, from the first on, have rows of heads, (B, T, heads*h); the others are by head, (B, heads, T), but for the last
// input, the scale.
var attentionRows = map[graph.Op][2]int{graph.OpAttention: {3, 1}, graph.OpAttentionGrad: {5, 3}}

// splitAttention goes over sequences, or where one of them is too large, over heads of each.
func (d *deviceCaps) splitAttention(n *graph.Node) ([]dispatch, error) {
	batch := n.In[0].Shape()[0]
	in, out := shares(n.In, batch, upTo(len(n.In)-1)), shares(n.Out, batch, upTo(len(n.Out)))
	if parts := d.cut(n, pieces{units: batch, in: in, out: out}, asBatch); parts != nil {
		return d.lowerAll(parts, false)
	}
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	return d.splitHeads(n)
}

// upTo lists 0 to n-1.
func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// splitHeads goes over key heads with their query heads, one sequence after the other. Heads are columns of rows, which are copied to scratch memory and back.
func (d *deviceCaps) splitHeads(n *graph.Node) ([]dispatch, error) {
	at, first := graph.AttrOf[graph.AttentionAttr](n), n.In[0] // as wide as q
	batch, keyHead, size := first.Shape()[0], first.Shape()[1]*at.Heads/at.KVHeads*at.HeadDim, 0
	for _, v := range n.In[:attentionRows[n.Op][0]] {
		size = max(size, v.DType().Size())
	}
	most := min(int(d.maxBindBytes-graph.ViewAlign)/(keyHead*size), at.KVHeads)
	if most == 0 || batch == 1 && most == at.KVHeads {
		return nil, d.cannotSplit(n)
	}
	s := headSplit{copySplit{d: d}, n, at, evenly(at.KVHeads, most, 1), map[*graph.Value]*graph.Value{}}
	for sequence := range batch {
		for head := 0; head < at.KVHeads; head += s.most {
			s.part(sequence, head, min(s.most, at.KVHeads-head))
		}
	}
	return s.done(n)
}

// headSplit is attention that goes over at most so many key heads at a time.
type headSplit struct {
	copySplit
	n     *graph.Node
	at    graph.AttentionAttr
	most  int
	rooms map[*graph.Value]*graph.Value // scratch memory of operands
}

// part adds the launches for `count` key heads of a sequence.
func (s *headSplit) part(sequence, head, count int) {
	at := s.at
	at.Heads, at.KVHeads = count*at.Heads/at.KVHeads, count
	rows, scale := attentionRows[s.n.Op], len(s.n.In)-1
	part := &graph.Node{Op: s.n.Op, In: make([]*graph.Value, scale+1), Out: make([]*graph.Value, len(s.n.Out)), Attr: at}
	for i, v := range s.n.In[:scale] {
		c := s.columns(v, i < rows[0], sequence, head, count)
		part.In[i] = s.room(v, c)
		s.copyColumns(v, c.row, c.from, part.In[i], c.count, 0, c.rows, c.count)
	}
	part.In[scale] = s.n.In[scale]
	for i, v := range s.n.Out {
		if v != nil {
			part.Out[i] = s.room(v, s.columns(v, i < rows[1], sequence, head, count))
		}
	}
	s.node(part, true)
	for i, v := range s.n.Out {
		if v != nil {
			c := s.columns(v, i < rows[1], sequence, head, count)
			s.copyColumns(part.Out[i], c.count, 0, v, c.row, c.from, c.rows, c.count)
		}
	}
}

// headColumns are `count` columns, from one on, of rows of `row` elements, and the shape that they have by themselves.
type headColumns struct {
	rows, row, from, count int
	shape                  []int
}

// columns are those of some key heads of a sequence in a tensor (B, T, heads*h), or (B, heads, T), which is one row.
func (s *headSplit) columns(v *graph.Value, inRows bool, sequence, head, count int) headColumns {
	shape := v.Shape()
	c := headColumns{rows: shape[1], row: shape[2]}
	if !inRows {
		c.rows, c.row = 1, shape[1]*shape[2]
	}
	c.from = sequence*shape[1]*shape[2] + head*c.row/s.at.KVHeads
	c.count = count * c.row / s.at.KVHeads
	c.shape = []int{1, shape[1], c.count}
	if !inRows {
		c.shape = []int{1, c.count / shape[2], shape[2]}
	}
	return c
}

// room is where such columns of an operand are copied to or from.
func (s *headSplit) room(v *graph.Value, c headColumns) *graph.Value {
	if s.rooms[v] == nil { // the first part is the largest
		s.rooms[v] = graph.Spare(v.Name(), v.DType(), c.shape...)
	}
	return graph.Part(s.rooms[v], 0, c.shape...)
}
