package cpu

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

func sumSquares(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	x := in[0]
	chunk := (len(x) + graph.SumSquaresParts - 1) / graph.SumSquaresParts
	return c.overRows(graph.SumSquaresParts, chunk, func(_ *workerScratch, from, to int) {
		for i := from; i < to; i++ {
			part := x[min(len(x), i*chunk):min(len(x), (i+1)*chunk)]
			out[0][i] = float32(dot(part, part))
		}
	})
}

func clipNorm(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	limit := float64(graph.AttrOf[graph.ClipNormAttr](n).MaxNorm)
	return serial(func() {
		norm := math.Sqrt(total(in[0]))
		factor := 1.0
		if limit != 0 && !(norm+1e-6 <= limit) { // a NaN is no norm to keep
			factor = limit / (norm + 1e-6)
		}
		out[0][0], out[1][0] = float32(norm), float32(factor)
	})
}

// adamW is one pass over the parameter, its moments and its gradient.
func adamW(c *compiler, n *graph.Node) kernel {
	in, _ := c.operands(n)
	decay := graph.AttrOf[graph.AdamWAttr](n).Decay
	hyper, clip := in[4], in[5]
	return c.overElems(len(in[0]), func(from, to int) {
		p, m, v, g := in[0][from:to], in[1][from:to], in[2][from:to], in[3][from:to]
		m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
		lr, beta1, beta2, eps := hyper[graph.HyperLR], hyper[graph.HyperBeta1], hyper[graph.HyperBeta2], hyper[graph.HyperEps]
		keep := 1 - lr*decay*hyper[graph.HyperWeightDecay]
		r1, r2 := 1/hyper[graph.HyperBias1], 1/hyper[graph.HyperBias2]
		f := clip[0]
		for i := range p {
			d := f * g[i]
			mi := beta1*m[i] + (1-beta1)*d
			vi := beta2*v[i] + (1-beta2)*d*d
			m[i], v[i] = mi, vi
			p[i] = p[i]*keep - lr*(mi*r1)/(float32(math.Sqrt(float64(vi*r2)))+eps)
		}
	})
}
