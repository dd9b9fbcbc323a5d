package vulkan

import "github.com/vktrain/vktrain/graph"

// narrowKernels is indexed by operator: whether its lowering takes a node's operands in the bf16 and f16 formats that they have. Where it does not, or
// there is no row, float32 stand-ins take their place; see lowerWide. Kernels write words of two elements, so that rows must be even, or
// at least the whole.
var narrowKernels = [graph.NumOps]func(d *deviceCaps, n *graph.Node) bool{
	graph.OpCast:           func(*deviceCaps, *graph.Node) bool { return true },
	graph.OpMatMul:         (*deviceCaps).narrowMatMul,
	graph.OpEmbedding:      evenRows,
	graph.OpEmbeddingGrad:  func(*deviceCaps, *graph.Node) bool { return true },
	graph.OpRMSNorm:        evenRows,
	graph.OpRMSNormGrad:    evenRows,
	graph.OpLayerNorm:      evenRows,
	graph.OpLayerNormGrad:  evenRows,
	graph.OpQKNormRoPE:     func(_ *deviceCaps, n *graph.Node) bool { return graph.AttrOf[graph.QKNormRoPEAttr](n).HeadDim%4 == 0 },
	graph.OpQKNormRoPEGrad: func(_ *deviceCaps, n *graph.Node) bool { return graph.AttrOf[graph.QKNormRoPEAttr](n).HeadDim%4 == 0 },
	graph.OpAttention:      func(d *deviceCaps, n *graph.Node) bool { return evenHeads(d, n) && n.Out[2] == nil },
	graph.OpAttentionGrad:  evenHeads,
	graph.OpSwiGLU:         even,
	graph.OpSwiGLUGrad:     even,
	graph.OpGELU:           even,
	graph.OpGELUGrad:       even,
	graph.OpReLU:           even,
	graph.OpReLUGrad:       even,
	graph.OpSoftCap:        even,
	graph.OpSoftCapGrad:    even,
	graph.OpCrossEntropy:   anyElems,
	graph.OpCrossEntropyGrad: func(d *deviceCaps, n *graph.Node) bool {
		return evenRows(d, n) || n.In[0].DType().Size() == 2 && n.Out[0].DType().Size() == 2
	},
	graph.OpAdd:           even,
	graph.OpFill:          even,
	graph.OpAdamW:         func(_ *deviceCaps, n *graph.Node) bool { return n.In[0].DType() == graph.BF16 },
	graph.OpRowMoments:    anyElems,
	graph.OpSummary:       anyElems,
	graph.OpTopMagnitudes: anyElems,
	graph.OpDots:          anyElems,
	graph.OpAdamWStats:    anyElems,
	graph.OpRowAngle:      anyElems,
	graph.OpRowNorms:      anyElems,
}

// anyElems is of operators that only read 16-bit tensors.
func anyElems(*deviceCaps, *graph.Node) bool { return true }

func even(_ *deviceCaps, n *graph.Node) bool     { return n.Out[0].Elems()%2 == 0 }
func evenRows(_ *deviceCaps, n *graph.Node) bool { return n.Out[0].Shape().Last()%2 == 0 }
func evenHeads(_ *deviceCaps, n *graph.Node) bool {
	return graph.AttrOf[graph.AttentionAttr](n).HeadDim%2 == 0
}

// perThread is how many elements a thread of a node's kernel goes over at a time: E of storage.glsl.
func perThread(n *graph.Node) int {
	if graph.HasNarrow(n) {
		return 2
	}
	return 1
}

// forFormats gives a node with narrow operands the kernel for them: of the same name with _narrow, and with the operands' formats as one more constant, in
// the order in which the kernel numbers them.
func forFormats(n *graph.Node, kernel string, spec []uint32, operands ...*graph.Value) (string, []uint32) {
	if !graph.HasNarrow(n) {
		return kernel, spec
	}
	formats := uint32(0)
	for i, v := range operands {
		if v != nil {
			formats |= castFormats[v.DType()] << (2 * i)
		}
	}
	return kernel + "_narrow", append(spec[:len(spec):len(spec)], formats)
}
