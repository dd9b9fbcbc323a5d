package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

// vktrain runs a command line.
func vktrain(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(context.Background(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// small makes a training run that takes a moment.
func small(more ...string) []string {
	return append([]string{"train", "--device", "cpu", "--steps", "5",
		"--set", "model.d_model=32", "--set", "model.n_layers=1", "--set", "model.n_heads=2", "--set", "model.n_kv_heads=2",
		"--set", "model.head_dim=16", "--set", "model.d_ff=64", "--set", "data.vocab_size=300", "--set", "seq_len=32", "--set", "batch=4",
		"--set", "eval_batches=2", "--set", "eval_every=2"}, more...)
}

func readLines(t *testing.T, dir string) []train.Metrics {
	f, err := os.Open(filepath.Join(dir, train.MetricsFile))
	require.NoError(t, err)
	defer f.Close()
	lines, err := train.ReadMetrics(f)
	require.NoError(t, err)
	for i := range lines {
		lines[i].Elapsed, lines[i].Seconds, lines[i].TokensPerSec, lines[i].Scoring = 0, 0, 0, 0
	}
	return lines
}

func TestTrainAndGenerate(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, errs := vktrain(small()...)
	require.Zero(t, status, errs)
	dir := filepath.Join("runs", "nano-stories-1")
	for _, name := range []string{"metrics.jsonl", "config.yaml", "loss.png", "model.safetensors", "config.json", "tokenizer.json"} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	lines := readLines(t, dir)
	require.Len(t, lines, 5)
	require.True(t, lines[1].Evaluated)
	require.True(t, lines[4].Evaluated, "the last step always is")
	require.False(t, lines[2].Evaluated)
	for _, want := range []string{"device     cpu: ", "parameters", "floor", "first text", " s to the first step: data ", "val loss", "checkpoint " + dir} {
		require.Contains(t, out, want)
	}
	require.Contains(t, errs, "step 5/5  loss ")
	require.Contains(t, errs, "tok/s")
	require.Contains(t, errs, " left")

	status, again, errs := vktrain("train", filepath.Join(dir, "config.yaml"), "--out", "again", "--nice")
	require.Zero(t, status, errs)
	require.Contains(t, again, "again: 5 steps")
	require.Equal(t, lines, readLines(t, "again"), "a written config gives the same run")
	want, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join("again", "model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, want, got, "to the last bit")

	status, _, errs = vktrain(small("--seed", "2", "--preset", "nano")...)
	require.Zero(t, status, errs)
	require.NotEqual(t, lines, readLines(t, filepath.Join("runs", "nano-stories-2")), "and another folder")

	generate := []string{"generate", dir, "--device", "cpu", "--prompt", "Once upon", "--tokens", "20", "--past-end"}
	status, text, errs := vktrain(generate...)
	require.Zero(t, status, errs)
	require.True(t, strings.HasPrefix(text, "Once upon"))
	require.Greater(t, len(text), len("Once upon")+10)
	_, same, _ := vktrain(generate...)
	require.Equal(t, text, same)
	_, other, _ := vktrain(append(generate, "--seed", "9")...)
	require.NotEqual(t, text, other)
	_, greedy, _ := vktrain(append(generate, "--temperature", "0", "--seed", "1")...)
	_, greedy2, _ := vktrain(append(generate, "--top-k", "1", "--seed", "2")...)
	require.Equal(t, greedy, greedy2, "the likeliest token needs no draw")
}

func TestTrainOnText(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("book.txt", []byte(strings.Repeat("What is written without effort is read without pleasure.\n", 300)), 0o666))
	status, out, errs := vktrain(small("--data", "book.txt", "--out", "run")...)
	require.Zero(t, status, errs)
	require.Contains(t, out, "unigrams")
	require.Contains(t, out, "first text \"")
	require.NotContains(t, out, "floor")
	lines := readLines(t, "run")
	require.Less(t, lines[4].Loss, lines[0].Loss)
}

func TestFilesAndFlagsAndSet(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("c.yaml", []byte("steps: 9\nlr: 0.5\nseed: 5\n"), 0o666))
	status, _, errs := vktrain(append(append([]string{"train", "c.yaml"}, small("--seed", "6", "--set", "seed=7", "--out", "run")[1:]...), "--set", "steps=1")...)
	require.Zero(t, status, errs)
	all, err := train.ReadConfig(filepath.Join("run", "config.yaml"))
	require.NoError(t, err)
	cfg, err := train.Load(all)
	require.NoError(t, err)
	require.Equal(t, 0.5, cfg.LR, "the file over the preset")
	require.Equal(t, uint64(7), cfg.Seed, "--set over the flag over the file")
	require.Equal(t, 1, cfg.Steps)
	require.Len(t, readLines(t, "run"), 1)
}

func TestAWarmUpLongerThanTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, errs := vktrain(small("--set", "warmup=1e9")...)
	require.Zero(t, status, errs)
	require.Contains(t, out, "warning    the warm-up of 1000000000 steps is longer than the run: the learning rate gets to 3.5e-11, not to 0.007")
	_, out, _ = vktrain(small("--set", "warmup=5")...)
	require.NotContains(t, out, "warning")
	require.NotContains(t, errs, " 0 tok/s")
}

func TestOverwrite(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, errs := vktrain(small("--out", "run")...)
	require.Zero(t, status, errs)
	status, _, errs = vktrain(small("--out", "run")...)
	require.Equal(t, statusFailure, status)
	require.Contains(t, errs, "give another --out, or --overwrite to replace it")
	status, _, errs = vktrain(small("--out", "run", "--overwrite", "--set", "steps=2")...)
	require.Zero(t, status, errs)
	require.Len(t, readLines(t, "run"), 2)
}

func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	out, errs := new(bytes.Buffer), &trigger{word: "step 2/", do: cancel}
	status := run(ctx, small("--set", "steps=2000", "--set", "eval_every=1", "--set", "eval_batches=1", "--set", "sample_every=0"), out, errs)
	require.Equal(t, statusInterrupted, status)
	require.Contains(t, out.String(), "interrupted")
	dir := filepath.Join("runs", "nano-stories-1")
	require.Contains(t, out.String(), "vktrain generate "+dir)
	status, _, e := vktrain("generate", dir, "--device", "cpu", "--tokens", "3")
	require.Zero(t, status, e)
	require.FileExists(t, filepath.Join(dir, "loss.png"))
}

