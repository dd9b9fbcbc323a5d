package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/rng"
)

// Of many roundings of a number, the share that goes up is the number's distance from the lower neighbour: within five standard deviations, for fixed seeds. Numbers that
// have a place in bf16, infinities and NaNs stay as they are, for all random bits.
func TestStochasticRoundingIsUnbiased(t *testing.T) {
	const n = 1 << 20
	for seed, x := range []float32{1 + 0x1p-9, -3.14159, 1e-3, 1 + 0x1p-20, 0x1.fffffep5, 0x1p-130} {
		low := math.Float32frombits(math.Float32bits(x) &^ 0xffff)
		high := math.Float32frombits(math.Float32bits(low) + 1<<16)
		share := (float64(x) - float64(low)) / (float64(high) - float64(low))
		r, ups := rng.New(uint64(seed), "test"), 0
		for range n / 2 {
			for w, h := r.Uint32(), 0; h < 2; h++ {
				switch got := widen16(stochasticBF16(x, uint16(w>>(16*h)))); got {
				case high:
					ups++
				default:
					require.Equal(t, low, got)
				}
			}
		}
		require.InDelta(t, share, float64(ups)/n, 5*math.Sqrt(share*(1-share)/n), "%g", x)
	}
	for _, x := range []float32{0, 1, -1.5, float32(math.Inf(1)), float32(math.Inf(-1)), 0x1p-133} {
		for random := range 1 << 16 {
			require.Equal(t, x, widen16(stochasticBF16(x, uint16(random))))
		}
	}
	for _, bits := range []uint32{0x7fc00000, 0x7f800001, 0xffffffff} {
		require.True(t, math.IsNaN(float64(widen16(stochasticBF16(math.Float32frombits(bits), 0xffff)))))
	}
}

func widen16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
