package model_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// initial gives every parameter's values by name.
func initial(c model.Config, seed uint64) map[string][]float32 {
	m := map[string][]float32{}
	for _, p := range c.Params() {
		m[p.Name] = c.InitParam(seed, p)
	}
	return m
}

func TestSharedParametersStartEqualInEveryPlacement(t *testing.T) {
	peri := small()
	want := initial(peri, 5)
	for _, placement := range []string{"post", "pre", "olmo2", "none", "A+B+C"} {
		c := small()
		c.Placement = placement
		shared := 0
		for name, x := range initial(c, 5) {
			if w, ok := want[name]; ok {
				require.Equal(t, w, x, "%s of %s", name, placement)
				shared++
			}
		}
		require.Greater(t, shared, 15, placement)
	}
	deeper := small()
	deeper.NLayers = 3
	got := initial(deeper, 5)
	for name, x := range want {
		require.Equal(t, x, got[name], name)
	}
}

func TestInitialValuesFollowTheirDistribution(t *testing.T) {
	c := small()
	c.VocabSize, c.DModel, c.HeadDim, c.NHeads, c.NKVHeads = 500, 100, 0, 10, 10
	params := map[string]model.Param{}
	for _, p := range c.Params() {
		params[p.Name] = p
	}
	p := params["model.embed_tokens.weight"]
	x := c.InitParam(1, p)
	require.Len(t, x, 50000)
	sum, squares, beyond := 0.0, 0.0, 0
	for _, v := range x {
		z := float64(v) / 0.1
		sum, squares = sum+z, squares+z*z
		if math.Abs(z) > 2 {
			beyond++
		}
	}
	// Five standard errors of each estimate from 50000 numbers; 4.55% of a normal distribution is beyond two deviations.
	require.InDelta(t, 0, sum/50000, 5/math.Sqrt(50000))
	require.InDelta(t, 1, squares/50000, 5*math.Sqrt(2./50000))
	require.InDelta(t, 0.0455, float64(beyond)/50000, 5*math.Sqrt(0.0455/50000))

	require.Equal(t, x, c.InitParam(1, p), "the same seed gives other values")
	require.NotEqual(t, x, c.InitParam(2, p))
	require.NotEqual(t, c.InitParam(1, params["model.layers.0.mlp.up_proj.weight"]), c.InitParam(1, params["model.layers.1.mlp.up_proj.weight"]))
	ones := c.InitParam(1, params["model.norm.weight"])
	for _, v := range ones {
		require.Equal(t, float32(1), v)
	}
}

func TestLargeParametersAreDrawnInParts(t *testing.T) {
	p := model.Param{Name: "w", Shape: graph.Shape{3<<16 + 5}, Std: 0.5, Mean: 1}
	whole := model.Config{}.InitParam(7, p)
	for from := 0; from < len(whole); from += 1 << 12 {
		x := make([]float32, min(1<<12, len(whole)-from))
		p.Init(7, from, x)
		require.Equal(t, x, whole[from:from+len(x)], "from element %d", from)
	}
}
