package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

// standard gives the mean that is subtracted (0 unless centred) and the reciprocal root of a row.
func standard(x []float32, centred bool, eps float64) (mean, r float32) {
	n := float64(len(x))
	if centred {
		m := simd.Sum(x) / float32(len(x))
		return m, root(squares(x, m), n, eps)
	}
	return 0, root(squares(x, 0), n, eps)
}

func root(squares, n, eps float64) float32 { return float32(1 / math.Sqrt(squares/n+eps)) }

// squares is the sum of (x - mean)², again in float64 where float32 overflows or loses digits to its smallest numbers.
func squares(x []float32, mean float32) float64 {
	s := simd.CentredSquares(x, mean)
	if s > 1e-25 && s <= math.MaxFloat32 {
		return float64(s)
	}
	t := 0.0
	for _, v := range x {
		d := float64(v) - float64(mean)
		t += d * d
	}
	return t
}

// identities are what stands for a gain and an addend that are not there: ones, and the zeros that keep even the sign of what they are
// added to.
func identities(n int) (ones, zeros []float32) {
	ones, zeros = make([]float32, n), make([]float32, n)
	for i := range n {
		ones[i], zeros[i] = 1, float32(math.Copysign(0, -1))
	}
	return ones, zeros
}

func norm(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	centred := n.Op == graph.OpLayerNorm
	eps := float64(graph.AttrOf[graph.NormAttr](n).Eps)
	cols := n.In[0].Shape().Last()
	gain, zeros := identities(cols)
	if in[1] != nil {
		gain = in[1]
	}
	addend := in[2]
	return c.overRows(n.In[0].Shape().Rows(), cols, func(_ *workerScratch, from, to int) {
		for row := from; row < to; row++ {
			x, y, a := in[0][row*cols:(row+1)*cols], out[0][row*cols:(row+1)*cols], zeros
			if addend != nil {
				a = addend[row*cols : (row+1)*cols]
			}
			mean, r := standard(x, centred, eps)
			simd.Normalize(y, x, gain, a, mean, r)
		}
	})
}

func normGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	centred := n.Op == graph.OpLayerNormGrad
	eps := float64(graph.AttrOf[graph.NormAttr](n).Eps)
	rows, cols := n.In[1].Shape().Rows(), n.In[1].Shape().Last()
	gain, zeros := identities(cols)
	if in[2] != nil {
		gain = in[2]
	}
	addend, dgain := in[3], out[1]
	c.scratch.grow(cols)
	span := graph.RowsPerPart(rows)
	return parallel(graph.Parts(rows), func(worker, part int) {
		sums := c.scratch.workers[worker].f32[0][:cols]
		clear(sums)
		for row := part * span; row < min(rows, (part+1)*span); row++ {
			at := row * cols
			dy, x, a := in[0][at:at+cols], in[1][at:at+cols], zeros
			if addend != nil {
				a = addend[at : at+cols]
			}
			mean, r := standard(x, centred, eps)
			standardGrad(out[0][at:at+cols], dy, x, gain, a, sums, mean, r, 1/float32(cols), centred)
		}
		if dgain != nil {
			copy(dgain[part*cols:], sums)
		}
	})
}

// standardGrad is the gradient of one row's norm: with x̂ = (x - mean) r and u = dy gain, dx = addend + r (u - share sum(u) - x̂ share sum(u x̂)),
// without sum(u) unless centred; sums += dy x̂.
func standardGrad(dx, dy, x, gain, addend, sums []float32, mean, r, share float32, centred bool) {
	su, sux := simd.NormGradSums(sums, dy, x, gain, mean, r)
	if !centred {
		su = 0
	}
	simd.NormGradApply(dx, dy, x, gain, addend, mean, r, su*share, sux*share)
}