// trigger is a writer that calls a function when a word has been written.
type trigger struct {
	bytes.Buffer
	word string
	do   func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.word) {
		w.do()
	}
	return w.Buffer.Write(p)
}

func TestInterruptedBeforeTheFirstStep(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{small("--out", "run"), {"plan", "--device", "cpu"}, {"conformance", "--device", "cpu"}, {"bench", "peak"},
		{"bench", "step", "--preset", "bench-a", "--device", "cpu"}} {
		var out, errs bytes.Buffer
		require.Equal(t, statusInterrupted, run(ctx, args, &out, &errs), "%v: %s", args, errs.String())
	}
	require.NoDirExists(t, "run")
}

func TestDivergence(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, errs := vktrain(small("--set", "lr=1e30", "--set", "min_lr=1e30", "--set", "warmup=0", "--set", "weight_decay=0", "--out", "run")...)
	require.Equal(t, statusFailure, status)
	require.Contains(t, errs, "vktrain: training diverged at step ")
	require.Contains(t, errs, "lower lr (1e+30)")
	require.FileExists(t, filepath.Join("run", "config.yaml"))
	require.FileExists(t, filepath.Join("run", "metrics.jsonl"))
	require.NoFileExists(t, filepath.Join("run", "model.safetensors"))
	last := strings.TrimSpace(errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:])
	require.True(t, strings.HasPrefix(last, "vktrain: "), "one line: %s", last)
}

func TestStepsThatOverflowAreTold(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, errs := vktrain(small("--precision", "f16", "--set", "loss_scale=16777216", "--steps", "3", "--out", "run")...)
	require.Zero(t, status, errs)
	require.Regexp(t, `left out +[1-3] of these steps: .* overflowed in f16; the loss scale was [0-9.e+]+ in the last step`, out)
	require.Regexp(t, `step 3/3 .*  [1-3] overflowed\n`, errs)
	status, out, errs = vktrain(small("--precision", "f16", "--no-coopmat", "--steps", "1", "--out", "whole")...)
	require.Zero(t, status, errs)
	require.NotRegexp(t, "left out|overflowed", out+errs)
}

