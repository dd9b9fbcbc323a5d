//go:build cgo

package vulkan

import (
	"fmt"
	"regexp"
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

// On AMD's compiler no tile of any kind spills. The largest keeps at least 8 subgroups a SIMD, and 80% of what its inner loop issues are FMAs: what else
// is there keeps an FMA unit idle. (Rows that are no whole vec4s are loaded by elements, and cost more.)
func TestMatMulStatistics(t *testing.T) {
	b := openStats(t, Options{})
	b.submit = nil
	for _, vec := range []bool{true, false} {
		for _, k := range append(slices.Clone(matMulTiles), matMulSkinny) {
			b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) { return d.matMul(n, matMulChoice{k, 1}), nil }
			launches, err := lowerProgram(b.caps, matMulProgram(vec), b.lower, b.lookup)
			require.NoError(t, err)
			for _, l := range launches {
				stats, err := b.launchStats([]launch{l})
				require.NoError(t, err)
				s := stats[0]
				l.key.disassembly = true
				pipelines, err := b.pipelines.get([]pipelineKey{l.key})
				require.NoError(t, err)
				code, err := b.dev.Disassembly(pipelines[l.key].handle)
				require.NoError(t, err)
				n, known := s.Spills()
				require.True(t, known)
				require.Zero(t, n)
				value := func(name string) float64 { v, _ := s.Find(name); return v }
				fma, issued := innerLoop(code)
				share := float64(fma) / float64(issued)
				t.Logf("%-15s %v: subgroups of %d, %v VGPRs, %v bytes shared, %v bytes of code, %v subgroups a SIMD, %d of %d are FMAs (%.1f%%)", s.Kernel, s.Constants,
					s.Subgroup, value("VGPRs"), value("LDS size"), value("Code size"), value("Subgroups per SIMD"), fma, issued, 100*share)
				if vec && k.name == matMulTiles[0].name && strings.Contains(b.Info().Name, "RADV") {
					require.GreaterOrEqual(t, value("Subgroups per SIMD"), 8.0)
					require.GreaterOrEqual(t, share, 0.8)
				}
			}
		}
	}
}

var (
	assemblyLabel  = regexp.MustCompile(`^(\w+):`)
	assemblyBranch = regexp.MustCompile(`^s_c?branch\w*\s+(\w+)`)
	assemblyFMA    = regexp.MustCompile(`^v_(dual_)?(pk_)?(fma|mac)`)                                     // the first RDNA has v_mac
	assemblyHint   = regexp.MustCompile(`^s_(wait|delay_alu|nop|clause|inst_prefetch|set_inst_prefetch)`) // issue no work
)

// innerLoop counts the FMAs of the loop that has most of them, and all of its instructions that issue work, in AMD's assembly.
func innerLoop(assembly string) (fma, issued int) {
	var code []string
	labels := map[string]int{}
	for line := range strings.Lines(assembly) {
		line, _, _ = strings.Cut(line, ";")
		line = strings.TrimSpace(line)
		if m := assemblyLabel.FindStringSubmatch(line); m != nil {
			labels[m[1]] = len(code)
		} else if line != "" {
			code = append(code, line)
		}
	}
	for end, line := range code {
		m := assemblyBranch.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		start, ok := labels[m[1]]
		if !ok || start > end {
			continue
		}
		f, n := 0, 0
		for _, line := range code[start : end+1] {
			if !assemblyHint.MatchString(line) {
				n++
			}
			if assemblyFMA.MatchString(line) {
				f++
			}
		}
		if f > fma {
			fma, issued = f, n
		}
	}
	return fma, issued
}

func TestInnerLoop(t *testing.T) {
	fma, issued := innerLoop(`
BB0:
	v_mov_b32_e32 v1, 0                     ; 7e020280
BB1:
	s_waitcnt vmcnt(0)                      ; bf8903f7
	v_fma_f32 v0, v1, v2, v0                ; d6130000
	v_dual_fmac_f32 v3, v4, v5 :: v_dual_fmac_f32 v6, v7, v8
	ds_load_b128 v[0:3], v9
	s_cbranch_scc1 BB1                      ; bfa20000
BB2:
	v_fmac_f32_e32 v0, v1, v2
	s_cbranch_vccz BB3
BB3:
	s_endpgm
`)
	require.Equal(t, [2]int{2, 4}, [2]int{fma, issued})
}
