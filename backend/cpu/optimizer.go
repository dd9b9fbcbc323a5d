package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

func sumSquares(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	x := in[0]
	chunk := (len(x) + graph.SumSquaresParts - 1) / graph.SumSquaresParts
	return c.overRows(graph.SumSquaresParts, chunk, func(_ *workerScratch, from, to int) {
		for i := from; i < to; i++ {
			part := x[min(len(x), i*chunk):min(len(x), (i+1)*chunk)]
			s := 0.0
			for len(part) > 0 { // sums of float32 over blocks, and of these in float64
				n := min(len(part), 4096)
				s += squares(part[:n], 0)
				part = part[n:]
			}
			out[0][i] = float32(s)
		}
	})
}

func clipNorm(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	limit := float64(graph.AttrOf[graph.ClipNormAttr](n).MaxNorm)
	return serial(func() {
		scale := 1.0
		if in[1] != nil {
			scale = float64(in[1][0])
		}
		norm := math.Sqrt(total(in[0])) / scale
		factor := 1 / scale
		switch {
		case math.IsNaN(norm) || norm > math.MaxFloat32:
			factor = 0
		case limit != 0 && norm+1e-6 > limit:
			factor = limit / (norm + 1e-6) / scale
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
		if clip[0] == 0 {
			return
		}
		simd.AdamW(in[0][from:to], in[1][from:to], in[2][from:to], in[3][from:to], simd.AdamWFactors{
			Clip: clip[0], LR: hyper[graph.HyperLR], Beta1: hyper[graph.HyperBeta1], Beta2: hyper[graph.HyperBeta2],
			Bias1: hyper[graph.HyperBias1], Bias2: hyper[graph.HyperBias2], Eps: hyper[graph.HyperEps],
			Decay: decay * hyper[graph.HyperWeightDecay],
		})
	})
}
