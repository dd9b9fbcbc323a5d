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

type embeddingGradPush struct{ TokensCount, Dim, Vocab, Base, Rows, ColumnBlocks uint32 }

func lowerEmbeddingGrad(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return []dispatch{d.embeddingGrad(n, n.Out[0], 0)}, nil
}

// embeddingGrad sums the rows of dy for rows of the table from a first one on.
func (d *deviceCaps) embeddingGrad(n *graph.Node, dtable *graph.Value, first int) dispatch {
	tokens, dy, addend := n.In[0], n.In[1], n.In[2]
	vocab, dim := dtable.Shape()[0], dtable.Shape()[1]
	// Each workgroup reads all tokens: many rows of a large table a workgroup, one of a small table, which has few.
	rows := min(max(vocab/1024, 1), 16)
	blocks := ceilDiv(dim, d.threads())
	kernel, spec := forFormats(n, "embedding_grad", []uint32{flag(addend != nil)}, dy)
	return dispatch{
		kernel: kernel, spec: spec,
		push: embeddingGradPush{uint32(tokens.Elems()), uint32(dim), uint32(vocab), uint32(first), uint32(rows), uint32(blocks)},
		bind: []*graph.Value{tokens, dy, dtable}, groups: d.grid(ceilDiv(vocab, rows) * blocks),
	}
}
