package reference

import (
	"math"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/rng"
)

// partials[i] = the squares' sum of elements i*c .. min(n, (i+1)*c)-1, c = ceil(n/64).
func sumSquares(_ *graph.Node, in, out [][]float64) {
	x := in[0]
	c := (len(x) + graph.SumSquaresParts - 1) / graph.SumSquaresParts
	for i := range graph.SumSquaresParts {
		s := 0.0
		for j := i * c; j < min(len(x), (i+1)*c); j++ {
			s += x[j] * x[j]
		}
		out[0][i] = s
	}
}

// norm = sqrt(sum of partials) / scale; factor = 1, or max / (norm + 1e-6) where that norm is above max, or 0 where it is not finite; over scale.
func clipNorm(n *graph.Node, in, out [][]float64) {
	limit := float64(graph.AttrOf[graph.ClipNormAttr](n).MaxNorm)
	s := 0.0
	for _, v := range in[0] {
		s += v
	}
	scale := 1.0
	if in[1] != nil {
		scale = in[1][0]
	}
	norm := math.Sqrt(s) / scale
	out[0][0] = norm
	switch {
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		out[1][0] = 0
	case limit == 0 || norm+1e-6 <= limit:
		out[1][0] = 1 / scale
	default:
		out[1][0] = limit / (norm + 1e-6) / scale
	}
}

func adamW(n *graph.Node, in, out [][]float64) {
	hyper, clip := in[4], in[5][0]
	lr, beta1, beta2 := hyper[graph.HyperLR], hyper[graph.HyperBeta1], hyper[graph.HyperBeta2]
	decay := float64(graph.AttrOf[graph.AdamWAttr](n).Decay) * hyper[graph.HyperWeightDecay]
	for i := range in[0] {
		if clip == 0 {
			out[0][i], out[1][i], out[2][i] = in[0][i], in[1][i], in[2][i]
			continue
		}
		p, m, v, g := in[0][i], in[1][i], in[2][i], in[3][i]*clip
		p *= 1 - lr*decay
		m = beta1*m + (1-beta1)*g
		v = beta2*v + (1-beta2)*g*g
		p -= lr * (m / hyper[graph.HyperBias1]) / (math.Sqrt(v/hyper[graph.HyperBias2]) + hyper[graph.HyperEps])
		if in[6] != nil {
			p = Stochastic(p, Random(n, in[6], i))
		}
		out[0][i], out[1][i], out[2][i] = p, m, v
	}
}

// Random gives the 16 random bits for element i of adamw's parameter.
func Random(n *graph.Node, key []float64, i int) uint16 {
	var k [graph.KeyLen]uint32
	for j, x := range key {
		k[j] = uint32(int32(x))
	}
	at, s := graph.AttrOf[graph.AdamWAttr](n), rng.OfKey(k)
	i += at.First
	s.Word = uint64(at.Tensor)<<34 + uint64(i/2)
	return uint16(rng.Restore(s).Uint32() >> (16 * (i % 2)))
}

// Stochastic rounds to the bf16 number toward zero, or to the next one away from it where the distance from the first, in units of 2^-16 of that
// between them, and the random bits come to 2^16. For given bits this keeps order.
func Stochastic(x float64, random uint16) float64 {
	a := math.Abs(x)
	if a == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	apart := math.Ldexp(1, max(math.Ilogb(a), -126)-7)
	whole, part := math.Modf(a / apart)
	if part*(1<<16)+float64(random) >= 1<<16 {
		whole++
	}
	if a = whole * apart; a >= 0x1p128 {
		a = math.Inf(1)
	}
	return math.Copysign(a, x)
}
