//go:build cgo

package vulkan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
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
		"row_moments", "row_angle", "row_norms",
	}, Pick: func(c conformance.Case) bool { return !onlyF16(c) }})
}

// Each matmul kernel, whichever a shape would get; in parts of the inner dimension, and with loops that are not unrolled. The shapes are a few on which
// everything is odd, and one whose rows are whole vec4s: compiling is what software drivers take long for.
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
	shapes := []string{"3x2x257", "17x31x33", "33x65x31", "132x68x20", "33x17x65"}
	for _, c := range choices {
		t.Run(fmt.Sprintf("%s in %d", c.kernel.name, c.parts), func(t *testing.T) {
			run := map[string]bool{}
			b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) { return d.matMul(n, c), nil }
			conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul"}, Pick: func(c conformance.Case) bool {
				at := slices.IndexFunc(shapes, func(s string) bool { return strings.Contains(c.Name, " "+s) })
				if at < 0 || strings.Contains(c.Name, "f16") { // those are float32 kernels between casts
					return false
				}
				run[shapes[at]] = true
				return true
			}})
			require.Len(t, run, len(shapes))
		})
	}
}

// Devices allow 65535 workgroups in a dimension; here it is 3, so that every kernel numbers its groups over two dimensions, and 1000 for matmuls,
// which go over their batches in steps.
func TestConformanceOfManyGroups(t *testing.T) {
	b := openTest(t, Options{tweak: func(d *DeviceInfo) { d.Limits.GroupCount[0], d.Limits.GroupCount[2] = 3, 1000 }})
	conformance.RunWith(t, b, conformance.Options{Only: []string{
		"embedding_grad", "matmul", "rms_norm_grad", "qk_norm_rope", "attention", "attention_grad", "softmax", "swiglu", "cross_entropy_grad", "cast",
		"row_moments", "summary", "top_magnitudes", "dots", "adamw_stats", "row_angle", "row_norms",
	}, Pick: func(c conformance.Case) bool { return !onlyF16(c) }})
}

// A product in parts has scratch memory, which is part of what a run is said to need, and gives the same bits as often as it runs.
func TestMatMulInParts(t *testing.T) {
	b := openTest(t, Options{tweak: asGPU})
	build := graph.NewBuilder()
	x, y := build.Input("x", graph.F32, 4096, 36), build.Input("y", graph.F32, 4096, 40)
	build.Output("z", build.MatMul(x, y, nil, nil, graph.MatMulAttr{TransA: true}))
	p := build.Build("parts")
	const scratchBytes = 16 * 36 * 40 * 4
	require.EqualValues(t, scratchBytes, b.ScratchBytes(p))
	with, without := train.MemoryOn(b, p), train.MemoryOf(p)
	require.EqualValues(t, scratchBytes, with.Total()-without.Total())

	e := compile(t, b, p, newStore(t, b, p))
	inputs := e.inputs.size // 0 where the slots are read in place
	require.EqualValues(t, int64(graph.NewPlan(p).ArenaBytes())+scratchBytes+int64(inputs), e.DeviceBytes())
	ones := make([]float32, 4096*40)
	for i := range ones {
		ones[i] = float32(i%7) - 3
	}
	var first []byte
	for range 3 {
		require.NoError(t, e.Feed("x", floats(ones[:4096*36]...)))
		require.NoError(t, e.Feed("y", floats(ones...)))
		ticket, err := e.Submit()
		require.NoError(t, err)
		z := fetch(t, e, ticket, "z", 36*40*4)
		if first == nil {
			first = z
		}
		require.Equal(t, first, z)
	}
	var want float64 // of whole numbers, and exact
	for l := range 4096 {
		want += float64(ones[l*36+5] * ones[l*40+7])
	}
	at := 4 * (5*40 + 7)
	require.Equal(t, floats(float32(want)), first[at:at+4])
}
