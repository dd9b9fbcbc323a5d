package cpu

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

// standard gives the mean that is subtracted (0 unless centred) and the reciprocal root of a row.
func standard(x []float32, centred bool, eps float64) (mean, r float64) {
	n := float64(len(x))
	if centred {
		mean = total(x) / n
		return mean, 1 / math.Sqrt(centredSquares(x, mean)/n+eps)
	}
	return 0, 1 / math.Sqrt(dot(x, x)/n+eps)
}

func norm(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	centred := n.Op == graph.OpLayerNorm
	eps := float64(graph.AttrOf[graph.NormAttr](n).Eps)
	cols := n.In[0].Shape().Last()
	gain, addend := in[1], in[2]
	return c.overRows(n.In[0].Shape().Rows(), cols, func(_ *workerScratch, from, to int) {
		for row := from; row < to; row++ {
			x, y := in[0][row*cols:(row+1)*cols], out[0][row*cols:(row+1)*cols]
			mean64, r64 := standard(x, centred, eps)
			r := float32(r64)
			var a []float32
			if addend != nil {
				a = addend[row*cols : (row+1)*cols]
			}
			switch {
			case centred: // in float64, since x - mean may cancel
				for i, v := range x {
					h := float32((float64(v) - mean64) * r64)
					if gain != nil {
						h *= gain[i]
					}
					if a != nil {
						h += a[i]
					}
					y[i] = h
				}
			case gain != nil && a != nil:
				w := gain[:len(x)]
				for i, v := range x {
					y[i] = a[i] + v*r*w[i]
				}
			case gain != nil:
				w := gain[:len(x)]
				for i, v := range x {
					y[i] = v * r * w[i]
				}
			case a != nil:
				for i, v := range x {
					y[i] = a[i] + v*r
				}
			default:
				for i, v := range x {
					y[i] = v * r
				}
			}
		}
	})
}

func normGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	centred := n.Op == graph.OpLayerNormGrad
	eps := float64(graph.AttrOf[graph.NormAttr](n).Eps)
	rows, cols := n.In[1].Shape().Rows(), n.In[1].Shape().Last()
	gain, addend, dgain := in[2], in[3], out[1]
	c.scratch.grow(cols)
	span := graph.RowsPerPart(rows)
	return parallel(graph.Parts(rows), func(worker, part int) {
		w := &c.scratch.workers[worker]
		sums := w.sums[:cols]
		clear(sums)
		for row := part * span; row < min(rows, (part+1)*span); row++ {
			at := row * cols
			dy, x, dx := in[0][at:at+cols], in[1][at:at+cols], out[0][at:at+cols]
			var add []float32
			if addend != nil {
				add = addend[at : at+cols]
			}
			mean, r := standard(x, centred, eps)
			standardGrad(w.f32[0][:cols], dx, dy, x, gain, add, sums, mean, r, 1/float64(cols), centred)
		}
		if dgain != nil {
			for i, s := range sums {
				dgain[part*cols+i] = float32(s)
			}
		}
	})
}

// standardGrad is the gradient of one row's norm: with x̂ = (x - mean) r and u = dy gain, dx = addend + r (u - share sum(u) - x̂ share sum(u x̂)),
// without sum(u) unless centred; sums += dy x̂ where there is a gain. hat is scratch for x̂.
func standardGrad(hat, dx, dy, x, gain, addend []float32, sums []float64, mean, r, share float64, centred bool) {
	var su, sux float64
	for i, v := range x {
		h := (float64(v) - mean) * r
		u := float64(dy[i])
		if gain != nil {
			sums[i] += u * h
			u *= float64(gain[i])
		}
		su += u
		sux += u * h
		hat[i] = float32(h)
	}
	if !centred {
		su = 0
	}
	su *= share
	sux *= share
	for i, h := range hat[:len(x)] {
		u := float64(dy[i])
		if gain != nil {
			u *= float64(gain[i])
		}
		d := r * (u - su - float64(h)*sux)
		if addend != nil {
			d += float64(addend[i])
		}
		dx[i] = float32(d)
	}
}
