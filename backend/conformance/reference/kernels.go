package reference

import "github.com/vktrain/vktrain/graph"

// kernels is indexed by Op.
var kernels = [graph.NumOps]Kernel{
	graph.OpEmbedding:        embedding,
	graph.OpEmbeddingGrad:    embeddingGrad,
	graph.OpMatMul:           matMul,
	graph.OpRMSNorm:          rmsNorm,
	graph.OpRMSNormGrad:      rmsNormGrad,
	graph.OpLayerNorm:        layerNorm,
	graph.OpLayerNormGrad:    layerNormGrad,
	graph.OpQKNormRoPE:       qkNormRoPE,
	graph.OpQKNormRoPEGrad:   qkNormRoPEGrad,
	graph.OpAttention:        attention,
	graph.OpAttentionGrad:    attentionGrad,
	graph.OpSoftmax:          softmax,
	graph.OpSoftmaxGrad:      softmaxGrad,
	graph.OpSwiGLU:           swiGLU,
	graph.OpSwiGLUGrad:       swiGLUGrad,
	graph.OpGELU:             gelu,
	graph.OpGELUGrad:         geluGrad,
	graph.OpReLU:             relu,
	graph.OpReLUGrad:         reluGrad,
	graph.OpSoftCap:          softCap,
	graph.OpSoftCapGrad:      softCapGrad,
	graph.OpCrossEntropy:     crossEntropy,
	graph.OpCrossEntropyGrad: crossEntropyGrad,
	graph.OpAdd:              add,
	graph.OpSum:              sum,
	graph.OpBroadcast:        broadcast,
	graph.OpSumRows:          sumRows,
	graph.OpFill:             fillValue,
	graph.OpSumSquares:       sumSquares,
	graph.OpClipNorm:         clipNorm,
	graph.OpAdamW:            adamW,
	graph.OpCast:             cast,
}
