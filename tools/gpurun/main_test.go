package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

// built is vktrain, for all tests.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gpurun")
	if err == nil {
		err = os.Chdir("../..")
	}
	if err == nil {
		built, err = build(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

func TestCompare(t *testing.T) {
	cpu := []float64{7, 6, 5, 4}
	noisy := [][]float64{{7, 6.001, 5, 4}, {7, 6, 4.99, 4}}
	d, err := compare([]float64{7.00001, 6.002, 5.02, 3.98}, cpu, noisy)
	require.NoError(t, err)
	require.Zero(t, d.Beyond, "%s", d)
	require.InDelta(t, 0.02, d.Largest, 1e-9)
	require.InDelta(t, 0.01, d.Noise, 1e-9)
	require.Equal(t, 3.98, d.LastLoss)

	d, err = compare([]float64{7, 6.01, 5, 4.1}, cpu, noisy)
	require.NoError(t, err)
	require.Equal(t, 2, d.Beyond, "noise of a later step bounds no earlier one")
	require.Equal(t, 2, d.First)
	require.Equal(t, 4, d.AtStep)
	require.Contains(t, d.String(), "2 steps are beyond the bound")

	d, err = compare([]float64{7, math.NaN(), 5, 4}, cpu, noisy)
	require.NoError(t, err)
	require.Equal(t, 1, d.Beyond)
	_, err = compare(cpu[:3], cpu, noisy)
	require.ErrorContains(t, err, "a curve has 3 steps, the CPU's 4")
	_, err = compare(nil, nil, nil)
	require.Error(t, err)
}

// The quick form does everything, here on the CPU, and leaves nothing out of its folder.
func TestQuick(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := &run{dir: dir, device: "cpu", vktrain: built, size: small, python: filepath.Join(t.TempDir(), "nothing"), torch: "cpu"}
	r.size.minutes = 0.05
	require.NoError(t, r.all(context.Background()))
	for _, name := range []string{
		"summary.txt", "devices.txt", "pipelines.txt", "conformance.txt", "peak.txt", "ops-bench-a.txt", "step-bench-a.txt", "matmul.txt", "precisions-bench-a.txt", "soak-device.txt", "long.txt",
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Positive(t, info.Size(), name)
	}
	for _, name := range []string{
		"summary.json", "devices.json", "pipelines.json", "conformance.json", "peak.json", "ops-bench-a.json", "step-bench-a.json", "trace-bench-a.json",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, json.Valid(data), name)
	}
	require.Len(t, r.summary.Steps, 1)
	require.Positive(t, r.summary.Steps[0].TokensPerSec)
	require.Len(t, r.summary.Precisions, 3)
	require.Equal(t, "f16", r.summary.Precisions[2].Precision)
	require.Len(t, r.summary.MatMul.Products, 9)
	require.Contains(t, r.summary.NoPeer, "nothing", "there is no PyTorch, which is no failure")
	require.Contains(t, r.summary.text(), "PyTorch was not measured")
	require.Greater(t, r.summary.Long.Steps, 9)
	require.Len(t, r.summary.Long.Means, tenths)
	require.Zero(t, r.summary.Soak.Largest, "the CPU against itself")
	require.Positive(t, r.summary.Soak.Noise)
	require.ErrorContains(t, (&run{dir: dir}).prepare(context.Background()), "is not empty")
}

func TestJudge(t *testing.T) {
	var lines []train.Metrics
	for i := range 100 {
		lines = append(lines, train.Metrics{Step: i + 1, Loss: 5 - 0.01*float64(i), Elapsed: 60})
	}
	lines[3].Skipped = true
	l, err := judge(lines)
	require.NoError(t, err)
	require.Equal(t, []any{100, 1.0, 1}, []any{l.Steps, l.Minutes, l.Skipped})
	require.InDelta(t, 5-0.045, l.Means[0], 1e-9)
	for i := 80; i < 90; i++ {
		lines[i].Loss = 6
	}
	_, err = judge(lines)
	require.ErrorContains(t, err, "the loss went up")
	require.ErrorContains(t, err, "up to step 90")
	lines[50].Loss = math.NaN()
	_, err = judge(lines)
	require.ErrorContains(t, err, "step 51 is no number")
	_, err = judge(lines[:9])
	require.ErrorContains(t, err, "too few")
}

// What a PyTorch tells is set against what vktrain took.
func TestPeer(t *testing.T) {
	dir := t.TempDir()
	python := filepath.Join(dir, "python")
	require.NoError(t, os.WriteFile(python, []byte(`#!/bin/sh
[ -f "$1" ] && [ "$2 $3 $5" = "mps 96 f32,bf16,f16" ] || exit 3
echo '{"version":"2","device":"a GPU","matmul":{"f32":{"ms":1,"gflops":1e-3},"bf16":{"ms":1,"gflops":1e9}},"step":{"f32":{"ms":1e6,"peak_bytes":1},"bf16":{"error":"out of memory"}}}'
`), 0o777))
	r := &run{dir: filepath.Join(dir, "out"), device: "cpu", vktrain: built, size: small, python: python, torch: "mps"}
	require.NoError(t, r.prepare(context.Background()))
	require.NoError(t, r.peer(context.Background()))
	require.NoError(t, r.failed(context.Background()))
	require.Empty(t, r.summary.NoPeer)
	text := r.summary.text()
	require.Regexp(t, `NT 96x96x96 in f32: \d+ GFLOP/s, \d+\.\d\d of PyTorch's 0 `, text)
	require.Regexp(t, `in bf16: \d+ GFLOP/s, 0.00 of PyTorch's 1000000000 `, text)
	require.Regexp(t, `f32: [0-9.]+ ms, \d+\.\d\d times as fast as PyTorch's 1000000.0`, text)
	require.Contains(t, text, "PyTorch: out of memory")
}

// A command that fails is noted, and the others are run.
func TestFailuresAreNoted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	less := small
	less.presets = []preset{{"no-such", 1, 32}}
	r := &run{dir: dir, device: "cpu", vktrain: built, size: less}
	ctx := t.Context()
	require.NoError(t, r.prepare(ctx))
	r.measure(ctx)
	require.ErrorContains(t, r.failed(ctx), "failed: ops-no-such.txt, ops-no-such.json, step-no-such.txt, step-no-such.json; see ")
	require.NoError(t, r.write())
	data, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	require.NoError(t, err)
	require.Regexp(t, `ops-no-such.txt .*no-such`, string(data))
}