func TestALossThatCannotBeDrawn(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, errs := vktrain(small("--set", "z_loss=1e28", "--steps", "2", "--out", "run")...)
	require.Equal(t, statusFailure, status)
	require.Contains(t, errs, "vktrain: training diverged at step 1: ")
	require.NotContains(t, errs, "internal error")
	require.FileExists(t, filepath.Join("run", "loss.png"))
	require.NoError(t, os.RemoveAll("run"))

	// What stands in the plot's way takes nothing from the run.
	out, errOut := new(bytes.Buffer), &trigger{word: "step 1/", do: func() { _ = os.MkdirAll(filepath.Join("run", "loss.png", "x"), 0o777) }}
	status = run(context.Background(), small("--out", "run"), out, errOut)
	require.Zero(t, status, errOut.String())
	require.Contains(t, errOut.String(), "loss.png")
	require.FileExists(t, filepath.Join("run", "model.safetensors"))
}

func TestErrorsAreOneLineAndSayWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o666)) }
	write("empty.txt", "")
	write("short.txt", "too short")
	write("bad.yaml", "model:\n  d_modle: 64\n")
	write("two.yaml", "---\nsteps: 5\n---\nseed: 3\n")
	write("large.yaml", "")
	require.NoError(t, os.Truncate("large.yaml", 1<<40))
	write("broken.yaml", "a: [1\n")
	write("sizes.yaml", "model:\n  preset: nano\n  d_model: 64\n")
	require.NoError(t, os.Mkdir("emptyfolder", 0o777))
	require.NoError(t, os.Mkdir("goldenless", 0o777))
	write(filepath.Join("goldenless", "index.json"), "[]")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"tarin"}, 2, `unknown command "tarin": did you mean train?`},
		{[]string{"frobnicate"}, 2, `unknown command "frobnicate": there are bench, compare, conformance, devices, `},
		{[]string{"train", "--stpes", "5"}, 2, `unknown flag --stpes: did you mean --steps?`},
		{[]string{"train", "--frobnicate"}, 2, `unknown flag --frobnicate: see vktrain train --help`},
		{[]string{"train", "-x"}, 2, `unknown flag -x: see vktrain train --help`},
		{[]string{"train", "--steps"}, 2, `--steps needs a value`},
		{[]string{"train", "--steps", "few"}, 2, `steps: "few" is no whole number`},
		{[]string{"train", "--steps", "0"}, 2, `steps: 0 is too small: use at least 1`},
		{[]string{"train", "--seed", "-1"}, 2, `seed: "-1" is no whole number`},
		{[]string{"train", "--preset", "huge"}, 2, `"huge" is unknown: use nano, tiny, small, gpt2, peri-400m, peri-1.5b, peri-3.2b, bench-a, bench-b, bench-c or bench-g`},
		{[]string{"train", "--set", "lr"}, 2, `--set: "lr" is no assignment: use key=value`},
		{[]string{"train", "--set", "laerning=1"}, 2, `unknown key "laerning"`},
		{[]string{"train", "--set", "stpes=1"}, 2, `unknown key "stpes": did you mean steps?`},
		{[]string{"train", "--set", "model.n_heads=7", "--set", "model.head_dim=0"}, 2, `model.n_heads: 7 does not divide`},
		{[]string{"train", "--set", "model.n_layers=16777216"}, 2, `model.n_layers: 16777216 is too large: use at most 1024`},
		{[]string{"train", "--device", "cpu", "--set", "batch=100000"}, 2, `too many elements for one tensor: use a smaller batch and accumulate`},
		{[]string{"plan", "--set", "model.n_layers=2500"}, 2, `model.n_layers: 2500 is too large: use at most 1024`},
		{[]string{"train", "--set", "model.n_layers=0"}, 2, `model.n_layers: 0 is too small: use at least 1`},
		{[]string{"train", "--set", "model.vocab_size=5"}, 2, `model.vocab_size: 5 is under the tokenizer's`},
		{[]string{"train", "--device", "tpu"}, 2, `device: "tpu" is unknown: use auto, cpu, vulkan, or vulkan:N`},
		{[]string{"train", "a.yaml", "b.yaml"}, 2, `"b.yaml" is one argument too many`},
		{[]string{"train", "bad.yaml"}, 2, `bad.yaml:2: unknown key "model.d_modle": did you mean model.d_model?`},
		{[]string{"train", "broken.yaml"}, 2, `broken.yaml: not YAML: `},
		{[]string{"train", "sizes.yaml", "--preset", "tiny"}, 2, `--preset tiny would be overridden by sizes.yaml, which sets model.d_model`},
		{[]string{"train", "emptyfolder"}, 2, `emptyfolder is a folder: give a file, such as ` + filepath.Join("emptyfolder", "config.yaml")},
		{[]string{"train", "absent.yaml"}, 1, `the config can't be read`},
		{[]string{"train", "--device", "cpu", "--data", "absent.txt"}, 1, `absent.txt does not exist: check the path`},
		{[]string{"train", "--device", "cpu", "--data", "empty.txt"}, 1, `empty.txt is empty: give a file with text in it`},
		{[]string{"train", "--device", "cpu", "--data", "emptyfolder"}, 1, `emptyfolder has no text in it`},
		{[]string{"train", "--device", "cpu", "--data", "short.txt"}, 1, `give more text or a smaller seq_len`},
		{[]string{"train", "--device", "vulkan:99"}, 1, `vulkan`},
		{[]string{"generate"}, 2, `vktrain generate needs the folder of a run`},
		{[]string{"generate", "absent", "--device", "cpu"}, 1, `absent does not exist: give the folder of a run`},
		{[]string{"generate", "empty.txt", "--device", "cpu"}, 1, `empty.txt is a file: give the folder of a run`},
		{[]string{"generate", "emptyfolder", "--device", "cpu"}, 1, `emptyfolder is not a checkpoint folder: it has no config.json`},
		{[]string{"train", "--data", "absent.txt", "--out", "empty.txt"}, 1, `the run's folder empty.txt can't be made: empty.txt is a file: give another folder`},
		{[]string{"train", "--data", "absent.txt", "--out", "empty.txt/a/b"}, 1, `empty.txt is a file: give another folder`},
		{[]string{"train", "--set", "model.vocab_size=-1"}, 2, `model.vocab_size: -1 is too small: use 0 for the tokenizer's size, or at least 2`},
		{[]string{"train", "--set", "model.head_dim=9223372036854775807"}, 2, `times n_heads 6 is too large`},
		{[]string{"train", "--set", "model.norm_eps=0"}, 2, `model.norm_eps: 0 is not possible: use a positive number`},
		{[]string{"train", "--set", "model.rope_theta=0"}, 2, `model.rope_theta: 0 is not possible`},
		{[]string{"train", "two.yaml"}, 2, `two.yaml:4: a second document: leave one, without --- between`},
		{[]string{"train", "--data", ""}, 2, `--data is empty: give it a value, or leave it out`},
		{[]string{"train", "--data", " "}, 2, `--data is empty`},
		{[]string{"train", "--out="}, 2, `--out is empty`},
		{[]string{"train", "--steps="}, 2, `--steps is empty`},
		{[]string{"train", "--set", "data.path="}, 2, `--set: data.path is empty`},
		{[]string{"train", "--set", ""}, 2, `--set is empty`},
		{[]string{"train", ""}, 2, `an argument is empty`},
		{[]string{"generate", ""}, 2, `an argument is empty: give it a value, or leave it out`},
		{[]string{"plan", "--device", ""}, 2, `--device is empty`},
		{[]string{"plan", "--recompute", ""}, 2, `--recompute is empty`},
		{[]string{"bench", "ops", "--op", ""}, 2, `--op is empty`},
		{[]string{"bench", "step", "--placement", ""}, 2, `--placement is empty`},
		{[]string{"conformance", "--golden", ""}, 2, `--golden is empty`},
		{[]string{"conformance", "--json", ""}, 2, `--json is empty`},
		{[]string{"conformance", "--only", ""}, 2, `--only is empty`},
		{[]string{"generate", "absent", "--device", "tpu"}, 2, `device: "tpu" is unknown`},
		{[]string{"generate", "x", "--tokens", "0"}, 2, `--tokens: 0 is too small: use at least 1`},
		{[]string{"generate", "x", "--tokens", "many"}, 2, `--tokens: "many" is no whole number`},
		{[]string{"generate", "x", "--temperature", "-1"}, 2, `--temperature: -1 is not possible`},
		{[]string{"generate", "x", "--temperature", "hot"}, 2, `--temperature: "hot" is no number`},
		{[]string{"generate", "x", "--top-p", "2"}, 2, `--top-p: 2 is not possible`},
		{[]string{"generate", "x", "--top-k", "-3"}, 2, `--top-k: -3 is not possible`},
		{[]string{"train", "--device", "cpu", "--threads", "-1"}, 2, `--threads: -1 is not possible: use 1 to 1024, or 0 for one a core`},
		{[]string{"generate", "x", "--device", "cpu", "--threads", "5000"}, 2, `--threads: 5000 is not possible`},
		{[]string{"train", "--device", "cpu", "--max-submit-ms", "-1"}, 2, `--max-submit-ms: -1 is not possible: use 1 to 60000, or 0 for 50`},
		{[]string{"bench", "step", "--max-submit-ms", "70000"}, 2, `--max-submit-ms: 70000 is not possible`},
		{[]string{"devices", "--threads", "-1"}, 2, `--threads: -1 is not possible`},
		{[]string{"conformance", "--threads", "two"}, 2, `--threads: "two" is no whole number`},
		{[]string{"bench", "stpe"}, 2, `unknown command "stpe": did you mean step?`},
		{[]string{"bench", "step", "now"}, 2, `"now" is one argument too many`},
		{[]string{"bench", "step", "--preset", "huge"}, 2, `--preset: "huge" is unknown: use nano, `},
		{[]string{"bench", "step", "--masters", "f16"}, 2, `masters: "f16" is unknown: use f32 or bf16`},
		{[]string{"bench", "ops", "--precision", "f8"}, 2, `precision: "f8" is unknown: use auto, f32, bf16 or f16`},
		{[]string{"plan", "--max-submit-ms", "-1"}, 2, `--max-submit-ms: -1 is not possible`},
		{[]string{"bench", "step", "--steps", "0"}, 2, `--steps: 0 is too small`},
		{[]string{"bench", "step", "--batch", "-1"}, 2, `batch: -1 is too small: use at least 1`},
		{[]string{"bench", "step", "--seq", "-1"}, 2, `seq_len: -1 is too small: use at least 1`},
		{[]string{"bench", "step", "--placement", "pre,middle"}, 2, `placement: "middle" is unknown`},
		{[]string{"bench", "step", "--qk-norm", "l3"}, 2, `qk_norm: "l3" is unknown`},
		{[]string{"bench", "step", "--device", "tpu"}, 2, `device: "tpu" is unknown`},
		{[]string{"bench", "step", "--threads", "-2"}, 2, `--threads: -2 is not possible`},
		{[]string{"bench", "ops", "--repeats", "0"}, 2, `--repeats: 0 is too small`},
		{[]string{"bench", "ops", "--repeats", "1000000000"}, 2, `--repeats: 1000000000 is too large: use at most 10000`},
		{[]string{"train", "large.yaml"}, 2, `large.yaml has over 1048576 bytes: it is no config`},
		{[]string{"bench", "ops", "--op", "matmull"}, 2, `--op: "matmull" is unknown: did you mean matmul?`},
		{[]string{"bench", "ops", "--op", "conv"}, 2, `--op: "conv" is unknown: vktrain bench ops without it lists those of the step`},
		{[]string{"bench", "ops", "--preset", "huge"}, 2, `--preset: "huge" is unknown`},
		{[]string{"bench", "peak", "--threads", "-1"}, 2, `--threads: -1 is not possible`},
		{[]string{"bench", "step", "--recompute", "half"}, 2, `recompute: "half" is unknown: use none, attention or block`},
		{[]string{"plan", "a.yaml", "b.yaml"}, 2, `"b.yaml" is one argument too many`},
		{[]string{"plan", "absent.yaml"}, 1, `the config can't be read`},
		{[]string{"plan", "bad.yaml"}, 2, `bad.yaml:2: unknown key "model.d_modle": did you mean model.d_model?`},
		{[]string{"plan", "--preset", "huge"}, 2, `"huge" is unknown: use nano, `},
		{[]string{"plan", "--batch", "0"}, 2, `batch: 0 is too small: use at least 1`},
		{[]string{"plan", "--seq", "long"}, 2, `seq_len: "long" is no whole number`},
		{[]string{"plan", "--device", "tpu"}, 2, `device: "tpu" is unknown`},
		{[]string{"plan", "--recompute", "half"}, 2, `--recompute: "half" is unknown: use none, attention or block`},
		{[]string{"plan", "--recompute", "none,none"}, 2, `--recompute: none is there twice`},
		{[]string{"plan", "--steps", "0"}, 2, `--steps: 0 is too small`},
		{[]string{"devices", "--preset", "nano"}, 2, `--preset says which kernels --pipelines is to show: give that too`},
		{[]string{"devices", "--pipelines", "--preset", "huge"}, 2, `--preset: "huge" is unknown`},
		{[]string{"devices", "now"}, 2, `"now" is one argument too many`},
		{[]string{"conformance", "--device", "tpu"}, 2, `device: "tpu" is unknown`},
		{[]string{"conformance", "--device", "cpu", "--golden", "absent"}, 1, `golden models in absent: index.json can't be read (no such file or directory)`},
		{[]string{"conformance", "--device", "cpu", "--json", filepath.Join("absent", "r.json")}, 1, `can't be written: no such file or directory`},
		{[]string{"conformance", "--device", "cpu", "--json", "emptyfolder"}, 1, `emptyfolder can't be written: it is a folder: give a file`},
		{[]string{"conformance", "--device", "cpu", "--json", "empty.txt/x"}, 1, `can't be written: not a directory`},
		{[]string{"conformance", "--device", "cpu", "--golden", "goldenless"}, 1, `golden models in goldenless: index.json is no list of names`},
		{[]string{"conformance", "--device", "cpu", "--golden", "empty.txt"}, 1, `golden models in empty.txt: index.json can't be read`},
		{[]string{"conformance", "--device", "cpu", "--only", "nothing"}, 2, `nothing`},
	} {
		status, out, errs := vktrain(c.args...)
		require.Equal(t, c.status, status, "%v: %s", c.args, errs)
		require.True(t, strings.HasPrefix(errs, "vktrain: "), "%v: %s", c.args, errs)
		require.Contains(t, errs, c.want, "%v", c.args)
		require.Equal(t, 1, strings.Count(errs, "\n"), "%v: %s", c.args, errs)
		require.Empty(t, out, "%v", c.args)
		require.NotContains(t, errs, "goroutine")
	}
	require.NoDirExists(t, "runs", "what fails at once leaves nothing behind")
}

