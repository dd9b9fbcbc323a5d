package train

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/model"
)

// The elements that norms go over, counted by hand: two blocks of width 16 with two heads of queries and one of keys, 8 numbers each.
func TestNormsAreCounted(t *testing.T) {
	for _, x := range []struct {
		placement, qkNorm string
		finalNorm         bool
		want              float64 // numbers a token, forward
	}{
		{"pre", "none", true, 2*2*16 + 16},
		{"pre", "none", false, 2 * 2 * 16},
		{"post", "none", false, 2 * 2 * 16},
		{"peri", "none", true, 2*4*16 + 16},
		{"olmo2", "none", true, 2*2*16 + 16},
		{"pre", "rms", true, 2*2*16 + 16 + 2*(16+8)},
		{"pre", "rms_full", true, 2*2*16 + 16 + 2*(16+8)},
		{"pre", "l2", true, 2*2*16 + 16 + 2*(16+8)},
	} {
		c := model.Default()
		c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.NKVHeads, c.HeadDim, c.DFF, c.SeqLen = 50, 16, 2, 2, 1, 8, 24, 8
		c.Placement, c.QKNorm, c.FinalNorm = x.placement, x.qkNorm, x.finalNorm
		for _, accumulation := range []int{1, 3} {
			programs, err := StepperPrograms(c, ProgramOptions{Batch: 2, SeqLen: 8, MaxNorm: 1}, accumulation)
			require.NoError(t, err)
			w := WorkOf(c, 8, 2*8*accumulation, programs, accumulation)
			require.Equal(t, 2*x.want, w.NormElements, "%+v: forward and backward", x)
			require.Equal(t, c.CausalFLOPsPerToken(8), w.FLOPs)
			require.Greater(t, w.Bytes, 4*2*x.want)
		}
	}
}
