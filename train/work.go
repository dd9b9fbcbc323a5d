package train

import (
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// Work is what a training step has to do for a token: forward, backward and update.
type Work struct {
	FLOPs        float64 `json:"flops"`         // of the model's matrix products: model.CausalFLOPsPerToken
	NormElements float64 `json:"norm_elements"` // that norms go over, those of queries and keys too: each norm's once forward and once backward, and again where it is computed again
	Bytes        float64 `json:"bytes"`         // that all operators read and write, each operand once: graph.Cost
}

// WorkOf is the work of a step of tokens: the first program runs accumulation times and others once.
func WorkOf(m model.Config, seqLen, tokens int, programs []*graph.Program, accumulation int) Work {
	var elements, bytes int64
	for i, p := range programs {
		runs := int64(1)
		if i == 0 {
			runs = int64(accumulation)
		}
		for _, n := range p.Nodes() {
			_, b := graph.Cost(n)
			bytes += runs * b
			elements += runs * normElements(n)
		}
	}
	return Work{FLOPs: m.CausalFLOPsPerToken(seqLen), NormElements: float64(elements) / float64(tokens), Bytes: float64(bytes) / float64(tokens)}
}

// normElements is how many numbers a node normalises, or takes the gradient of that of.
func normElements(n *graph.Node) int64 {
	switch n.Op {
	case graph.OpRMSNorm, graph.OpLayerNorm:
		return int64(n.In[0].Elems())
	case graph.OpRMSNormGrad, graph.OpLayerNormGrad:
		return int64(n.In[1].Elems())
	case graph.OpQKNormRoPE, graph.OpQKNormRoPEGrad:
		if graph.AttrOf[graph.QKNormRoPEAttr](n).Norm != graph.QKNone {
			return int64(n.Out[0].Elems()) // the input's, or its gradient's
		}
	}
	return 0
}
