package vulkan

import "github.com/vktrain/vktrain/graph"

type embeddingPush struct{ Count, Dim, Vocab, First, Rows uint32 }

func lowerEmbedding(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return []dispatch{d.embedding(n, n.In[0], 0)}, nil
}

// embedding looks up tokens in rows of the table from a first one on; others keep their rows of y.
func (d *deviceCaps) embedding(n *graph.Node, rows *graph.Value, first int) dispatch {
	table, y := n.In[0], n.Out[0]
	vocab, dim := table.Shape()[0], table.Shape()[1]
	kernel, spec := forFormats(n, "embedding", nil, table, y)
	return dispatch{
		kernel: kernel, spec: spec,
		push: embeddingPush{uint32(y.Elems()), uint32(dim), uint32(vocab), uint32(first), uint32(rows.Shape()[0])},
		bind: []*graph.Value{rows, n.In[1], y}, groups: d.grid(ceilDiv(y.Elems()/perThread(n), d.threads())),
	}
}

type (
	tokenOrderPush    struct{ TokensCount uint32 }
	embeddingGradPush struct{ TokensCount, Dim, Vocab, Base, ColumnBlocks uint32 }
)

func lowerEmbeddingGrad(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return d.embeddingGrad(n, n.Out[0], 0)
}

// embeddingGrad sums the rows of dy for rows of the table from a first one on: it sorts the tokens, and sums segments of equal ones.
func (d *deviceCaps) embeddingGrad(n *graph.Node, dtable *graph.Value, first int) ([]dispatch, error) {
	tokens, dy, addend := n.In[0], n.In[1], n.In[2]
	count, vocab, dim := tokens.Elems(), dtable.Shape()[0], dtable.Shape()[1]
	if err := d.checkLoops(n, count); err != nil { // a segment may be all tokens
		return nil, err
	}
	order := graph.Spare("order", graph.I32, count)
	list := []dispatch{{
		kernel: "token_order", push: tokenOrderPush{uint32(count)},
		bind: []*graph.Value{tokens, order}, groups: d.grid(ceilDiv(count, d.threads())),
	}}
	if addend == nil {
		list = append(list, d.pointwise("fill", dtable.Elems(), 0, nil, []*graph.Value{dtable}))
	}
	lanes := d.lanesFor(dim, 1)
	blocks := ceilDiv(dim, lanes)
	kernel, spec := forFormats(n, "embedding_grad", []uint32{flag(addend != nil), uint32(lanes)}, dy)
	return append(list, dispatch{
		kernel: kernel, spec: spec,
		push: embeddingGradPush{uint32(count), uint32(dim), uint32(vocab), uint32(first), uint32(blocks)},
		bind: []*graph.Value{tokens, order, dy, dtable}, groups: d.grid(ceilDiv(count, d.threads()/lanes) * blocks), barrier: true,
	}), nil
}
