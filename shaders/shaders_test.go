package shaders_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/shaders"
	"github.com/vktrain/vktrain/tools/spirv/build"
)

func TestBinariesAreFresh(t *testing.T) {
	stale, err := build.Stale(".")
	require.NoError(t, err)
	require.Empty(t, stale, "run `go generate ./shaders`")
}

// What every Vulkan 1.1 device has.
func TestKernelsStayOnTheFloor(t *testing.T) {
	beyond := map[string][]string{ // by the start of the name: for devices that are asked for it
		"matmul_subgroup_":         {"GroupNonUniform", "GroupNonUniformBallot"},
		"matmul_matrix_f16_":       {"CooperativeMatrixKHR", "Float16", "GroupNonUniform", "VulkanMemoryModel"},
		"matmul_matrix_bf16_":      {"BFloat16CooperativeMatrixKHR", "BFloat16TypeKHR", "CooperativeMatrixKHR", "GroupNonUniform", "VulkanMemoryModel"},
		"subgroup_test_vote":       {"GroupNonUniform", "GroupNonUniformVote"},
		"subgroup_test_arithmetic": {"GroupNonUniform", "GroupNonUniformArithmetic"},
		"subgroup_test_ballot":     {"GroupNonUniform", "GroupNonUniformBallot"},
		"subgroup_test_shuffle":    {"GroupNonUniform", "GroupNonUniformShuffle"},
		"subgroup_test_clustered":  {"GroupNonUniform", "GroupNonUniformClustered"},
	}
	require.NotEmpty(t, shaders.All())
	for _, k := range shaders.All() {
		want := []string{"Shader"}
		for name, more := range beyond {
			if strings.HasPrefix(k.Name, name) {
				want = append(want, more...)
			}
		}
		slices.Sort(want)
		require.Equal(t, want, k.Capabilities, "%s", k.Name)
		if !strings.HasPrefix(k.Name, "matmul_matrix_") {
			require.Empty(t, k.Extensions, "%s: SPIR-V extensions", k.Name)
		}
		require.Equal(t, "1.3", k.Version, "%s: SPIR-V of Vulkan 1.1", k.Name)
		require.False(t, k.FloatAtomics, "%s: Metal silently miscompiles atomics on floats, and they would make sums depend on chance", k.Name)
		require.LessOrEqual(t, k.LocalSize[0]*k.LocalSize[1]*k.LocalSize[2], uint32(256), "%s: threads", k.Name)
		require.LessOrEqual(t, k.SharedBytes, 32<<10, "%s: shared memory", k.Name)
		require.LessOrEqual(t, k.PushBytes, 128, "%s: push constants", k.Name)
		for _, f := range k.Push {
			require.Zero(t, f.Size%4, "%s: push constant %s", k.Name, f.Name)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, k := range shaders.All() {
		found, ok := shaders.Lookup(k.Name)
		require.True(t, ok)
		require.Equal(t, k, found)
		require.NotEmpty(t, found.SPIRV)
	}
	_, ok := shaders.Lookup("no such kernel")
	require.False(t, ok)
}

// Every source is compiled, and every included file is used by one.
func TestNothingIsForgotten(t *testing.T) {
	var used []string
	for _, k := range shaders.All() {
		used = append(used, k.Source)
	}
	sources, err := filepath.Glob("*.comp")
	require.NoError(t, err)
	slices.Sort(used)
	require.Equal(t, sources, slices.Compact(used))

	var text strings.Builder
	includes, err := filepath.Glob("*.glsl")
	require.NoError(t, err)
	for _, f := range append(sources, includes...) {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		text.Write(data)
	}
	for _, f := range includes {
		require.Contains(t, text.String(), `#include "`+f+`"`)
	}
}
