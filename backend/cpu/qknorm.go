package cpu

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

// ropeKey tells tables of rotations apart.
type ropeKey struct {
	positions, headDim int
	theta              float32
}

// rope is the table of (cos, sin) by position and pair, shared by the program's nodes.
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
			t[(p*half+i)*2], t[(p*half+i)*2+1] = float32(cos), float32(sin)
		}
	}
	c.ropes[key] = t
	return t
}

// rotate turns pair i = (x[i], x[i+h/2]) by its angle, backwards for the gradient.
func rotate(y, x, table []float32, back bool) {
	half := len(x) / 2
	lo, hi, ylo, yhi := x[:half], x[half:2*half], y[:half], y[half:2*half]
	table = table[:2*half]
	for i, a := range lo {
		b, cos, sin := hi[i], table[2*i], table[2*i+1]
		if back {
			sin = -sin
		}
		ylo[i], yhi[i] = a*cos-b*sin, b*cos+a*sin
	}
}

// qkStandard gives the mean and reciprocal root by which a head is normalised, and the share of its sums that the gradient takes.
func qkStandard(x []float32, at graph.QKNormRoPEAttr) (mean, r, share float64) {
	switch at.Norm {
	case graph.QKNone:
		return 0, 1, 0
	case graph.QKL2:
		return 0, 1 / math.Sqrt(dot(x, x)+float64(at.Eps)), 1
	}
	mean, r = standard(x, at.Norm == graph.QKLayerNorm, float64(at.Eps))
	return mean, r, 1 / float64(len(x))
}

func qkNormRoPE(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	at := graph.AttrOf[graph.QKNormRoPEAttr](n)
	h, positions := at.HeadDim, n.In[0].Shape()[1]
	table := c.rope(positions, at)
	c.scratch.grow(h)
	return c.overRows(len(in[0])/h, h, func(w *workerScratch, from, to int) {
		hat := w.f32[0][:h]
		for row := from; row < to; row++ {
			x := in[0][row*h : (row+1)*h]
			mean, r, _ := qkStandard(x, at)
			for i, v := range x {
				hat[i] = float32((float64(v) - mean) * r)
			}
			if in[1] != nil {
				for i, g := range in[1] {
					hat[i] *= g
				}
			}
			p := row / at.Heads % positions
			rotate(out[0][row*h:(row+1)*h], hat, table[p*h:(p+1)*h], false)
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
	gain, dgain := in[2], out[1]
	span := graph.RowsPerPart(rows)
	return parallel(graph.Parts(rows), func(worker, part int) {
		w := &c.scratch.workers[worker]
		hat, u, sums := w.f32[0][:h], w.f32[1][:h], w.sums[:h]
		clear(sums)
		for row := part * span; row < min(rows, (part+1)*span); row++ {
			x := in[1][row*h : (row+1)*h]
			p := row / at.Heads % positions
			rotate(u, in[0][row*h:(row+1)*h], table[p*h:(p+1)*h], true)
			if at.Norm == graph.QKNone {
				copy(out[0][row*h:(row+1)*h], u)
				continue
			}
			mean, r, share := qkStandard(x, at)
			standardGrad(hat, out[0][row*h:(row+1)*h], u, x, gain, nil, sums, mean, r, share, at.Norm == graph.QKLayerNorm)
		}
		if dgain != nil {
			for i, s := range sums {
				dgain[part*h+i] = float32(s)
			}
		}
	})
}
