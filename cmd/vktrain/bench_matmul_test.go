package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/bench"
)

func TestBenchMatMul(t *testing.T) {
	args := []string{"bench", "matmul", "--device", "cpu", "--threads", "1", "--size", "32,5x7x9", "--order", "NT,TN", "--precision", "f32,auto,f16", "--repeats", "1"}
	status, stdout, stderr := vktrain(args...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "5x7x9")
	status, stdout, stderr = vktrain(append(args, "--json")...)
	require.Zero(t, status, stderr)
	var r bench.MatMulReport
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Len(t, r.Products, 8, "auto is f32 on the CPU, and measured once")

	for flag, bad := range map[string]string{"--size": "4x4", "--order": "TT", "--precision": "f64", "--repeats": "0"} {
		status, _, stderr = vktrain("bench", "matmul", "--device", "cpu", flag, bad)
		require.Equal(t, 2, status)
		require.Contains(t, stderr, flag+": ")
	}
	for _, bad := range []string{"0", "-1", "x", "1x2x", "4000000000", "2000000000"} {
		status, _, stderr = vktrain("bench", "matmul", "--device", "cpu", "--size", bad)
		require.Equal(t, 2, status, bad)
		require.Contains(t, stderr, "--size: ")
	}
}
