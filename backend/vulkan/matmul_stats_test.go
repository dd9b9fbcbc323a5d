//go:build cgo

package vulkan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

// matMulProgram has a product of each orientation, all of whose rows are whole vec4s or not.
func matMulProgram(vec bool) *graph.Program {
	m, n, k := 512, 1024, 256
	if !vec {
		m, n, k = 511, 1023, 255
	}
	b := graph.NewBuilder()
	for _, at := range []graph.MatMulAttr{{}, {TransB: true}, {TransA: true}} {
		shape := func(rows, cols int, swap bool) []int {
			if swap {
				rows, cols = cols, rows
			}
			return []int{rows, cols}
		}
		name := fmt.Sprintf("%t %t", at.TransA, at.TransB)
		x := b.Input("a "+name, graph.F32, shape(m, k, at.TransA)...)
		y := b.Input("b "+name, graph.F32, shape(k, n, at.TransB)...)
		b.Output(name, b.MatMul(x, y, nil, nil, at))
	}
	return b.Build("products")
}

// On AMD's compiler no tile of any kind spills.
func TestMatMulStatistics(t *testing.T) {
	b := openStats(t, Options{})
	b.submit = nil
	for _, vec := range []bool{true, false} {
		for _, k := range append(slices.Clone(matMulTiles), matMulSkinny) {
			b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) { return d.matMul(n, matMulChoice{k, 1}), nil }
			stats, err := b.PipelineStats(matMulProgram(vec))
			require.NoError(t, err)
			for _, s := range stats {
				n, known := s.Spills()
				require.True(t, known)
				require.Zero(t, n)
				var line strings.Builder
				for _, st := range s.Statistics {
					fmt.Fprintf(&line, " %s=%v", st.Name, st.Value)
				}
				t.Logf("%s %v sub %d:%s", s.Kernel, s.Constants, s.Subgroup, line.String())
			}
		}
	}
}
