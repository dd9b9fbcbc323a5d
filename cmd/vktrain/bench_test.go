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

	"github.com/vktrain/vktrain/bench"
)

func TestBenchStep(t *testing.T) {
	args := []string{"bench", "step", "--preset", "bench-a", "--batch", "1", "--seq", "16", "--steps", "2", "--device", "cpu", "--threads", "2"}
	status, out, errs := vktrain(args...)
	require.Zero(t, status, errs)
	require.Regexp(t, `^measuring 2 steps of 1 choice on cpu: .*\n$`, errs, "one line where there is no terminal")
	for _, want := range []string{"device     cpu: ", "858,496 parameters, 1 sequences of 16 tokens", "tokens/s", "GFLOP/s", "at most"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "ratio")
	require.Regexp(t, `diagnosed  [0-9.]+ ms, [0-9.]+ of a plain step's time; one in 50 is -?[0-9.]+% of training; .*B more memory`, out)
	status, out, errs = vktrain(append(args, "--diagnostics-every", "0")...)
	require.Zero(t, status, errs)
	require.NotContains(t, out, "diagnosed")
	status, _, errs = vktrain(append(args, "--diagnostics-every", "-2")...)
	require.Equal(t, 2, status)
	require.Contains(t, errs, "--diagnostics-every: -2 is too small")

	status, out, errs = vktrain(append(args, "--json")...)
	require.Zero(t, status, errs)
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &object))
	for _, key := range []string{"tokens_per_s", "ms_per_step", "ms_min", "gflops", "peak_bytes", "device_bytes", "loss", "diagnosed_ms", "diagnosed_ratio", "diagnosed_bytes", "diagnostics_every"} {
		require.Greater(t, object[key], 0.0, key)
	}
	require.Equal(t, 2.0, object["threads"])
	require.Equal(t, "peri", object["placement"])

	file := filepath.Join(t.TempDir(), "trace.json")
	status, _, errs = vktrain(append(args, "--trace", file)...)
	require.Zero(t, status, errs)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var trace struct {
		TraceEvents []struct{ Name, Ph string }
	}
	require.NoError(t, json.Unmarshal(data, &trace))
	require.Greater(t, len(trace.TraceEvents), 100)
	status, _, errs = vktrain(append(args, "--trace", filepath.Join(file, "below"))...)
	require.NotZero(t, status)
	require.Contains(t, errs, "can't be written")

	status, out, errs = vktrain(append(args, "--placement", "pre,peri", "--qk-norm", "none", "--qk-norm", "l2")...)
	require.Zero(t, status, errs)
	require.Contains(t, out, "bench-a pre, qk_norm l2")
	require.Contains(t, out, "ratio      1.0000")

	var list []bench.Step
	status, out, errs = vktrain(append(args, "--precision", "bf16", "--masters", "f32,bf16", "--json")...)
	require.Zero(t, status, errs)
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Equal(t, []string{"f32", "bf16"}, []string{list[0].Masters, list[1].Masters})
	require.Equal(t, "bench-a peri, qk_norm rms, bf16, masters bf16", list[1].Name)
	require.Less(t, list[1].DeviceBytes, list[0].DeviceBytes)

	status, out, errs = vktrain(append(args, "--placement", "pre,peri", "--json")...)
	require.Zero(t, status, errs)
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list, 2)
	require.Equal(t, 1.0, list[0].Ratio)
	require.Equal(t, "pre", list[0].Placement)
	require.Equal(t, list[0].Params+2*4*128, list[1].Params)
}

func TestBenchOps(t *testing.T) {
	args := []string{"bench", "ops", "--preset", "bench-a", "--batch", "1", "--seq", "16", "--repeats", "1", "--device", "cpu", "--threads", "1", "--op", "matmul,adamw"}
	status, out, errs := vktrain(args...)
	require.Zero(t, status, errs)
	for _, want := range []string{"peak       ", "on 1 thread", "NT 16x344x128"} {
		require.Contains(t, out, want)
	}
	require.Regexp(t, `% (fma|memory)\n`, out) // which of the two bounds an operator depends on the machine
	require.NotContains(t, out, "attention")
	status, out, errs = vktrain(append(args, "--json")...)
	require.Zero(t, status, errs)
	var r bench.OpReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, "f32", r.Precision, "auto on the CPU")
	require.Positive(t, r.Peak.GFLOPs)
	require.Positive(t, r.StepMs)
	for _, op := range r.Ops {
		require.Contains(t, []string{"matmul", "adamw"}, op.Name)
		require.Positive(t, op.Ms)
	}
	for _, key := range []string{"op", "shapes", "count", "ms", "ms_each", "gflops", "gb_per_s", "of_peak", "bound", "share"} {
		require.Contains(t, out, `"`+key+`"`)
	}

	status, out, errs = vktrain(append(args, "--precision", "f16", "--masters", "bf16")...)
	require.Zero(t, status, errs)
	require.Contains(t, out, "bench-a in f16 with matrices in bf16, ")
}

func TestPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("c.yaml", []byte("model:\n  preset: tiny\naccumulation: 4\n"), 0o666))
	status, out, errs := vktrain("plan", "c.yaml", "--device", "cpu", "--batch", "2", "--set", "seq_len=32")
	require.Zero(t, status, errs)
	for _, want := range []string{"the most that the tokenizer may take", "256 tokens: 4 x 2 sequences of 32", "none ", "attention ", "block ", "yes"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "ratio")
	require.Regexp(t, `diagnosed  none, f32: one step in 50 has \d+ nodes and [0-9.]+ GFLOP, and takes .*B more memory\n`, out)
	status, out, errs = vktrain("plan", "c.yaml", "--device", "cpu", "--batch", "2", "--set", "seq_len=32", "--set", "diagnostics_every=0")
	require.Zero(t, status, errs)
	require.NotContains(t, out, "diagnosed")

	status, out, errs = vktrain("plan", "--preset", "bench-a", "--batch", "1", "--seq", "16", "--device", "cpu", "--measure", "--steps", "1", "--recompute", "none,block")
	require.Zero(t, status, errs)
	require.NotContains(t, out, "tokenizer")
	require.Contains(t, out, "ratio")
	require.Contains(t, errs, "measuring 1 step of 2 choices on cpu: ")
	require.Regexp(t, `diagnosed  block, f32: .* more memory; [0-9.]+ of a plain micro-batch's time, -?[0-9.]+% of training\n`, out)
	status, _, errs = vktrain("plan", "--preset", "bench-a", "--device", "cpu", "--nice", "--no-coopmat", "--max-submit-ms", "20", "--no-tune")
	require.Zero(t, status, errs)
	require.Empty(t, errs)
	status, out, errs = vktrain("plan", "--preset", "bench-a", "--device", "cpu", "--json")
	require.Zero(t, status, errs)
	var p planJSON
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	require.Len(t, p.Rows, 3)
	require.Equal(t, 858496, p.Params)
	require.Equal(t, int64(4*858496), p.Rows[0].Memory.Params)
	require.Greater(t, p.Rows[0].Memory.Arena, p.Rows[2].Memory.Arena)
	require.Less(t, p.Rows[0].FLOPs, p.Rows[2].FLOPs)
	require.InEpsilon(t, p.ModelFLOPs, p.Rows[0].FLOPs, 0.1, "norms and the like are little beside the products")
	require.Zero(t, p.Rows[0].MsPerStep)
}

func TestBenchPeak(t *testing.T) {
	status, out, errs := vktrain("bench", "peak", "--threads", "3", "--json")
	require.Zero(t, status, errs)
	var peaks []bench.Peak
	require.NoError(t, json.Unmarshal([]byte(out), &peaks))
	require.Len(t, peaks, 3)
	require.Equal(t, 3, peaks[2].Threads)
	require.Positive(t, peaks[2].GBs)
	status, out, errs = vktrain("bench", "peak", "--threads", "1")
	require.Zero(t, status, errs)
	require.Contains(t, out, "GB/s of a triad, on 1 thread")
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	x := table{left: 1, rows: [][]string{{"op", "ms"}}}
	x.add("a", "10.5")
	x.add("longer", "2")
	x.write(&b)
	require.Equal(t, "op        ms\na       10.5\nlonger     2\n", b.String())
}

func TestBenchEndsOnASignal(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, statusInterrupted, run(ctx, []string{"bench", "step", "--preset", "nano", "--device", "cpu"}, &out, &errs))
	require.Empty(t, out.String())
	require.Equal(t, 1, strings.Count(errs.String(), "\n"), "what it measures, and no error")
}
