// Package bootstrap gives intervals of statistics by drawing samples again (Efron & Tibshirani 1993, chapter 13).
package bootstrap

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/vktrain/vktrain/rng"
)

const (
	// Resamples is how many samples an interval is of.
	Resamples = 10_000
	// Confidence is that of intervals.
	Confidence = 0.95
)

// Mean is the arithmetic mean.
func Mean(x []float64) float64 { return stat.Mean(x, nil) }

// Median is the middle of x, or the mean of the two in the middle. It leaves x as it is.
func Median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Quartiles are the values under which a quarter and three quarters of x lie, between two values linearly. x is sorted by it.
func Quartiles(x []float64) (low, high float64) {
	slices.Sort(x)
	return stat.Quantile(0.25, stat.LinInterp, x, nil), stat.Quantile(0.75, stat.LinInterp, x, nil)
}

// Interval is the percentile interval of a statistic of x, which must not be empty. The draws are those of a stream that names tell, so that they are the
// same whatever else is computed.
func Interval(x []float64, of func(sample []float64) float64, names ...string) (low, high float64) {
	r := rng.New(0, append([]string{"bootstrap"}, names...)...)
	values := make([]float64, Resamples)
	sample := make([]float64, len(x))
	for i := range values {
		for j := range sample {
			sample[j] = x[r.IntN(len(x))]
		}
		values[i] = of(sample)
	}
	slices.Sort(values)
	tail := (1 - Confidence) / 2
	return stat.Quantile(tail, stat.LinInterp, values, nil), stat.Quantile(1-tail, stat.LinInterp, values, nil)
}
