package experiment

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

func TestSpread(t *testing.T) {
	require.Nil(t, spreadOf(nil))
	one := spreadOf([]float64{3})
	require.Nil(t, one.SD, "one value has no spread")
	require.Equal(t, "3.00", one.cell("%.2f"))
	s := spreadOf([]float64{1, 2, 4})
	require.InDelta(t, 7./3, s.Mean, 1e-15)
	require.InDelta(t, math.Sqrt(7./3), *s.SD, 1e-15, "((4/3)² + (1/3)² + (5/3)²) / (3 - 1)")
	require.Equal(t, "2.33 ± 1.53", s.cell("%.2f"))
	require.Equal(t, []float64{1, 4}, []float64{s.Min, s.Max})
}

func TestBootstrap(t *testing.T) {
	require.Nil(t, meanInterval([]float64{1, 2}), "two pairs have no interval")
	same := meanInterval([]float64{2, 2, 2})
	require.Equal(t, []float64{2, 2}, []float64{same.Low, same.High})
	// Of three values a mean of resamples is the least with probability 1/27, which is over 2.5%.
	three := meanInterval([]float64{1, 2, 6})
	require.Equal(t, []float64{1, 6}, []float64{three.Low, three.High})
	// Of many, it is normal: the mean of 400 numbers of variance 1 to ±1.96/20.
	x := make([]float64, 400)
	for i := range x {
		x[i] = float64(2*(i%2) - 1)
	}
	many := meanInterval(x, "name")
	require.InDelta(t, -0.098, many.Low, 0.006)
	require.InDelta(t, 0.098, many.High, 0.006)
	require.Equal(t, many, meanInterval(x, "name"), "the same draws")
	for i := range x {
		x[i] = math.Sin(float64(i)) // no two resamples have one mean
	}
	require.NotEqual(t, meanInterval(x, "name"), meanInterval(x, "other"))
	require.Equal(t, Resamples, many.Resamples)
}

func TestDifferencesArePaired(t *testing.T) {
	nan := math.NaN()
	d := difference("m", "a", "b", []float64{1.1, 2.1, nan, 4}, []float64{1, 2, 3, nan})
	require.Equal(t, 2, d.N)
	require.Equal(t, 2, d.Lost)
	require.InDelta(t, 0.1, d.Mean, 1e-15)
	require.InDelta(t, 0, *d.SD, 1e-15, "what seeds share is no spread")
	require.Nil(t, d.Interval)
	require.Equal(t, "+0.10 ± 0.00 (2 lost)", d.cell("%.2f"))
	require.Nil(t, difference("m", "a", "b", []float64{nan}, []float64{1}))
	d = difference("m", "a", "b", []float64{1, 2, 3}, []float64{2, 3, 4})
	require.Equal(t, "-1.0 ± 0.0 [-1.0, -1.0]", d.cell("%.1f"))
}

func TestCriteria(t *testing.T) {
	run := func(val float64) RunResult { return RunResult{Figures: Figures{"val_loss": val, "initial_loss": 5}} }
	broken := RunResult{Broken: &Broken{7, "the loss is NaN"}, Figures: Figures{"initial_loss": 5}}
	for _, x := range []struct {
		criterion string
		val       float64
		want      string
	}{
		{"above_initial", 4.9, ""}, {"above_initial", 5.5, "the final validation loss 5.5 is over 5"},
		{"non_finite", 5.5, ""}, {"3", 2.9, ""}, {"3", 4, "the final validation loss 4 is over 3"},
	} {
		c, err := ParseCriterion(x.criterion)
		require.NoError(t, err)
		require.Equal(t, x.criterion, c.String())
		require.Equal(t, x.want, c.has(run(x.val)))
		require.Equal(t, "the loss is NaN at step 7", c.has(broken), "always")
		require.NotEmpty(t, c.Sentence())
	}
}

