package reference

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

func epsOf(n *graph.Node) float64 { return float64(graph.AttrOf[graph.NormAttr](n).Eps) }

// standardize gives x̂ = (x - mean) r and r = 1/sqrt(mean((x - mean)²) + eps) of a row; the mean is taken as 0 unless centered.
func standardize(x []float64, eps float64, centered bool) (xhat []float64, r float64) {
	mean, square := 0.0, 0.0
	if centered {
		for _, v := range x {
			mean += v / float64(len(x))
		}
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	r = 1 / math.Sqrt(square/float64(len(x))+eps)
	xhat = make([]float64, len(x))
	for i, v := range x {
		xhat[i] = (v - mean) * r
	}
	return xhat, r
}

func rmsNorm(n *graph.Node, in, out [][]float64)   { norm(n, in, out, false) }
func layerNorm(n *graph.Node, in, out [][]float64) { norm(n, in, out, true) }

// y = addend + x̂ gain
func norm(n *graph.Node, in, out [][]float64, centered bool) {
	x, gain, addend, y := in[0], in[1], in[2], out[0]
	d := n.In[0].Shape().Last()
	for r := range n.In[0].Shape().Rows() {
		xhat, _ := standardize(x[r*d:(r+1)*d], epsOf(n), centered)
		for i, v := range xhat {
			if gain != nil {
				v *= gain[i]
			}
			if addend != nil {
				v += addend[r*d+i]
			}
			y[r*d+i] = v
		}
	}
}

func rmsNormGrad(n *graph.Node, in, out [][]float64)   { normGrad(n, in, out, false) }
func layerNormGrad(n *graph.Node, in, out [][]float64) { normGrad(n, in, out, true) }

func normGrad(n *graph.Node, in, out [][]float64, centered bool) {
	dy, x, gain, addend, dx, dgain := in[0], in[1], in[2], in[3], out[0], out[1]
	d, rows := n.In[1].Shape().Last(), n.In[1].Shape().Rows()
	clear(dgain)
	for r := range rows {
		xr, dyr := x[r*d:(r+1)*d], dy[r*d:(r+1)*d]
		part := dgainPart(dgain, r, rows, d)
		for i, v := range normRowGrad(dyr, xr, gain, part, epsOf(n), centered) {
			if addend != nil {
				v += addend[r*d+i]
			}
			dx[r*d+i] = v
		}
	}
}

// dgainPart is the row of a partial gradient to which row r of rows adds, nil if there is no such gradient.
func dgainPart(dgain []float64, r, rows, d int) []float64 {
	if dgain == nil {
		return nil
	}
	p := r / graph.RowsPerPart(rows)
	return dgain[p*d : (p+1)*d]
}

// normRowGrad gives dx = r (u - mean(u) - x̂ mean(u x̂)) with u = dy gain, without mean(u) unless centered, and adds dy x̂ to dgain.
func normRowGrad(dy, x, gain, dgain []float64, eps float64, centered bool) []float64 {
	xhat, r := standardize(x, eps, centered)
	u := make([]float64, len(x))
	meanU, meanUX := 0.0, 0.0
	for i := range x {
		u[i] = dy[i]
		if gain != nil {
			u[i] *= gain[i]
		}
		meanUX += u[i] * xhat[i] / float64(len(x))
		if centered {
			meanU += u[i] / float64(len(x))
		}
		if dgain != nil {
			dgain[i] += dy[i] * xhat[i]
		}
	}
	dx := make([]float64, len(x))
	for i := range x {
		dx[i] = r * (u[i] - meanU - xhat[i]*meanUX)
	}
	return dx
}
