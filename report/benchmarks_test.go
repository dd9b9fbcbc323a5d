package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/tasks"
	"github.com/vktrain/vktrain/train"
)

// scored is a finished run of a placement with accuracies of tasks.
func scored(placement string, seed uint64, of ...tasks.Result) Run {
	cfg, _ := train.FromPreset("nano")
	cfg.Model.Placement, cfg.Seed, cfg.Steps = placement, seed, 1
	return Run{Dir: placement, Variant: placement, Seed: seed, Config: &cfg, Lines: []train.Metrics{{Step: 1, Loss: 5, ValLoss: 5, Evaluated: true, Tasks: of}}}
}

func TestPaperTableHasOurAccuracies(t *testing.T) {
	norm := func(x float64) *float64 { return &x }
	five := func(arc float64) []tasks.Result {
		return []tasks.Result{
			{Task: "arc_easy", N: 100, Acc: 0.9, AccNorm: norm(arc), Metric: tasks.AccNorm}, {Task: "mine", N: 7, Acc: 1, Metric: tasks.Acc},
			{Task: "winogrande", N: 100, Acc: 0.5, Metric: tasks.Acc}, {Task: "siqa", N: 100, Acc: 0.3, Metric: tasks.Acc},
			{Task: "piqa", N: 100, Acc: 0, AccNorm: norm(0.6), Metric: tasks.AccNorm}, {Task: "hellaswag", N: 100, Acc: 0, AccNorm: norm(0.25), Metric: tasks.AccNorm},
		}
	}
	all := variantsOf([]Run{scored("peri", 1, five(0.2)...), scored("peri", 2, five(0.4)...), scored("pre", 1, five(0.2)[:1]...), scored("post", 1)})
	rows := map[string][]string{}
	table := paperTable(all)
	for _, r := range table.Rows {
		if strings.HasPrefix(r[0].Text, "ours") {
			var texts []string
			for _, c := range r[2:8] {
				texts = append(texts, c.Text)
			}
			rows[r[1].Text] = texts
		}
	}
	require.Equal(t, map[string][]string{
		"peri": {"30.00 ± 14.14", "25.00 ± 0.00", "60.00 ± 0.00", "30.00 ± 0.00", "50.00 ± 0.00", "39.00 ± 2.83"},
		"pre":  {"20.00", "–", "–", "–", "–", "–"},
		"post": {"–", "–", "–", "–", "–", "–"},
	}, rows)
	require.Contains(t, table.Note, "over the first 100 documents of a task")
	require.Contains(t, paperTable(variantsOf([]Run{scored("post", 1)})).Note, "Ours have no accuracies: their configs have none of these in tasks.files.")
}
