package train

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// stepOf is the training step of a preset.
func stepOf(t *testing.T, preset string, batch int, r model.Recompute) *graph.Program {
	t.Helper()
	c, err := model.Preset(preset)
	require.NoError(t, err)
	p, err := StepProgram(c, ProgramOptions{Batch: batch, MaxNorm: 1, Recompute: r})
	require.NoError(t, err)
	return p
}

// The arena is within 1% of what is alive at once, and sharing places never needs more than places apart.
func TestArenaIsNearItsLowerBound(t *testing.T) {
	for preset, batch := range map[string]int{"bench-a": 16, "bench-b": 8, "bench-c": 2} {
		t.Run(preset, func(t *testing.T) {
			p := stepOf(t, preset, batch, "")
			apart, shared := graph.NewPlan(p), graph.NewPlanWith(p, graph.PlanOptions{InPlace: true})
			for _, pl := range []*graph.Plan{apart, shared} {
				t.Logf("arena %.1f MB, alive %.1f MB", float64(pl.ArenaBytes())/1e6, float64(pl.LiveBytes())/1e6)
				require.LessOrEqual(t, float64(pl.ArenaBytes()), 1.01*float64(pl.LiveBytes()))
			}
			require.LessOrEqual(t, shared.LiveBytes(), apart.LiveBytes())
		})
	}
}

// What is computed again is not alive between the passes. A token of bench-b has 12 values of width 384 and 3 of width 1024 in each block,
// of which attention keeps the 6 and 2 that are products of matrices or the block's input, and block the input alone; the block that is
// in progress has all of them.
func TestRecomputationSavesMemory(t *testing.T) {
	const tokens, blocks, width, ff = 8 * 256, 6, 4 * 384, 4 * 1024
	arena := func(r model.Recompute) float64 {
		pl := graph.NewPlanWith(stepOf(t, "bench-b", 8, r), graph.PlanOptions{InPlace: true})
		t.Logf("%s: arena %.1f MB, alive %.1f MB", r, float64(pl.ArenaBytes())/1e6, float64(pl.LiveBytes())/1e6)
		return float64(pl.ArenaBytes())
	}
	none, attention, block := arena(model.RecomputeNone), arena(model.RecomputeAttention), arena(model.RecomputeBlock)
	require.InEpsilon(t, tokens*blocks*(6*width+ff), none-attention, 0.02)
	require.InEpsilon(t, tokens*(blocks-1)*(11*width+3*ff), none-block, 0.05)
}

func TestRecomputeIsChecked(t *testing.T) {
	c, err := model.Preset("bench-a")
	require.NoError(t, err)
	_, err = StepProgram(c, ProgramOptions{Batch: 1, Recompute: "all"})
	require.EqualError(t, err, `recompute: "all" is unknown: use none, attention or block`)
	_, err = Load([]Assignment{{Key: "recompute", Value: "half"}})
	require.EqualError(t, err, `recompute: "half" is unknown: use none, attention or block`)
}

// Activations, attention's and the logits' among them, are at most a line in the length of the sequence: a step of twice the length has twice the arena or
// less, as gradients of parameters do not grow, nor do logits until an eighth of them is more than 32 MiB.
func TestArenaIsLinearInTheSequence(t *testing.T) {
	c, err := model.Preset("bench-b")
	require.NoError(t, err)
	for _, o := range []graph.PlanOptions{{}, {InPlace: true}} {
		for _, r := range []model.Recompute{model.RecomputeNone, model.RecomputeBlock} {
			var arenas []float64
			for c.SeqLen = 256; c.SeqLen <= 8192; c.SeqLen *= 2 {
				p, err := StepProgram(c, ProgramOptions{Batch: 2, MaxNorm: 1, Recompute: r})
				require.NoError(t, err)
				arenas = append(arenas, float64(graph.NewPlanWith(p, o).ArenaBytes()))
			}
			t.Logf("%s, %+v: %.0f", r, o, arenas)
			for i := range arenas[1:] {
				require.LessOrEqual(t, arenas[i+1], 2.01*arenas[i])
			}
		}
	}
}
