package reference

import (
	"math"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// moments gives the mean and the variance, by deviations from the mean.
func moments(x []float64) (mean, variance float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / n
	}
	return mean, variance
}

func rowMoments(n *graph.Node, in, out [][]float64) {
	d := n.In[0].Shape().Last()
	for r := range out[0] {
		out[0][r], out[1][r] = moments(in[0][r*d : (r+1)*d])
	}
}

func summary(n *graph.Node, in, out [][]float64) {
	threshold := float64(graph.AttrOf[graph.SummaryAttr](n).Threshold)
	y := out[0]
	clear(y)
	y[graph.SummaryMin], y[graph.SummaryMax] = math.Inf(1), math.Inf(-1)
	for _, v := range in[0] { // min and max of Go keep NaNs
		y[graph.SummarySum] += v
		y[graph.SummaryMin] = min(y[graph.SummaryMin], v)
		y[graph.SummaryMax] = max(y[graph.SummaryMax], v)
		y[graph.SummaryMagnitude] = max(y[graph.SummaryMagnitude], math.Abs(v))
		if math.Abs(v) > threshold {
			y[graph.SummaryOver]++
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			y[graph.SummaryNonFinite]++
		}
	}
}

func topMagnitudes(_ *graph.Node, in, out [][]float64) {
	all := make([]float64, len(in[0]), len(in[0])+len(out[0]))
	for i, v := range in[0] {
		all[i] = math.Abs(v)
	}
	slices.Sort(all) // NaNs come first
	nans := 0
	for nans < len(all) && math.IsNaN(all[nans]) {
		nans++
	}
	slices.Reverse(all[nans:])
	copy(out[0], append(all, make([]float64, len(out[0]))...))
}
