package train

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// stepOf is the training step of a preset.
func stepOf(t *testing.T, preset string, batch int) *graph.Program {
	t.Helper()
	c, err := model.Preset(preset)
	require.NoError(t, err)
	p, err := StepProgram(c, ProgramOptions{Batch: batch, MaxNorm: 1})
	require.NoError(t, err)
	return p
}

// The arena is within 5% of what is alive at once, and sharing places never needs more than places apart.
func TestArenaIsNearItsLowerBound(t *testing.T) {
	for preset, batch := range map[string]int{"bench-a": 16, "bench-b": 8, "bench-c": 2} {
		t.Run(preset, func(t *testing.T) {
			p := stepOf(t, preset, batch)
			apart, shared := graph.NewPlan(p), graph.NewPlanWith(p, graph.PlanOptions{InPlace: true})
			for _, pl := range []*graph.Plan{apart, shared} {
				t.Logf("arena %.1f MB, alive %.1f MB", float64(pl.ArenaBytes())/1e6, float64(pl.LiveBytes())/1e6)
				require.LessOrEqual(t, float64(pl.ArenaBytes()), 1.05*float64(pl.LiveBytes()))
			}
			require.LessOrEqual(t, shared.LiveBytes(), apart.LiveBytes())
		})
	}
}