// Nothing else is run where there is no device: the CPU would train for half an hour to be compared with nothing.
func TestNoDeviceEndsAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := &run{dir: dir, device: "vulkan:99", vktrain: built, size: full(3000)}
	require.ErrorContains(t, r.all(context.Background()), "vulkan:99 cannot be used, so nothing is measured: `vktrain devices` says what there is")
	require.Len(t, r.summary.Commands, 3)
	require.Contains(t, r.summary.Commands[2].Error, "vulkan")
	require.FileExists(t, filepath.Join(dir, "devices.txt"))
	require.FileExists(t, filepath.Join(dir, "summary.txt"))
}

// Where no device is named, one that runs on the CPU is not taken, but for a small run.
func TestSoftwareDriversAreNotTaken(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "devices.json"), []byte(`{"auto":{"device":"cpu","why":"no GPU (only software drivers): vulkan:0 is x"}}`), 0o666))
	require.Equal(t, "no GPU (only software drivers): vulkan:0 is x", (&run{dir: dir, device: "vulkan", size: full(1)}).noGPU())
	for _, r := range []*run{{dir: dir, device: "vulkan", size: small}, {dir: dir, device: "vulkan:0", size: full(1)}, {dir: dir, device: "cpu", size: full(1)}} {
		require.Empty(t, r.noGPU())
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "devices.json"), []byte(`{"auto":{"device":"vulkan:0","why":"it is a GPU"}}`), 0o666))
	require.Empty(t, (&run{dir: dir, device: "vulkan", size: full(1)}).noGPU())
}
