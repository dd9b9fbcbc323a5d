package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/vulkan"
)

func TestChoicesAreATable(t *testing.T) {
	var b bytes.Buffer
	writeChoices(&b, []vulkan.Choice{
		{Op: "matmul", Shape: "NT 1x2x3 f32", Kernel: "small", Rule: "large", Times: []vulkan.KernelTime{
			{Kernel: "wrong", Seconds: 1e-6, Refused: "matmul, NN 1x1x1: off"}, {Kernel: "small", Seconds: 1e-3}, {Kernel: "large", Seconds: 2e-3},
		}},
		{Op: "matmul", Shape: "TN 1x2x3 f32", Kernel: "large", Rule: "large", Why: "not measured"},
	})
	require.Equal(t, `op      shape         kernel      ms  rule's ms  ratio
matmul  NT 1x2x3 f32  small   1.0000     2.0000   2.00
matmul  TN 1x2x3 f32  large        -          -      -

matmul NT 1x2x3 f32: wrong is refused: matmul, NN 1x1x1: off
matmul TN 1x2x3 f32: not measured
`, b.String())
}

func TestTuneNeedsAGPU(t *testing.T) {
	status, _, errs := vktrain("tune", "--device", "cpu")
	require.Equal(t, statusUsage, status)
	require.Equal(t, "vktrain: --device: the CPU has no kernels to choose from: use vulkan or vulkan:N\n", errs)
	status, _, errs = vktrain("tune", "--precision", "f8", "--device", "vulkan")
	require.Equal(t, statusUsage, status)
	require.Contains(t, errs, "precision")
	status, _, errs = vktrain("tune", "--preset", "huge", "--device", "cpu")
	require.Equal(t, statusUsage, status)
	require.Contains(t, errs, "huge")
}

// Where there is a Vulkan device, tuning is shown again by --show, by devices and by no run with --no-tune.
func TestTune(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("HOME", home)
	t.Setenv("VKTRAIN_LIMITS", "invocations=128,subgroup=off") // fewer kernels: a driver on the CPU takes its time
	size := []string{"--preset", "nano", "--batch", "1", "--seq", "16", "--device", "vulkan", "--json"}
	status, out, errs := vktrain(append([]string{"tune", "--show"}, size...)...)
	if status != 0 {
		t.Skip("no Vulkan: ", errs)
	}
	var before, tuned, after tuningJSON
	require.NoError(t, json.Unmarshal([]byte(out), &before))
	for _, c := range before.Choices {
		require.Equal(t, "not measured", c.Why)
	}
	status, out, errs = vktrain(append([]string{"tune"}, size...)...)
	require.Zero(t, status, errs)
	require.Contains(t, errs, "once for this device and these shapes\n")
	require.NoError(t, json.Unmarshal([]byte(out), &tuned))
	require.Len(t, tuned.Choices, len(before.Choices))
	for _, c := range tuned.Choices {
		require.NotEmpty(t, c.Times)
	}
	status, out, errs = vktrain(append([]string{"tune", "--show"}, size...)...)
	require.Zero(t, status, errs)
	require.NoError(t, json.Unmarshal([]byte(out), &after))
	require.Equal(t, tuned, after)
	_, out, _ = vktrain("devices")
	require.Contains(t, out, "shapes: see vktrain tune")
}
