package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/experiment"
)

// An experiment's results name the variants, say what diverged, and give the tables; runs that they don't tell of are left out, in words.
func TestReportOfAnExperiment(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, experiment.RunsFolder)
	results := experiment.Results{Name: "rates", Question: "Does <it>?", Criterion: "A run has diverged if the test says so.", Notes: []string{"Note & more."},
		Axes:       []experiment.AxisSummary{{Name: "qk"}, {Name: "lr", Key: "lr"}},
		AllMetrics: []experiment.Metric{{Name: "val_loss", Label: "val loss", Format: "%.4f"}}, Metrics: []experiment.Metric{{Name: "val_loss", Label: "val loss", Format: "%.4f"}},
		Sensitivity: &experiment.RateSensitivity{Text: "What sensitivity is.", Rates: []float64{1e-3, 1e-2, 1e-1}, Rows: []experiment.RateRow{{ID: "rms", Variants: map[string]string{"qk": "rms"},
			Sensitivity: &experiment.Spread{N: 1, Mean: 0.125}, Best: &experiment.Spread{N: 1, Mean: 1.75}}}},
	}
	for i, lr := range []float64{1e-1, 1e-3, 1e-2} { // not in the order of folders' names
		id := []string{"rms_lr=0.1", "rms_lr=0.001", "rms_lr=0.01"}[i]
		fake{name: id + "_s7", placement: "peri", lr: lr, seed: 7, steps: 12, layers: 1}.write(t, runs)
		run := experiment.RunSummary{ID: id + "_s7", Combined: id, Seed: 7}
		if i == 0 {
			run.Diverged = "the test says so"
		}
		spread := &experiment.Spread{N: 1, Mean: 2 + float64(i), Min: 2, Max: 2}
		results.Runs = append(results.Runs, run)
		results.Combinations = append(results.Combinations, experiment.Summary{ID: id, Variants: map[string]string{"qk": "rms", "lr": id[7:]}, Runs: 1, Figures: map[string]*experiment.Spread{"val_loss": spread}})
		results.Sensitivity.Rows[0].Cells = append(results.Sensitivity.Rows[0].Cells, experiment.RateCell{Rate: lr, Runs: 1, Diverged: len(run.Diverged) / 16, Loss: spread})
	}
	fake{name: "older_s1", placement: "pre", seed: 1, steps: 5, layers: 1}.write(t, runs)
	require.NoError(t, results.Write(dir))

	page, w := written(t, dir)
	require.Equal(t, 3, w.Variants)
	for _, s := range []string{"<h1>rates</h1>", "Does &lt;it&gt;?", "1 of the runs in " + dir, "A run has diverged if the test says so.", "Note &amp; more.", "diverged: the test says so", "What sensitivity is.",
		"rms: sensitivity 0.125, best loss 1.750 at 0.1", "2.0000"} {
		require.Contains(t, page, s)
	}
	require.NotContains(t, page, "older_s1")
	r, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, "rms_lr=0.1", r.Runs[0].Variant)
	require.Equal(t, []string{"", "rms, diverged", "0.1", "2"}, readCSV(t, dir, "lr-sweep")[4])

	_, err = Read(dir, filepath.Join(dir, experiment.RunsFolder, results.Runs[0].ID))
	require.ErrorContains(t, err, "is there twice: give each folder once")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, experiment.RunsFolder, results.Runs[0].ID)))
	r, err = Read(dir)
	require.NoError(t, err)
	require.Contains(t, r.Notes[0], "Only 2 of the 3 runs that results.json in ")
	results.Format = experiment.ResultsFormat + 1
	require.NoError(t, results.Write(dir))
	_, err = Read(dir)
	require.ErrorContains(t, err, "has format 2, and this program reads up to 1")
	write(t, dir, experiment.ResultsFile, "{}")
	_, err = Read(dir)
	require.ErrorIs(t, err, ErrNoRun)
	require.ErrorContains(t, err, "there is no run that its results.json tells of: run vktrain compare again")
	write(t, dir, experiment.ResultsFile, "{")
	_, err = Read(dir)
	require.ErrorContains(t, err, "run vktrain compare again")
}