// explosive panics over several lines when it is written to.
type explosive struct{}

func (explosive) Write([]byte) (int, error) { panic("boom\ngoroutine 1") }

func TestAPanicIsOneLine(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, statusFailure, run(context.Background(), []string{"devices"}, explosive{}, &errs))
	require.Equal(t, "vktrain: internal error: boom; goroutine 1: please report it with the command line\n", errs.String())
}

func TestDevices(t *testing.T) {
	status, out, errs := vktrain("devices")
	require.Zero(t, status, errs)
	require.Contains(t, out, "cpu ")
	require.Contains(t, out, "auto takes ")
	status, out, errs = vktrain("devices", "--json")
	require.Zero(t, status, errs)
	var list devicesJSON
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.NotEmpty(t, list.Auto.Device)
	require.NotEmpty(t, list.Auto.Why)
	require.Equal(t, "cpu", list.CPU.Kind)

	if len(list.Vulkan) > 0 && list.Vulkan[0].Unusable == "" {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		_, out, _ = vktrain("devices", "--no-coopmat")
		require.Contains(t, out, "self-test  not run yet")
		status, out, errs = vktrain("devices", "--test")
		require.Zero(t, status, errs)
		require.Contains(t, out, "self-test  passed")
		_, out, _ = vktrain("devices")
		require.Contains(t, out, "self-test  passed", "what was found is kept")
	}
}