func TestFiguresOfARun(t *testing.T) {
	var lines []train.Metrics
	for i := 1; i <= 40; i++ {
		m := train.Metrics{Step: i, Loss: float64(100 - i), GradNorm: 1}
		switch i {
		case 10:
			m.GradNorm = 90 // within the first 20: nothing to compare it with
		case 30:
			m.GradNorm = 6
		case 31:
			m.GradNorm = 5
		case 32:
			m.GradNorm, m.Skipped = math.Inf(1), true
		case 20, 40:
			m.Evaluated, m.ValLoss = true, float64(i)
		}
		lines = append(lines, m)
	}
	f := measure(lines)
	require.Equal(t, Figures{"train_loss": 61.5, "grad_norm": 1, "grad_norm_max": 90, "spikes": 1, "skipped": 1, "best_val_loss": 20}, f)
	require.Empty(t, measure(nil))
	require.NotContains(t, measure(lines[:3]), "best_val_loss")

	diagnosed := func(scale float64) *train.Diagnosis {
		n := func(x float64) train.Number { return train.Number(scale * x) }
		layer := func(variance, logit, grad float64) train.LayerDiagnosis {
			l := train.LayerDiagnosis{Logits: train.Attention{LargestLogit: n(logit), Entropy: n(1), OneHot: 0.5}}
			l.MLP.Stream = train.Stream{Variance: n(variance), Largest: []train.Number{n(9), n(8)}}
			l.Kinds = map[string]train.ParameterStats{lastDown: {GradNorm: n(grad)}}
			l.GradNorm = n(grad + 1)
			return l
		}
		return &train.Diagnosis{Layers: []train.LayerDiagnosis{layer(2, 30, 7), layer(3, 20, 1)}}
	}
	lines[4].Diagnosis, lines[30].Diagnosis = diagnosed(2), diagnosed(1)
	f = measure(lines)
	for name, want := range map[string]float64{
		"final_variance": 3, "max_activation": 18, "max_logit": 60, "attention_entropy": 1, "one_hot": 0.5, "final_layer_grad_norm": 1.5, "layer_grad_ratio": 4,
	} {
		require.Equal(t, want, f[name], name)
		_, err := MetricNamed(name)
		require.NoError(t, err)
	}
	require.NotContains(t, f, "initial_variance", "step 1 is not diagnosed")

	lines[0].Diagnosis = diagnosed(3)
	f = measure(lines)
	for name, want := range map[string]float64{"initial_variance": 9, "initial_final_layer_grad_norm": 3, "initial_layer_grad_ratio": 4, "final_variance": 3} {
		require.Equal(t, want, f[name], name)
		_, err := MetricNamed(name)
		require.NoError(t, err)
	}
	lines[0].Diagnosis.Layers[0].GradNorm = 0
	require.NotContains(t, measure(lines), "initial_layer_grad_ratio", "no gradient at all is no ratio")
}