func TestCostOfSteps(t *testing.T) {
	dir := fake{name: "run", placement: "peri", seed: 1, steps: 12, layers: 1}.write(t, t.TempDir())
	write(t, dir, CostFile, `[{"name":"nano pre","params":1000,"batch":2,"seq_len":8,"ms_per_step":10,"ms_min":9,"device_bytes":1048576,"peak_bytes":2097152},{"name":"nano peri","ratio":1.0125,"ms_per_step":10.1}]`)
	page, _ := written(t, dir)
	for _, s := range []string{"nano pre", "1.012", "1.0 MiB"} {
		require.Contains(t, page, s)
	}
	write(t, dir, CostFile, `{"name":"alone","ms_per_step":10}`)
	page, _ = written(t, dir)
	require.Contains(t, page, "alone")
	write(t, dir, CostFile, strings.Repeat("[", 3))
	_, err := Read(dir)
	require.ErrorContains(t, err, CostFile)
	require.NoError(t, os.Remove(filepath.Join(dir, CostFile)))
}

// Peri-LN's time beside Pre-LN's is in the page twice, and a sentence says whether the two agree. Few steps have no time.
func TestCostOfAnExperiment(t *testing.T) {
	for _, x := range []struct {
		name        string
		steps       int
		low, high   float64 // of the turns' ratio
		want, never string
	}{
		{"agrees", 20, 1.05, 1.15, "1.100 [1.100, 1.100] in 3 pairs of runs, 1.110 [1.050, 1.150] in 9 turns. The two agree within noise", "too few steps"},
		{"differs", 20, 1.105, 1.15, "The two do not agree: their intervals have nothing in common.", "agree within noise"},
		{"short", 6, 1.05, 1.15, "1.110 [1.050, 1.150] in 9 turns. The runs have too few steps to say.", "1.100"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			results := experiment.Results{Name: "cost", Seeds: []uint64{1, 2, 3}}
			for _, placement := range []string{"pre", "peri"} {
				c := experiment.Summary{ID: placement, Runs: 3}
				if placement == "peri" {
					c.Baseline = "pre"
				}
				results.Combinations = append(results.Combinations, c)
				for seed := range uint64(3) {
					id := placement + "_s" + string('1'+rune(seed))
					fake{name: id, placement: placement, seed: seed + 1, steps: x.steps, layers: 1, pace: map[string]float64{"pre": 0.02, "peri": 0.022}[placement]}.write(t, filepath.Join(dir, experiment.RunsFolder))
					results.Runs = append(results.Runs, experiment.RunSummary{ID: id, Combined: placement, Seed: seed + 1, Device: "cpu: x (go)", Figures: experiment.Figures{
						experiment.MetricStepMemory: 30, experiment.MetricRunMemory: 45, experiment.MetricResident: 99, experiment.MetricNorms: 1344, experiment.MetricTraffic: 181e3,
					}})
				}
			}
			require.NoError(t, results.Write(dir))
			turns := []bench.Step{{Name: "pre", RatioTo: "pre", Ratio: 1, Device: "cpu: x, 2 threads (go)", Steps: 9}, {Name: "peri", RatioTo: "pre", Ratio: 1.11, RatioLow: x.low, RatioHigh: x.high, Device: "cpu: x, 2 threads (go)", Steps: 9}}
			raw, err := json.Marshal(turns)
			require.NoError(t, err)
			write(t, dir, CostFile, string(raw))
			page, _ := written(t, dir)
			require.Contains(t, page, x.want)
			require.NotContains(t, page, x.never)
			for _, s := range []string{"Beside pre, on cpu: x (go)", "30.0 MiB", "45.0 MiB", "99 MiB", "1.34k", "181k"} {
				require.Contains(t, page, s)
			}
			if x.steps == 6 {
				require.Contains(t, page, "too few steps (2 of 5)")
			} else {
				require.Contains(t, page, "22.0 ± 0.0 [22.0, 22.0]")
			}
		})
	}
}

// Variants of which nobody knows what they differ in, as of runs without a config, have their names in the table of costs.
func TestVariantsWithoutChoicesHaveTheirNames(t *testing.T) {
	family := []*costRow{{variant: &variant{name: "first"}}, {variant: &variant{name: "second"}}}
	require.Empty(t, nameFamily(family))
	require.Equal(t, []string{"first", "second"}, []string{family[0].label, family[1].label})
}
