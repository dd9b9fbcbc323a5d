package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/bench"
)

func TestBenchStep(t *testing.T) {
	args := []string{"bench", "step", "--preset", "bench-a", "--batch", "1", "--seq", "16", "--steps", "2", "--device", "cpu", "--threads", "2"}
	status, out, errs := vktrain(args...)
	require.Zero(t, status, errs)
	require.Empty(t, errs, "no progress where there is no terminal")
	for _, want := range []string{"device     cpu: ", "858,496 parameters, 1 sequences of 16 tokens", "tokens/s", "GFLOP/s", "at most"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "ratio")

	status, out, errs = vktrain(append(args, "--json")...)
	require.Zero(t, status, errs)
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &object))
	for _, key := range []string{"tokens_per_s", "ms_per_step", "ms_min", "gflops", "peak_bytes", "device_bytes", "loss"} {
		require.Greater(t, object[key], 0.0, key)
	}
	require.Equal(t, 2.0, object["threads"])
	require.Equal(t, "peri", object["placement"])

	status, out, errs = vktrain(append(args, "--placement", "pre,peri", "--qk-norm", "none", "--qk-norm", "l2")...)
	require.Zero(t, status, errs)
	require.Contains(t, out, "bench-a pre, qk_norm l2")
	require.Contains(t, out, "ratio      1.0000")

	status, out, errs = vktrain(append(args, "--placement", "pre,peri", "--json")...)
	require.Zero(t, status, errs)
	var list []bench.Step
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list, 2)
	require.Equal(t, 1.0, list[0].Ratio)
	require.Equal(t, "pre", list[0].Placement)
	require.Equal(t, list[0].Params+2*4*128, list[1].Params)
}

func TestBenchEndsOnASignal(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, statusInterrupted, run(ctx, []string{"bench", "step", "--preset", "nano", "--device", "cpu"}, &out, &errs))
	require.Empty(t, out.String()+errs.String())
}
