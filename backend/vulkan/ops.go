package vulkan

import (
	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/shaders"
)

// lowerings is the table of operators: a row each.
var lowerings = [graph.NumOps]lowerFunc{
	graph.OpEmbedding:        lowerEmbedding,
	graph.OpEmbeddingGrad:    lowerEmbeddingGrad,
	graph.OpMatMul:           lowerMatMul,
	graph.OpRMSNorm:          lowerNorm,
	graph.OpRMSNormGrad:      lowerNormGrad,
	graph.OpLayerNorm:        lowerNorm,
	graph.OpLayerNormGrad:    lowerNormGrad,
	graph.OpQKNormRoPE:       lowerQKNormRoPE,
	graph.OpQKNormRoPEGrad:   lowerQKNormRoPEGrad,
	graph.OpAttention:        lowerAttention,
	graph.OpAttentionGrad:    lowerAttentionGrad,
	graph.OpSoftmax:          lowerSoftmax,
	graph.OpSoftmaxGrad:      lowerSoftmax,
	graph.OpSwiGLU:           lowerPointwise,
	graph.OpSwiGLUGrad:       lowerPointwise,
	graph.OpGELU:             lowerPointwise,
	graph.OpGELUGrad:         lowerPointwise,
	graph.OpReLU:             lowerPointwise,
	graph.OpReLUGrad:         lowerPointwise,
	graph.OpSoftCap:          lowerPointwise,
	graph.OpSoftCapGrad:      lowerPointwise,
	graph.OpCrossEntropy:     lowerCrossEntropy,
	graph.OpCrossEntropyGrad: lowerCrossEntropy,
	graph.OpAdd:              lowerPointwise,
	graph.OpSum:              lowerSum,
	graph.OpBroadcast:        lowerBroadcast,
	graph.OpSumRows:          lowerSumRows,
	graph.OpFill:             lowerPointwise,
	graph.OpSumSquares:       lowerSumSquares,
	graph.OpClipNorm:         lowerClipNorm,
	graph.OpAdamW:            lowerAdamW,
	graph.OpCast:             lowerCast,
	graph.OpRowMoments:       lowerRowMoments,
	graph.OpSummary:          lowerSummary,
	graph.OpTopMagnitudes:    lowerTopMagnitudes,
	graph.OpDots:             lowerDots,
	graph.OpAdamWStats:       lowerAdamWStats,
	graph.OpRowAngle:         lowerRowAngle,
	graph.OpRowNorms:         lowerRowNorms,
}

// maxElems bounds a tensor, so that kernels may index it with 32 bits and step a little past its end.
const maxElems = 1<<31 - 1<<16

func lowerNode(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	if n.Op >= graph.NumOps || lowerings[n.Op] == nil {
		return nil, d.unsupported(n, "no kernel for operator %s", n.Op)
	}
	for _, list := range [][]*graph.Value{n.In, n.Out} {
		for _, v := range list {
			if v != nil && v.Elems() > maxElems {
				return nil, d.unsupported(n, "tensor %q has %d elements, kernels index at most %d", v.Name(), v.Elems(), maxElems)
			}
		}
	}
	if d.needsSplit(n) {
		return d.lowerSplit(n)
	}
	if d.needsWide(n) {
		return d.lowerWide(n)
	}
	return lowerings[n.Op](d, n)
}

func lookupShader(name string) (shader, bool) {
	k, ok := shaders.Lookup(name)
	return shader{
		spirv: k.SPIRV, bindings: k.Bindings, pushBytes: k.PushBytes, specs: len(k.Spec),
		group: k.LocalSize, sharedBytes: k.SharedBytes, capabilities: k.Capabilities,
	}, ok
}

// grid spreads workgroups over two dimensions; kernels number them over both, and those past the last have nothing to do.
func (d *deviceCaps) grid(count int) [3]uint32 {
	y := ceilDiv(count, int(d.maxGroups[0]))
	return [3]uint32{uint32(ceilDiv(count, y)), uint32(y), 1}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// softwareLoops is how often a thread may loop, over all its loops, on a driver that runs on the CPU: Mesa's stops it after 65535 rounds
// without a word (LP_MAX_TGSI_LOOP_ITERATIONS in its gallivm), and the rest of the output stays as it was.
const softwareLoops = 60000

// checkLoops refuses a node whose threads would loop too often for the device.
func (d *deviceCaps) checkLoops(n *graph.Node, rounds int) error {
	if d.kind == backend.Software && rounds > softwareLoops {
		return d.unsupported(n, "its threads would loop %d times, and software drivers stop them, without an error, after %d: use a smaller batch or sequence",
			rounds, softwareLoops)
	}
	return nil
}

// flag is a boolean specialization constant.
func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// threads is the workgroup size of kernels that have no number of their own (common.glsl): 256, or 128 on devices that allow no more.
func (d *deviceCaps) threads() int {
	if d.allows([3]uint32{fullThreads, 1, 1}) {
		return fullThreads
	}
	return floorInvocations
}

// lanesFor is how many threads share a row of n elements: a power of two from 8 to the whole workgroup, with up to `each` elements a
// lane where that allows it.
func (d *deviceCaps) lanesFor(n, each int) int {
	lanes := 8
	for lanes < d.threads() && lanes*each < n {
		lanes *= 2
	}
	return lanes
}

// rowLanes is lanesFor the device: a GPU wants many threads, a CPU few barriers.
func (d *deviceCaps) rowLanes(n int) int {
	if d.kind == backend.Software {
		return d.lanesFor(n, 2048)
	}
	return d.lanesFor(n, 4)
}
