package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/experiment"
)

// writeExperiment leaves book.txt and tiny.yaml, whose runs take a fraction of a second.
func writeExperiment(t *testing.T, more string) {
	require.NoError(t, os.WriteFile("book.txt", []byte(strings.Repeat("What is written without effort is read without pleasure.\n", 300)), 0o666))
	require.NoError(t, os.WriteFile("tiny.yaml", []byte(`
question: Does it matter?
base:
  model: {d_model: 16, n_layers: 1, n_heads: 2, n_kv_heads: 1, head_dim: 8, d_ff: 24}
  data: {path: book.txt, tokenizer: byte}
  seq_len: 16
  batch: 2
  steps: 6
  eval_batches: 2
  eval_every: 2
`+more), 0o666))
}

const placements = "axes: {model.placement: [pre, peri]}\nseeds: 3\n"

func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	writeExperiment(t, placements)
	status, out, errs := vktrain("compare", "tiny.yaml", "--devices", "cpu", "--dry-run")
	require.Zero(t, status, errs)
	require.Contains(t, out, "peri_s3")
	require.Contains(t, out, "to train")
	require.Contains(t, out, " for 6 runs of 6")
	require.NoDirExists(t, "runs")

	status, out, errs = vktrain("compare", "tiny.yaml", "--devices", "cpu", "--jobs", "2")
	require.Zero(t, status, errs)
	for _, want := range []string{
		"Does it matter?\n", "placement  params  n  diverged", "\npre ", "\nperi ", " ± ", " [", "Δ: less the same with model.placement pre.", "3 seeds a combination",
		"A run has diverged if", "runs/tiny has results.json",
	} {
		require.Contains(t, out, want)
	}
	require.FileExists(t, filepath.Join("runs", "tiny", "report.html"))
	require.FileExists(t, filepath.Join("runs", "tiny", "figures", "variance-depth.csv"))
	require.Contains(t, errs, "pre_s1: val ")
	require.Contains(t, errs, "6 of 6, 0s left")

	for format, want := range map[string]string{
		"markdown": "| placement | params |", "csv": "combination,model.placement,baseline,params,runs,diverged,val_loss_n,val_loss_mean", "json": `"question": "Does it matter?"`,
	} {
		status, out, errs = vktrain("compare", "tiny.yaml", "--devices", "cpu", "--format", format)
		require.Zero(t, status, errs)
		require.Contains(t, out, want)
		require.Empty(t, errs, "all is finished")
	}
	status, out, errs = vktrain("compare", "tiny.yaml", "--devices", "cpu", "--dry-run", "--seeds", "4")
	require.Zero(t, status, errs)
	require.Contains(t, out, "finished")
	require.Contains(t, out, " for 2 runs of 8")
}

// What was trained is shown although steps cannot be timed.
func TestCompareWithoutTurns(t *testing.T) {
	t.Chdir(t.TempDir())
	writeExperiment(t, placements)
	status, _, errs := vktrain("compare", "tiny.yaml", "--devices", "cpu")
	require.Zero(t, status, errs)
	require.NoError(t, os.MkdirAll(filepath.Join("runs", "tiny", experiment.CostFile, "in the way"), 0o777))
	writeExperiment(t, placements+"cost: 1\n")
	status, out, errs := vktrain("compare", "tiny.yaml", "--devices", "cpu")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "all runs are finished, but steps could not be timed in turns: ")
	require.Contains(t, errs, experiment.CostFile)
	require.Contains(t, out, "placement  params  n  diverged")
}

