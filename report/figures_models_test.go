package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each placement has a curve over the depths of its models, of their first steps; a depth that another setting goes with is in none.
func TestGradientsOfModelsOfSeveralDepths(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"pre", "post"} {
		for _, layers := range []int{8, 2, 4} {
			for seed := range uint64(2) {
				fake{name: fmt.Sprintf("%s-%d-%d", p, layers, seed+1), placement: p, seed: seed + 1, steps: 2, layers: layers, diagnose: 1}.write(t, dir)
			}
		}
	}
	fake{name: "other", placement: "pre", lr: 0.1, seed: 1, steps: 2, layers: 16, diagnose: 1}.write(t, dir)
	runs, _, err := ReadRuns(dir)
	require.NoError(t, err)
	nameVariants(runs)
	all := variantsOf(runs)
	f := modelDepthFigure(groupsOf(all, nil))
	require.Empty(t, f.missing)
	lines := f.chart.Panels[0].Lines
	require.Len(t, lines, 2)
	for _, l := range lines {
		require.Contains(t, []string{"pre", "post"}, l.Name)
		require.Equal(t, []float64{2, 4, 8}, l.X)
		for i, layers := range []int{2, 4, 8} {
			var list []float64
			for _, r := range runs {
				if r.Config.Model.Placement == l.Name && r.Config.Model.NLayers == layers {
					d := r.Lines[0].Diagnosis
					list = append(list, float64(d.Layers[layers-1].Kinds[lastDown].GradNorm))
				}
			}
			require.Len(t, list, 2)
			require.InDelta(t, (list[0]+list[1])/2, l.Y[i], 1e-12)
			require.Less(t, l.Low[i], l.High[i])
		}
	}
	require.NotEmpty(t, modelDepthFigure(groupsOf(all[:2], nil)).missing, "two depths are no curve")
}