func TestHelp(t *testing.T) {
	status, out, errs := vktrain()
	require.Zero(t, status, errs)
	for _, name := range []string{"train", "generate", "eval", "devices", "conformance", "bench", "plan"} {
		require.Contains(t, out, name)
		status, help, errs := vktrain(name, "--help")
		require.Zero(t, status, errs)
		require.Contains(t, help, "vktrain "+name)
	}
}

func TestConformanceCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, errs := vktrain("conformance", "--device", "cpu", "--only", "add", "--json", "report.json", "--seed", "1")
	require.Zero(t, status, errs+out)
	require.Contains(t, out, "add")
	raw, err := os.ReadFile("report.json")
	require.NoError(t, err)
	require.True(t, json.Valid(raw))
}

func TestSmallWords(t *testing.T) {
	require.Equal(t, "1,234,567", grouped(1234567))
	require.Equal(t, "999", grouped(999))
	require.Equal(t, "-1,000", grouped(-1000))
	require.Equal(t, "1.5 KiB", size(1536))
	require.Equal(t, "128 MiB", size(128<<20))
	require.Equal(t, "7.5 GiB", size(15<<29))
	require.Equal(t, "12 B", size(12))
	require.Equal(t, "a; b", oneLine("a\n\n\tb\n"))
	require.Equal(t, "ab...", shorten("abcdefgh", 5))
	require.Equal(t, "plain/path", quoteIfNeeded("plain/path"))
	require.Equal(t, `'it'\''s here'`, quoteIfNeeded("it's here"))
}
