package experiment

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/train"
)

func TestTimeOfSteps(t *testing.T) {
	var lines []train.Metrics
	for i := range 12 {
		lines = append(lines, train.Metrics{Step: i + 1, Seconds: float64(i + 1)})
	}
	lines[0].Seconds, lines[6].Seconds = 0, 0 // not timed
	got := TimeSteps(lines, 80)
	require.Equal(t, Timing{Steps: 8, Median: 8.5, Low: 5, High: 10, TokensPerSec: 80 / 8.5}, got, "of steps 4, 5, 6, 8, 9, 10, 11 and 12")
	require.Equal(t, Timing{Steps: 4}, TimeSteps(lines[:8], 80), "too few say how many, and nothing else")
}

// An experiment of cost has its runs' times in its tables, and times steps of all combinations in turns, once.
func TestCost(t *testing.T) {
	m := tiny(t, book(t), `
axes: {model.placement: [pre, peri], batch: [2, 3]}
seeds: 3
cost: 5
metrics: [step_ms, tokens_per_s, step_memory, run_memory, flops_per_token, norm_elements, traffic]
`)
	for i := range m.Combinations {
		m.Combinations[i].Config.Steps, m.Combinations[i].Config.EvalEvery = 12, 0
	}
	for i := range m.Runs {
		m.Runs[i].Config.Steps, m.Runs[i].Config.EvalEvery = 12, 0
	}
	o := options(t)
	var turns []string
	o.Watch = func(e Event) {
		if e.Kind == EventTurns {
			turns = append(turns, e.Text)
		}
	}
	r, err := Execute(t.Context(), m, o)
	require.NoError(t, err)
	require.Equal(t, []string{"5 turns of 2 combinations", "5 turns of 2 combinations"}, turns, "the batches are no family")
	pre, peri := r.Combinations[0], r.Combinations[2]
	require.Equal(t, []string{"pre_batch=2", "peri_batch=2"}, []string{pre.ID, peri.ID})
	for _, c := range r.Combinations {
		for _, m := range r.Metrics {
			require.NotNil(t, c.Figures[m.Name], m.Name)
			require.Positive(t, c.Figures[m.Name].Mean, m.Name)
		}
		require.InEpsilon(t, 1e3*16*map[string]float64{"2": 2, "3": 3}[c.Variants["batch"]], c.Figures["tokens_per_s"].Mean*c.Figures["step_ms"].Mean, 0.5)
	}
	require.Equal(t, pre.Figures["flops_per_token"].Mean, peri.Figures["flops_per_token"].Mean)
	require.Equal(t, 2*(2*16+16+16+8.), pre.Figures["norm_elements"].Mean, "of both modules, the end, the queries and the keys")
	require.Equal(t, 2*(4*16+16+16+8.), peri.Figures["norm_elements"].Mean)
	require.Greater(t, peri.Figures["traffic"].Mean, pre.Figures["traffic"].Mean)
	require.Greater(t, peri.Figures["run_memory"].Mean, peri.Figures["step_memory"].Mean)
	run := r.Runs[0]
	result, err := readResult(filepath.Join(o.Out, RunsFolder, run.ID))
	require.NoError(t, err)
	require.Equal(t, 8, result.Cost.Time.Steps, "4 to 11")
	require.Equal(t, 1e3*result.Cost.Time.Median, run.Figures["step_ms"])
	require.NotContains(t, result.Figures, "step_ms", "what depends on time is apart")
	if bench.ResetPeakResident() {
		require.Greater(t, run.Figures["peak_resident"], 1.0)
	}

	var steps []bench.Step
	path := filepath.Join(o.Out, CostFile)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &steps))
	require.Len(t, steps, 4)
	require.Equal(t, []string{"pre_batch=2", "peri_batch=2", "pre_batch=3", "peri_batch=3"}, []string{steps[0].Name, steps[1].Name, steps[2].Name, steps[3].Name})
	require.Equal(t, "pre_batch=3", steps[3].RatioTo)
	require.Positive(t, steps[3].RatioLow)
	require.Equal(t, steps[1].Work.NormElements, peri.Figures["norm_elements"].Mean)
	require.Equal(t, float64(steps[1].DeviceBytes)/mebi, peri.Figures["step_memory"].Mean, "the plan is what the device takes")

	turns = nil
	_, err = Execute(t.Context(), m, o)
	require.NoError(t, err)
	require.Empty(t, turns, "they are there")
	require.NoError(t, os.RemoveAll(filepath.Join(o.Out, RunsFolder, run.ID)))
	_, err = Execute(t.Context(), m, o)
	require.NoError(t, err)
	require.Len(t, turns, 2, "beside runs that are trained anew they are timed anew")
}

func TestTooFewStepsHaveNoTime(t *testing.T) {
	m := tiny(t, book(t), "axes: {model.placement: [pre, peri]}\ncost: 1\nmetrics: [step_ms]\n")
	r, err := Execute(t.Context(), m, options(t))
	require.NoError(t, err)
	require.Contains(t, r.Notes[len(r.Notes)-1], "2 of 2 runs have none: they have too few such steps (5 are needed)")
	require.Nil(t, r.Combinations[0].Figures["step_ms"])
	require.Contains(t, r.Table().Rows[0], absent)
	for _, run := range r.Runs {
		for name, x := range run.Figures {
			require.False(t, math.IsNaN(x), name)
		}
	}
	e, err := Parse("x.yaml", []byte("metrics: [tokens_per_s]"))
	require.NoError(t, err)
	_, err = e.Matrix()
	require.EqualError(t, err, "metrics: tokens_per_s depends on time, and no result does unless it is asked for: add cost: 20, which also times 20 steps of each combination in turns")
}

func TestFamiliesBeginWithWhatTheyAreComparedWith(t *testing.T) {
	m := tiny(t, book(t), "axes: {model.placement: [post, pre, peri], model.qk_norm: [none, rms]}\npaired_with: {model.placement: pre}\n")
	var names [][]string
	for _, f := range m.families() {
		var ids []string
		for _, i := range f {
			ids = append(ids, m.Combinations[i].ID)
		}
		names = append(names, ids)
	}
	require.Equal(t, [][]string{{"pre_none", "post_none", "peri_none"}, {"pre_rms", "post_rms", "peri_rms"}}, names)
}
