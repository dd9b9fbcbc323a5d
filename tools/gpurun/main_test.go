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
	r := &run{dir: dir, device: "cpu", vktrain: built, size: small}
	require.NoError(t, r.all(context.Background()))
	for _, name := range []string{
		"summary.txt", "devices.txt", "pipelines.txt", "conformance.txt", "peak.txt", "ops-bench-a.txt", "step-bench-a.txt", "soak-device.txt",
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
	require.Zero(t, r.summary.Soak.Largest, "the CPU against itself")
	require.Positive(t, r.summary.Soak.Noise)
	require.ErrorContains(t, (&run{dir: dir}).prepare(context.Background()), "is not empty")
}

// A command that fails is noted, and the others are run.
func TestFailuresAreNoted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r := &run{dir: dir, device: "vulkan:99", vktrain: built, size: small}
	err := r.all(context.Background())
	require.ErrorContains(t, err, "failed: conformance.txt, peak.txt")
	require.ErrorContains(t, err, "soak-device.txt")
	data, readErr := os.ReadFile(filepath.Join(dir, "summary.txt"))
	require.NoError(t, readErr)
	require.Contains(t, string(data), "99")
	require.NotContains(t, string(data), "devices.txt failed")
}