// The definition by hand: losses 2, 1, and one that is over the loss at initialisation, which is 3.
func TestSensitivity(t *testing.T) {
	e := &Experiment{Name: "s", Seeds: CountSeeds(3), Axes: []Axis{
		{Name: "model.qk_norm", Key: "model.qk_norm", Variants: []Variant{
			{"none", []train.Assignment{{Key: "model.qk_norm", Value: "none"}}}, {"rms", []train.Assignment{{Key: "model.qk_norm", Value: "rms"}}},
		}},
		RateAxis([]string{"1e-2", "1e-3", "1e-1"}),
	}}
	m, err := e.Matrix()
	require.NoError(t, err)
	loss := map[string][]float64{ // by rate 1e-3, 1e-2, 1e-1
		"none": {2, 1, 50}, "rms": {2, 1.5, 1.5},
	}
	var runs []*RunResult
	for _, r := range m.Runs {
		c := m.Combinations[r.Combination]
		val := loss[e.Axes[0].Variants[c.Variants[0]].Name][[]int{1, 0, 2}[c.Variants[1]]]
		x := &RunResult{ID: r.ID, Seed: r.Seed, Figures: Figures{"initial_loss": 3, "val_loss": val + float64(r.Seed)/16}}
		if val == 50 && r.Seed == 2 {
			x.Broken = &Broken{3, "the loss is NaN"}
			delete(x.Figures, "val_loss")
		}
		runs = append(runs, x)
	}
	res := m.Summarize(runs)
	s := res.Sensitivity
	require.Equal(t, []float64{1e-3, 1e-2, 1e-1}, s.Rates)
	require.Len(t, s.Rows, 2)
	none, rms := s.Rows[0], s.Rows[1]
	require.Equal(t, "none", none.ID)
	for i, seed := range none.BySeed {
		shift := float64(i+1) / 16
		require.InDelta(t, (2+shift+1+shift+3)/3-(1+shift), seed.Sensitivity, 1e-12)
		require.InDelta(t, 1+shift, seed.BestLoss, 1e-12)
		require.Equal(t, 1e-2, seed.BestRate)
	}
	require.Equal(t, 3, none.Cells[2].Diverged)
	require.InDelta(t, 1./6, rms.Sensitivity.Mean, 1e-12)
	require.InDelta(t, 0, *rms.Sensitivity.SD, 1e-12)
	require.Len(t, s.Pairs, 1)
	require.InDelta(t, 1./6-none.Sensitivity.Mean, s.Pairs[0].Sensitivity.Mean, 1e-12)
	require.InDelta(t, 0.5, s.Pairs[0].Best.Mean, 1e-12)
	require.NotNil(t, s.Pairs[0].Best.Interval)

	table := res.RateTable()
	require.Equal(t, []string{"lr", "none", "rms"}, table.Head)
	require.Equal(t, []string{"0.1", "3.0000 ± 0.0000 (3 diverged)", "1.6250 ± 0.0625"}, table.Rows[2])
	require.Equal(t, []string{"best lr", "0.01", "0.01"}, table.Rows[5], "of equals the lower")
	var none1e1 Summary
	for _, c := range res.Combinations {
		if c.ID == "none_lr=1e-1" {
			none1e1 = c
		}
	}
	require.Equal(t, 3, none1e1.Diverged)
	require.NotContains(t, none1e1.Figures, "val_loss", "a diverged run is in no mean")
	require.Contains(t, res.Markdown(), "3 of 18 runs diverged")
	require.Contains(t, res.Markdown(), "none_lr=1e-1_s2 diverged: the loss is NaN at step 3.")
	for i := range res.Runs {
		res.Runs[i].Diverged = "so"
	}
	require.Equal(t, "runs.csv has the other 8 that diverged.", res.lines()[len(res.lines())-1])
	require.Contains(t, m.Summarize(runs).RunsCSV(), "none_lr=1e-1_s2,none_lr=1e-1,none,1e-1,2,the loss is NaN at step 3,")

	text := func() string {
		var b strings.Builder
		m.Summarize(runs).WriteText(&b)
		return b.String()
	}
	require.NotContains(t, text(), "max logit", "the table of learning rates has the losses")
	m.Metrics = []string{"val_loss", "max_logit"}
	require.Contains(t, text(), "max logit")
	require.Contains(t, text(), "best lr")
	_, zero := sensitivityOf([]float64{3, 3})
	require.Zero(t, zero, "a model that never learns")
}

// The deviation has two digits, and the mean as many places; what needs an exponent, or has no deviation, keeps the metric's format.
func TestSpreadOfManySizes(t *testing.T) {
	for want, s := range map[string][2]float64{
		"105100 ± 7600": {105080.28, 7640.8}, "11860 ± 520": {11860, 515.4}, "16.15 ± 0.27": {16.15, 0.267}, "0.33 ± 0.58": {0.3333, 0.5774}, "0.00296 ± 0.00015": {0.002961, 0.0001513},
		"-3 ± 12": {-3.2, 12.3}, "0 ± 12": {-0.3, 12.3}, "0 ± 500": {-4, 503}, "3 ± 0": {3, 0}, "2.5e-07 ± 1e-08": {2.5e-7, 1e-8}, "3e+09 ± 1e+08": {3e9, 1e8},
	} {
		require.Equal(t, want, (&Spread{N: 3, Mean: s[0], SD: &s[1]}).cell("%.4g"))
	}
	sd := 0.5
	require.Equal(t, "1.2500 ± 0.5000", (&Spread{N: 3, Mean: 1.25, SD: &sd}).cell("%.4f"))
}
