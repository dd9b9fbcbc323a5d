package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/vulkan"
)

// Each device that is usable has its kernels, or says why not.
func TestDevicesWithPipelines(t *testing.T) {
	status, out, errs := vktrain("devices", "--pipelines", "--preset", "nano", "--seq", "16", "--json")
	require.Zero(t, status, errs)
	var list devicesJSON
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	usable := 0
	for _, d := range list.Vulkan {
		if d.Unusable == "" {
			usable++
		}
	}
	require.Len(t, list.Pipelines, usable)
	for _, p := range list.Pipelines {
		require.Equal(t, 16, p.SeqLen)
		require.NotEqual(t, p.Error == "", len(p.Kernels) == 0, "%+v", p)
	}
	status, out, errs = vktrain("devices", "--pipelines", "--preset", "nano")
	require.Zero(t, status, errs)
	for _, p := range list.Pipelines {
		require.Contains(t, out, p.Device+"   "+p.Name+": the kernels of a training step of nano")
		require.Contains(t, out, p.Error)
	}
}

func TestPipelinesAreATable(t *testing.T) {
	amd := vulkan.KernelStats{Kernel: "add", Launches: 3, Subgroup: 64, Statistics: []vulkan.Statistic{
		{Name: "VGPRs", Value: 12}, {Name: "Spilled VGPRs", Value: 1}, {Name: "Spilled SGPRs", Value: 2}, {Name: "Subgroups per SIMD", Value: 16},
	}}
	bare := vulkan.KernelStats{Kernel: "norm", Constants: []uint32{32, 1}, Launches: 1, Subgroup: 32}
	var b bytes.Buffer
	writePipelines(&b, pipelinesJSON{Device: "vulkan:1", Name: "card", Preset: "nano", Batch: 8, SeqLen: 128, Kernels: []vulkan.KernelStats{amd, bare}})
	require.Equal(t, `vulkan:1   card: the kernels of a training step of nano, 8 sequences of 128 tokens
kernel     launches  subgroup  spills  registers  occupancy
add               3        64       3         12         16
norm 32 1         1        32       -          -          -

`, b.String())
	nvidia := vulkan.KernelStats{Kernel: "add", Launches: 1, Subgroup: 32, Statistics: []vulkan.Statistic{{Name: "Register Count", Value: 40}}}
	b.Reset()
	writePipelines(&b, pipelinesJSON{Kernels: []vulkan.KernelStats{nvidia}})
	require.Contains(t, b.String(), "registers\nadd            1        32       -         40\n")
}
