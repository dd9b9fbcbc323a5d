package bootstrap

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/rng"
)

func TestMedianAndQuartiles(t *testing.T) {
	x := []float64{3, 1, 2}
	require.Equal(t, 2.0, Median(x))
	require.Equal(t, []float64{3, 1, 2}, x, "it is left as it is")
	require.Equal(t, 2.5, Median([]float64{4, 3, 1, 2}))
	low, high := Quartiles([]float64{8, 4, 2, 6})
	require.Equal(t, []float64{2, 6}, []float64{low, high})
}

// The interval of the mean of n normal values is about 1.96 standard errors wide to each side, and that of their median 1.25 times as wide.
func TestIntervalsHaveTheWidthOfTheory(t *testing.T) {
	r := rng.New(1, "normal")
	x := make([]float64, 400)
	for i := range x {
		x[i] = 5 + r.NormFloat64()
	}
	low, high := Interval(x, Mean, "mean")
	require.InEpsilon(t, 2*1.96/20, high-low, 0.12) // a standard deviation of 400 values is within 3.5%, thrice
	require.Less(t, low, Mean(x))
	require.Greater(t, high, Mean(x))
	again, _ := Interval(x, Mean, "mean")
	require.Equal(t, low, again, "the draws are the names' own")
	low, high = Interval(x, Median, "median")
	require.InEpsilon(t, 2*1.96/20*math.Sqrt(math.Pi/2), high-low, 0.5) // the density at the median is known less well
	low, high = Interval([]float64{7, 7, 7}, Mean)
	require.Equal(t, []float64{7, 7}, []float64{low, high})
}
