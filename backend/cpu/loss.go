package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

func crossEntropy(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	targets := int32s(in[1])
	classes := n.In[0].Shape().Last()
	z := float64(graph.AttrOf[graph.CrossEntropyAttr](n).ZLoss)
	return c.overRows(len(targets), classes, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			x := in[0][r*classes : (r+1)*classes]
			lse := logSumExp(x)
			out[1][r] = float32(lse)
			loss := 0.0
			if t := int(targets[r]); t >= 0 && t < classes {
				loss = lse - float64(x[t]) + z*lse*lse
			}
			out[0][r] = float32(loss)
		}
	})
}

// logSumExp is log(sum(e^x)): sums of float32 over blocks, and of these in float64.
func logSumExp(x []float32) float64 {
	const block = 4096
	top, s := simd.Max(x), 0.0
	for i := 0; i < len(x); i += block {
		s += float64(simd.ExpSum(x[i:min(len(x), i+block)], top))
	}
	return float64(top) + math.Log(s)
}

func crossEntropyGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	targets, lse, dlosses := int32s(in[1]), in[2], in[3]
	classes := n.In[0].Shape().Last()
	z := graph.AttrOf[graph.CrossEntropyAttr](n).ZLoss
	return c.overRows(len(targets), classes, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			x, d := in[0][r*classes:(r+1)*classes], out[0][r*classes:(r+1)*classes]
			t := int(targets[r])
			if t < 0 || t >= classes {
				clear(d)
				continue
			}
			l, g := lse[r], dlosses[r]
			f := 1 + 2*z*l
			dt := g * (simd.Exp(x[t]-l)*f - 1) // before d takes x's place
			simd.ExpMul(d, x, l, g*f)
			d[t] = dt
		}
	})
}
