package conformance

import (
	"math/rand/v2"

	"github.com/vktrain/vktrain/graph"
)

// filler draws a tensor's elements.
type filler func(r *rand.Rand, x []float64)

// normal draws from N(mean, std²).
func normal(mean, std float64) filler {
	return func(r *rand.Rand, x []float64) {
		for i := range x {
			x[i] = mean + std*r.NormFloat64()
		}
	}
}

// uniform draws from [lo, hi).
func uniform(lo, hi float64) filler {
	return func(r *rand.Rand, x []float64) {
		for i := range x {
			x[i] = lo + (hi-lo)*r.Float64()
		}
	}
}

// index draws integers from lo to hi-1.
func index(lo, hi int) filler {
	return func(r *rand.Rand, x []float64) {
		for i := range x {
			x[i] = float64(lo + r.IntN(hi-lo))
		}
	}
}

// derived leaves a tensor to the case's derive.
func derived(*rand.Rand, []float64) {}

// f32 is a tensor of standard normal numbers.
func f32(shape ...int) tensor { return tensor{shape: shape, fill: normal(0, 1)} }

// gains is a tensor of numbers around 1.
func gains(shape ...int) tensor { return tensor{shape: shape, fill: normal(1, 0.3)} }

func (t tensor) with(f filler) tensor {
	t.fill = f
	return t
}

// i32 is a tensor of indices below n.
func i32(n int, shape ...int) tensor {
	return tensor{shape: shape, fill: index(0, n), dtype: graph.I32}
}

// scaleBy multiplies some inputs.
func scaleBy(by float64, operands ...int) func([][]float64, *rand.Rand) {
	return func(in [][]float64, _ *rand.Rand) {
		for _, i := range operands {
			for j := range in[i] {
				in[i][j] *= by
			}
		}
	}
}
