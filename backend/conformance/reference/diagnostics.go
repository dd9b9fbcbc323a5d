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
	for i, v := range in[0] { // min and max of Go keep NaNs
		if in[1] != nil {
			v -= in[1][i]
		}
		y[graph.SummarySum] += v
		y[graph.SummaryMin] = min(y[graph.SummaryMin], v)
		y[graph.SummaryMax] = max(y[graph.SummaryMax], v)
		y[graph.SummaryMagnitude] = max(y[graph.SummaryMagnitude], math.Abs(v))
		if !(math.Abs(v) <= threshold) {
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

func dots(_ *graph.Node, in, out [][]float64) {
	u, v, y := in[0], in[1], out[0]
	y[graph.DotsProduct], y[graph.DotsU], y[graph.DotsV] = dot(u, v), dot(u, u), dot(v, v)
}

// update[i] = - lr (decay weight_decay p + (m' / bias1) / (sqrt(v' / bias2) + eps)).
func adamWStats(n *graph.Node, in, out [][]float64) {
	p, m, v, g, hyper, clip := in[0], in[1], in[2], in[3], in[4], in[5][0]
	beta1, beta2 := hyper[graph.HyperBeta1], hyper[graph.HyperBeta2]
	decay := float64(graph.AttrOf[graph.AdamWAttr](n).Decay) * hyper[graph.HyperWeightDecay]
	update := make([]float64, len(p))
	for i := range p {
		if clip == 0 {
			continue
		}
		g := g[i] * clip
		m, v := beta1*m[i]+(1-beta1)*g, beta2*v[i]+(1-beta2)*g*g
		step := (m / hyper[graph.HyperBias1]) / (math.Sqrt(v/hyper[graph.HyperBias2]) + hyper[graph.HyperEps])
		update[i] = -hyper[graph.HyperLR] * (decay*p[i] + step)
	}
	dots(n, [][]float64{update, p}, out)
}

// unitVector gives x/|x|, and zeros for zeros.
func unitVector(x []float64) []float64 {
	norm, y := math.Sqrt(dot(x, x)), make([]float64, len(x))
	for i, v := range x {
		if norm != 0 {
			y[i] = v / norm
		}
	}
	return y
}

// a = 2/pi atan2(|x̂ - ŷ|, |x̂ + ŷ|), 1/2 where both are zeros.
func rowAngle(n *graph.Node, in, out [][]float64) {
	d := n.In[0].Shape().Last()
	for r := range out[0] {
		x, y := unitVector(in[0][r*d:(r+1)*d]), unitVector(in[1][r*d:(r+1)*d])
		apart, along := 0.0, 0.0
		for i := range x {
			apart += (x[i] - y[i]) * (x[i] - y[i])
			along += (x[i] + y[i]) * (x[i] + y[i])
		}
		out[0][r] = 2 / math.Pi * math.Atan2(math.Sqrt(apart), math.Sqrt(along))
		if apart == 0 && along == 0 {
			out[0][r] = 0.5
		}
	}
}

// y = |x| |times| / |over|, centered |x - mean(x)| |times| / |over|.
func rowNorms(n *graph.Node, in, out [][]float64) {
	row := func(operand, r int) []float64 {
		d := n.In[operand].Shape().Last()
		return in[operand][r*d : (r+1)*d]
	}
	norm := func(operand, r int) float64 {
		x := row(operand, r)
		return math.Sqrt(dot(x, x))
	}
	centered := graph.AttrOf[graph.RowNormsAttr](n).Centered
	for r := range out[0] {
		if centered {
			_, variance := moments(row(0, r))
			out[0][r] = math.Sqrt(variance * float64(n.In[0].Shape().Last()))
		} else {
			out[0][r] = norm(0, r)
		}
		if in[1] != nil {
			out[0][r] *= norm(1, r)
		}
		if in[2] != nil {
			out[0][r] /= norm(2, r)
		}
	}
}
