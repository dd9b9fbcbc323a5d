//go:build cgo

package vulkan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/graph"
)

// A driver that runs on the CPU gets other kernels and other ways to spread rows over threads than a GPU: these tests give it the GPU's.
func asGPU(d *DeviceInfo) {
	if d.Kind == backend.Software {
		d.Kind = backend.Discrete
	}
}

func TestConformanceOfGPURows(t *testing.T) {
	b := openTest(t, Options{tweak: asGPU})
	conformance.RunWith(t, b, conformance.Options{Only: []string{
		"rms_norm", "rms_norm_grad", "layer_norm", "layer_norm_grad", "softmax", "softmax_grad", "cross_entropy", "cross_entropy_grad", "sum_squares",
	}})
}

// Each matmul kernel on every shape, whichever the shape would get; in parts of the inner dimension, and with loops that are not unrolled; but for batches of tens of thousands, which a
// tile of 128 x 128 for each makes slow, and which TestConformanceOfManyGroups has in small.
func TestConformanceOfMatMulKernels(t *testing.T) {
	b := openTest(t, Options{})
	var choices []matMulChoice
	for _, k := range append(slices.Clone(matMulTiles), matMulSkinny) {
		choices = append(choices, matMulChoice{k, 1})
	}
	for _, k := range []matMulKernel{matMulTiles[0], matMulSkinny} { // one team of threads, and several
		k.unroll = 1
		choices = append(choices, matMulChoice{k, 3})
	}
	for _, k := range matMulSubgroups {
		if b.caps.subgroupBallot && k.subgroupSize == b.caps.subgroupSize {
			choices = append(choices, matMulChoice{k, 1})
		}
	}
	for _, c := range choices {
		t.Run(fmt.Sprintf("%s in %d", c.kernel.name, c.parts), func(t *testing.T) {
			b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
				if batch, _, _, _ := graph.MatMulDims(n); batch < 1000 {
					return d.matMul(n, c), nil
				}
				return lowerNode(d, n)
			}
			conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul"}})
		})
	}
}

// Devices allow 65535 workgroups in a dimension; here it is 3, so that every kernel numbers its groups over two dimensions, and 1000 for matmuls,
// which go over their batches in steps.
func TestConformanceOfManyGroups(t *testing.T) {
	b := openTest(t, Options{tweak: func(d *DeviceInfo) { d.Limits.GroupCount[0], d.Limits.GroupCount[2] = 3, 1000 }})
	conformance.RunWith(t, b, conformance.Options{Only: []string{
		"embedding_grad", "matmul", "rms_norm_grad", "qk_norm_rope", "attention", "attention_grad", "softmax", "swiglu", "cross_entropy_grad", "cast",
	}})
}
