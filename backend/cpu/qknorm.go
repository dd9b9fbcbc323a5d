package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

// ropeKey tells tables of rotations apart.
type ropeKey struct {
	positions, headDim int
	theta              float32
}

// rope is the table of each position's cosines of the pairs, then their sines, shared by the program's nodes.
func (c *compiler) rope(positions int, at graph.QKNormRoPEAttr) []float32 {
	key := ropeKey{positions, at.HeadDim, at.Theta}
	if t, ok := c.ropes[key]; ok {
		return t
	}
	half := at.HeadDim / 2
	t := make([]float32, positions*at.HeadDim)
	for i := range half {
		frequency := math.Pow(float64(at.Theta), -2*float64(i)/float64(at.HeadDim))
		for p := range positions {
			sin, cos := math.Sincos(float64(p) * frequency)
			t[p*at.HeadDim+i], t[p*at.HeadDim+half+i] = float32(cos), float32(sin)
		}
	}
	c.ropes[key] = t
	return t
}

// qkStandard gives the mean and reciprocal root by which a head is normalised, and the share of its sums that the gradient takes.
func qkStandard(x []float32, at graph.QKNormRoPEAttr) (mean, r, share float32) {
	switch at.Norm {
	case graph.QKNone:
		return 0, 1, 0
	case graph.QKL2:
		return 0, root(squares(x, 0), 1, float64(at.Eps)), 1
	}
	mean, r = standard(x, at.Norm == graph.QKLayerNorm, float64(at.Eps))
	return mean, r, 1 / float32(len(x))
}

func qkNormRoPE(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	at := graph.AttrOf[graph.QKNormRoPEAttr](n)
	h, positions := at.HeadDim, n.In[0].Shape()[1]
	table := c.rope(positions, at)
	gain, _ := identities(h)
	if in[1] != nil {
		gain = in[1]
	}
	return c.overRows(len(in[0])/h, h, func(_ *workerScratch, from, to int) {
		for row := from; row < to; row++ {
			x := in[0][row*h : (row+1)*h]
			mean, r, _ := qkStandard(x, at)
			p := row / at.Heads % positions
			simd.Rotate(out[0][row*h:(row+1)*h], x, gain, table[p*h:(p+1)*h], mean, r, 1)
		}
	})
}

func qkNormRoPEGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	at := graph.AttrOf[graph.QKNormRoPEAttr](n)
	h, positions := at.HeadDim, n.In[0].Shape()[1]
	table := c.rope(positions, at)
	c.scratch.grow(h)
	rows := len(in[1]) / h
	ones, zeros := identities(h)
	gain, dgain := ones, out[1]
	if in[2] != nil {
		gain = in[2]
	}
	span := graph.RowsPerPart(rows)
	return parallel(graph.Parts(rows), func(worker, part int) {
		w := &c.scratch.workers[worker]
		u, sums := w.f32[0][:h], w.f32[1][:h]
		clear(sums)
		for row := part * span; row < min(rows, (part+1)*span); row++ {
			x, dx := in[1][row*h:(row+1)*h], out[0][row*h:(row+1)*h]
			p := row / at.Heads % positions
			if at.Norm == graph.QKNone {
				simd.Rotate(dx, in[0][row*h:(row+1)*h], ones, table[p*h:(p+1)*h], 0, 1, -1)
				continue
			}
			simd.Rotate(u, in[0][row*h:(row+1)*h], ones, table[p*h:(p+1)*h], 0, 1, -1)
			mean, r, share := qkStandard(x, at)
			standardGrad(dx, u, x, gain, zeros, sums, mean, r, share, at.Norm == graph.QKLayerNorm)
		}
		if dgain != nil {
			copy(dgain[part*h:], sums)
		}
	})
}