func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	writeExperiment(t, "axes: {z_loss: [0, 1e-4]}\nseeds: 2\n")
	status, out, errs := vktrain("sweep", "tiny.yaml", "--devices", "cpu", "--rates", "1e-2, 1e-3", "--steps", "4", "--out", "swept")
	require.Zero(t, status, errs)
	for _, want := range []string{"lr ", "\n0.001 ", "\n0.01 ", "\nsensitivity ", "\nbest loss ", "\nbest lr ", "\nΔ sensitivity ", "z_loss=1e-4", "Wortsman et al. 2023"} {
		require.Contains(t, out, want)
	}
	raw, err := os.ReadFile(filepath.Join("swept", "results.json"))
	require.NoError(t, err)
	var r experiment.Results
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Len(t, r.Runs, 8)
	require.Equal(t, 4, r.Runs[0].Steps)
	require.Equal(t, []float64{1e-3, 1e-2}, r.Sensitivity.Rates)
	require.Equal(t, 2, r.Sensitivity.Rows[0].Sensitivity.N)

	status, out, errs = vktrain("sweep", "--over", "qk_norm,z_loss,warmup", "--devices", "cpu", "--dry-run", "--set", "model.d_model=32", "--set", "model.n_heads=2", "--set", "model.n_kv_heads=2",
		"--set", "model.head_dim=16")
	require.Zero(t, status, errs)
	require.Contains(t, out, "qk-none_no-z_no-warmup_lr=3e-4_s1")
	require.Contains(t, out, fmt.Sprintf(" for %d runs of ", 8*7*2))
}

func TestCompareAndSweepRefuse(t *testing.T) {
	t.Chdir(t.TempDir())
	writeExperiment(t, placements)
	require.NoError(t, os.WriteFile("rates.yaml", []byte("axes: {lr: [1, 2]}"), 0o666))
	require.NoError(t, os.WriteFile("wrong.yaml", []byte("axes:\n  model.placement: [pre]\n  lr: [fast]"), 0o666))
	for _, x := range []struct {
		args string
		want string
	}{
		{"compare", "vktrain compare needs one EXPERIMENT.yaml: see vktrain compare --help"},
		{"compare none.yaml", "the config can't be read: open none.yaml: no such file or directory"},
		{"compare wrong.yaml", `pre_fast: wrong.yaml:3: lr: "fast" is no number`},
		{"compare tiny.yaml --set x", `--set: "x" is no assignment: use key=value, such as lr=3e-3`},
		{"compare tiny.yaml --set seed=3", "seed is not for a config here: seeds has it"},
		{"compare tiny.yaml --seeds -1", "--seeds: -1 is not possible: use 1 to 1000, or 0 for the file's"},
		{"compare tiny.yaml --seeds 1001", "--seeds: 1001 is not possible: use 1 to 1000, or 0 for the file's"},
		{"compare rates.yaml --set lr=3", "--set: lr is what axis lr sets in each of its variants, so that --set would change nothing: leave it out, or change the axis"},
		{"compare tiny.yaml --set steps=x", `pre: steps: "x" is no whole number`},
		{"compare tiny.yaml --jobs 0", "--jobs: 0 is too small: use at least 1"},
		{"compare tiny.yaml --devices gpu", `device: "gpu" is unknown: use auto, cpu, vulkan, or vulkan:N with an N that ` + "`vktrain devices` lists"},
		{"compare tiny.yaml --devices cpu,cpu", "devices: cpu is there twice: use jobs for runs side by side on the CPU"},
		{"compare tiny.yaml --format html", `--format: "html" is unknown: use text, markdown, csv, json`},
		{"sweep --over depth", `--over: "depth" is unknown: use qk_norm, z_loss, warmup, placement, or write an EXPERIMENT.yaml`},
		{"sweep tiny.yaml --preset nano", "--preset and tiny.yaml both say what is trained: leave one of the two out"},
		{"sweep rates.yaml --rates 1", "--rates: rates.yaml has an axis of learning rates already: leave one of the two out"},
		{"sweep tiny.yaml --rates 1,x", `pre_lr=x: lr: "x" is no number`},
	} {
		status, out, errs := vktrain(strings.Fields(x.args)...)
		require.NotZero(t, status, x.args)
		require.Equal(t, "vktrain: "+x.want+"\n", errs, x.args)
		require.Empty(t, out, x.args)
	}
}
