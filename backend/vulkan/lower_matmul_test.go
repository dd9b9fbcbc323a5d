package vulkan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/shaders"
)

func TestMatMulChoice(t *testing.T) {
	gpu := roomyCaps(backend.Discrete)
	tight := roomyCaps(backend.Discrete)
	tight.maxBindBytes = 1 << 20
	small := floorCaps(backend.Integrated)
	cpu := roomyCaps(backend.Software)
	subgroups := floorCaps(backend.Software)
	subgroups.subgroupBallot, subgroups.subgroupSize = true, 8
	wide := roomyCaps(backend.Software)
	wide.subgroupBallot, wide.subgroupSize = true, 16
	intel := roomyCaps(backend.Discrete)
	intel.vendor = vendorIntel
	for _, c := range []struct {
		device         *deviceCaps
		batch, m, n, k int
		want           string
	}{
		{gpu, 1, 1024, 1024, 1024, "matmul_tile_128 1"},
		{gpu, 1, 4096, 50257, 768, "matmul_tile_128 1"},
		{intel, 1, 4096, 50257, 768, "matmul_tile_64 1"},
		{gpu, 1, 768, 768, 8192, "matmul_tile_128 2"},  // the gradient of weights: few tiles, many tokens
		{gpu, 1, 256, 256, 4096, "matmul_tile_128 16"}, // as many parts as there may be
		{gpu, 1, 256, 256, 1000, "matmul_tile_32 1"},   // parts would be too short
		{gpu, 1, 128, 128, 1 << 20, "matmul_tile_64 16"},
		{tight, 1, 256, 256, 4096, "matmul_tile_64 4"}, // as many as the device binds
		{gpu, 1, 512, 512, 512, "matmul_tile_64 1"},
		{gpu, 1, 64, 64, 64, "matmul_tile_32 1"},
		{gpu, 1, 64, 64, 4096, "matmul_tile_32 16"},
		{gpu, 64, 100, 100, 64, "matmul_tile_128 1"}, // the batch counts
		{gpu, 64, 64, 100, 64, "matmul_tile_64 1"},   // half of a larger tile would lie outside
		{gpu, 1, 20, 1 << 16, 512, "matmul_tile_32 1"},
		{gpu, 1, 1, 4096, 512, "matmul_tile_8 1"}, // generation
		{gpu, 1, 8, 768, 3072, "matmul_tile_8 3"},
		{gpu, 1, 8, 8, 8, "matmul_tile_32 1"},
		{small, 1, 1024, 1024, 1024, "matmul_tile_64 1"},
		{small, 1, 64, 64, 4096, "matmul_tile_32 16"},
		{small, 1, 1, 4096, 512, "matmul_tile_8 1"},
		{cpu, 1, 1024, 1024, 1024, "matmul_tile_128 1"},
		{cpu, 1, 64, 64, 4096, "matmul_tile_32 1"}, // a CPU has no use for parts
		{subgroups, 1, 1024, 1024, 1024, "matmul_subgroup_8 1"},
		{subgroups, 1, 1, 4096, 512, "matmul_subgroup_8 1"},
		{wide, 1, 1024, 1024, 1024, "matmul_tile_128 1"}, // a subgroup of another size
	} {
		got := c.device.chooseMatMul(c.batch, c.m, c.n, c.k)
		require.Equal(t, c.want, fmt.Sprintf("%s %d", got.kernel.name, got.parts), "%v %d: %d x %d x %d", c.device.kind, c.batch, c.m, c.n, c.k)
	}
}

// What the Go side says of a tile is what the shader was compiled with, and all but the largest run on every Vulkan device there can be.
func TestMatMulTilesAreTheShaders(t *testing.T) {
	for i, k := range append(matMulTiles, matMulSkinny) {
		s, ok := shaders.Lookup(k.name)
		require.True(t, ok)
		require.Subset(t, s.Defines, []string{fmt.Sprintf("BM=%d", k.rows), fmt.Sprintf("BN=%d", k.cols), fmt.Sprintf("BK=%d", k.step)})
		var teams int
		_, err := fmt.Sscanf(s.Defines[len(s.Defines)-1], "KS=%d", &teams)
		require.NoError(t, err)
		require.Zero(t, k.step/teams%k.unroll, "%s: a team's steps are whole unrolled loops", k.name)
		if i >= 1 {
			require.LessOrEqual(t, s.SharedBytes, floorShared, k.name)
			require.LessOrEqual(t, s.LocalSize[0], uint32(floorInvocations), k.name)
		}
	}
}

// The parts cover the inner dimension, none is empty, and each begins at a whole step of the kernel.
func TestMatMulParts(t *testing.T) {
	d := floorCaps(backend.Discrete)
	for _, kernel := range append(matMulTiles, matMulSkinny) {
		for _, inner := range []int{1, 7, 255, 256, 1000, 4099} {
			for parts := 1; parts <= maxParts; parts++ {
				b := graph.NewBuilder()
				x, y := b.Input("x", graph.F32, inner, 6), b.Input("y", graph.F32, inner, 9)
				b.Output("z", b.MatMul(x, y, nil, nil, graph.MatMulAttr{TransA: true}))
				list := d.matMul(b.Build("p").Nodes()[0], matMulChoice{kernel, parts})
				push := list[0].push.(matMulTilePush)
				require.GreaterOrEqual(t, int(push.Part*push.Parts), inner)
				require.Less(t, int(push.Part*(push.Parts-1)), inner)
				require.LessOrEqual(t, int(push.Parts), parts)
				require.Zero(t, int(push.Part)%kernel.step)
				require.Len(t, list, min(int(push.Parts), 2))
				if len(list) > 1 {
					require.Equal(t, graph.Shape{int(push.Parts), 6 * 9}, list[1].bind[0].Shape())
				}
			}
		}
	}
}
