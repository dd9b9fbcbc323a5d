//go:build cgo

package vulkan

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/graph"
)

// matrixKernelsOf are those that a device runs, of either format.
func matrixKernelsOf(d *deviceCaps) []matMulKernel {
	var list []matMulKernel
	for _, format := range []graph.DType{graph.F16, graph.BF16} {
		list = append(list, d.matrixKernels(product(format, 64, 64, 64))...)
	}
	return list
}

func openMatrices(t *testing.T, opts Options) *Backend {
	t.Helper()
	b := openTest(t, opts)
	if len(matrixKernelsOf(b.caps)) == 0 {
		why := fmt.Sprint(b.Info().Name, " has no cooperative matrices that kernels use: ", b.Device().Features.MatrixProblem)
		if os.Getenv("VKTRAIN_REQUIRE_MATRICES") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return b
}

// Each kernel of cooperative matrices on every case of a matmul that has its formats, whole and in parts.
func TestConformanceOfMatrixKernels(t *testing.T) {
	b := openMatrices(t, Options{})
	for _, k := range matrixKernelsOf(b.caps) {
		t.Run(k.String(), func(t *testing.T) {
			for _, parts := range []int{1, 3} {
				run := 0
				b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
					if slices.Contains(d.matrixKernels(n), k) {
						run++
						return d.matMul(n, matMulChoice{k, parts}), nil
					}
					return lowerNode(d, n)
				}
				conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul"}, Pick: func(c conformance.Case) bool {
					return strings.Contains(c.Name, "f16") && !strings.Contains(c.Name, "66000") && (parts == 1 || strings.Contains(c.Name, "x257"))
				}})
				require.Positive(t, run)
			}
		})
	}
}

// The matrices of a workgroup's subgroups cover its tile, and what goes through shared memory has room there.
func TestMatrixLayouts(t *testing.T) {
	for _, s := range []matrixShape{{16, 16, 16, graph.F16}, {8, 8, 8, graph.F16}, {8, 16, 16, graph.F16}, {16, 8, 8, graph.F16}, {16, 8, 16, graph.F16}, {32, 32, 16, graph.F16}} {
		for _, width := range []int{4, 8, 16, 32, 64, 128} {
			d := matrixCaps(uint32(width))
			d.matrices = []matrixShape{s}
			for _, k := range d.matrixKernels(product(graph.F16, 64, 64, 64)) {
				l := k.matrix
				kernel, ok := lookupShader(k.name)
				require.True(t, ok)
				subgroups := int(kernel.group[0]) / width
				require.Equal(t, k.rows*k.cols, subgroups*l.sm*l.sn*s.M*s.N, "%v by %d", s, width)
				require.Zero(t, k.cols%(l.sn*s.N))
				require.LessOrEqual(t, subgroups*s.M*s.N*4, kernel.sharedBytes)
			}
			if width >= 8 && width <= 64 && s.M*s.N <= min(16*width, 256) {
				require.NotEmpty(t, d.matrixKernels(product(graph.F16, 64, 64, 64)), "%v by %d", s, width)
			}
		}
	}
}

// Matrices are for GPUs, for products of their formats alone, and for more than a few rows.
func TestMatrixChoice(t *testing.T) {
	d := matrixCaps(32)
	name := func(d *deviceCaps, n *graph.Node) string {
		c, ok := d.chooseMatrices(n)
		require.Equal(t, d.kind != backend.Software, d.narrowMatMul(n))
		require.Equal(t, ok, d.ruleForMatMul(n).kernel.matrix.width > 0)
		return c.String()
	}
	require.Equal(t, "matmul_matrix_f16_128@32", name(d, product(graph.F16, 2048, 2048, 512)))
	require.Equal(t, "matmul_matrix_bf16_64@32", name(d, product(graph.BF16, 512, 512, 512)))
	require.Equal(t, "matmul_matrix_f16_128@32/2", name(d, product(graph.F16, 768, 768, 8192)))
	require.Empty(t, name(d, product(graph.F16, 8, 2048, 512)))
	require.Empty(t, name(d, product(graph.F32, 2048, 2048, 512)))
	d.matrices = d.matrices[:1]
	require.Empty(t, name(d, product(graph.BF16, 512, 512, 512)))
	d.broken = map[string]bool{"matmul_matrix_f16_128@32": true}
	require.Equal(t, "matmul_matrix_f16_64@32", name(d, product(graph.F16, 2048, 2048, 512)))
	list, err := lowerNode(d, product(graph.F16, 2048, 2048, 512))
	require.NoError(t, err)
	require.Equal(t, "matmul_matrix_f16_64", list[0].kernel, "a node gets what is chosen, not float32 stand-ins")
	d.kind = backend.Software
	require.Empty(t, name(d, product(graph.F16, 2048, 2048, 512)))
	d = matrixCaps(32)
	d.maxSubgroupSize = 64 // either, and none can be required
	require.Empty(t, name(d, product(graph.F16, 2048, 2048, 512)))
}

// Each tile on products of 16-bit and mixed formats, whole and in parts: the kernels that need no matrices and no 16-bit storage.
func TestConformanceOfNarrowTiles(t *testing.T) {
	b := openTest(t, Options{tweak: asGPU})
	for _, k := range append(slices.Clone(matMulTiles), matMulSkinny) {
		k.unroll = 1 // compiling is what software drivers take long for
		t.Run(k.name, func(t *testing.T) {
			run := map[string]bool{}
			for _, parts := range []int{1, 3} {
				b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
					list := d.matMul(n, matMulChoice{k, parts})
					run[list[0].kernel] = true
					return list, nil
				}
				conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul"}, Pick: func(c conformance.Case) bool {
					odd, whole := strings.Contains(c.Name, " 17x31x33"), strings.Contains(c.Name, " 132x68x20")
					return strings.Contains(c.Name, "f16") && (odd || whole) && (parts == 1 || odd && strings.Contains(c.Name, "NN"))
				}})
			}
			require.Equal(t, map[string]bool{k.name + "_narrow": true}, run)
		})
	}
}

// The whole kit with the kernels that a GPU gets, those of cooperative matrices among them, for every product of 16-bit matrices that has more than a few rows.
func TestConformanceOfAGPUWithMatrices(t *testing.T) {
	b := openMatrices(t, Options{tweak: asGPU})
	matrices := 0
	b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		list, err := lowerNode(d, n)
		if err == nil && strings.HasPrefix(list[0].kernel, "matmul_matrix_") {
			matrices++
		}
		return list, err
	}
	conformance.Run(t, b)
	require.Positive(t, matrices)
	require.Empty(t, b.Device().Failed)
}

// Synchronization validation has nothing to say of them.
func TestValidationOfMatrixKernels(t *testing.T) {
	needValidation(t)
	b := openMatrices(t, Options{tweak: asGPU, Validate: true})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul"}, Pick: func(c conformance.Case) bool {
		return strings.HasSuffix(c.Name, " f16") && !strings.Contains(c.Name, "66000")
	}})
}
