package vulkan

import "github.com/vktrain/vktrain/graph"

type embeddingPush struct{ Count, Dim, Vocab uint32 }

func lowerEmbedding(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	table, y := n.In[0], n.Out[0]
	vocab, dim := table.Shape()[0], table.Shape()[1]
	return []dispatch{{
		kernel: "embedding", push: embeddingPush{uint32(y.Elems()), uint32(dim), uint32(vocab)},
		bind: []*graph.Value{table, n.In[1], y}, groups: d.grid(ceilDiv(y.Elems(), d.threads())),
	}}, nil
}

type embeddingGradPush struct{ TokensCount, Dim, Vocab, Rows, ColumnBlocks uint32 }

func lowerEmbeddingGrad(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	tokens, dy, addend, dtable := n.In[0], n.In[1], n.In[2], n.Out[0]
	vocab, dim := dtable.Shape()[0], dtable.Shape()[1]
	// Each workgroup reads all tokens: many rows of a large table a workgroup, one of a small table, which has few.
	rows := min(max(vocab/1024, 1), 16)
	blocks := ceilDiv(dim, d.threads())
	return []dispatch{{
		kernel: "embedding_grad", spec: []uint32{flag(addend != nil)},
		push: embeddingGradPush{uint32(tokens.Elems()), uint32(dim), uint32(vocab), uint32(rows), uint32(blocks)},
		bind: []*graph.Value{tokens, dy, dtable}, groups: d.grid(ceilDiv(vocab, rows) * blocks),
	}}, nil
}
