package reference

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

// rotate turns the pairs (i, i + h/2) of a head at position t by sign times their angles t theta^(-2i/h).
func rotate(x []float64, t int, theta, sign float64) []float64 {
	half := len(x) / 2
	y := make([]float64, len(x))
	for i := range half {
		sin, cos := math.Sincos(sign * float64(t) * math.Pow(theta, -2*float64(i)/float64(len(x))))
		y[i] = x[i]*cos - x[i+half]*sin
		y[i+half] = x[i+half]*cos + x[i]*sin
	}
	return y
}

// l2 gives x̂ = x r and r = 1/sqrt(sum x² + eps).
func l2(x []float64, eps float64) (xhat []float64, r float64) {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	r = 1 / math.Sqrt(square+eps)
	xhat = make([]float64, len(x))
	for i, v := range x {
		xhat[i] = v * r
	}
	return xhat, r
}

// y = R(t) (norm(x) gain) for each head of each position t.
func qkNormRoPE(n *graph.Node, in, out [][]float64) {
	x, gain, y := in[0], in[1], out[0]
	p := graph.AttrOf[graph.QKNormRoPEAttr](n)
	eps, theta := float64(p.Eps), float64(p.Theta)
	h, T := p.HeadDim, n.In[0].Shape()[1]
	for r := range len(x) / h {
		xr := x[r*h : (r+1)*h]
		switch p.Norm {
		case graph.QKRMS:
			xr, _ = standardize(xr, eps, false)
		case graph.QKLayerNorm:
			xr, _ = standardize(xr, eps, true)
		case graph.QKL2:
			xr, _ = l2(xr, eps)
		}
		scaled := make([]float64, h)
		for i := range h {
			scaled[i] = xr[i]
			if gain != nil {
				scaled[i] *= gain[i]
			}
		}
		copy(y[r*h:], rotate(scaled, r/p.Heads%T, theta, 1))
	}
}

// u = Rᵀ dy, then the norm's gradient.
func qkNormRoPEGrad(n *graph.Node, in, out [][]float64) {
	dy, x, gain, dx, dgain := in[0], in[1], in[2], out[0], out[1]
	p := graph.AttrOf[graph.QKNormRoPEAttr](n)
	eps, theta := float64(p.Eps), float64(p.Theta)
	h, T := p.HeadDim, n.In[1].Shape()[1]
	rows := len(x) / h
	clear(dgain)
	for r := range rows {
		xr := x[r*h : (r+1)*h]
		u := rotate(dy[r*h:(r+1)*h], r/p.Heads%T, theta, -1)
		part := dgainPart(dgain, r, rows, h)
		switch p.Norm {
		case graph.QKRMS:
			u = normRowGrad(u, xr, gain, part, eps, false)
		case graph.QKLayerNorm:
			u = normRowGrad(u, xr, gain, part, eps, true)
		case graph.QKL2:
			u = l2Grad(u, xr, eps)
		}
		copy(dx[r*h:], u)
	}
}

// dx = r (u - x̂ sum(u x̂))
func l2Grad(u, x []float64, eps float64) []float64 {
	xhat, r := l2(x, eps)
	dot := 0.0
	for i := range x {
		dot += u[i] * xhat[i]
	}
	dx := make([]float64, len(x))
	for i := range x {
		dx[i] = r * (u[i] - xhat[i]*dot)
	}
	return dx
}
