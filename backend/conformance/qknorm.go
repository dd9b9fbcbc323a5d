package conformance

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

var qkShapes = []struct {
	norm                   graph.QKNorm
	batch, seq, heads, dim int
	gain                   bool
}{
	{graph.QKNone, 1, 1, 1, 2, false},
	{graph.QKNone, 2, 7, 3, 10, false},
	{graph.QKNone, 1, 33, 2, 64, false},
	{graph.QKRMS, 2, 5, 3, 6, true},
	{graph.QKRMS, 1, 17, 2, 10, false},
	{graph.QKRMS, 2, 9, 1, 256, true},
	{graph.QKLayerNorm, 1, 7, 2, 2, true},
	{graph.QKLayerNorm, 3, 5, 5, 34, true},
	{graph.QKLayerNorm, 1, 2, 2, 128, false},
	{graph.QKL2, 2, 7, 2, 6, false},
	{graph.QKL2, 1, 3, 3, 130, false},
	{graph.QKRMS, 600, 2, 55, 2, true}, // 66000 heads
}

// qkEps are those that models use: l2's is inside the root of a sum, not of a mean.
var qkEps = map[graph.QKNorm]float32{graph.QKNone: 0, graph.QKRMS: 1e-6, graph.QKLayerNorm: 1e-6, graph.QKL2: 1e-12}

// qkCases makes the cases of the operator, with a dy first for its gradient.
func qkCases(gradient bool) []opCase {
	var list []opCase
	for _, s := range qkShapes {
		x := f32(s.batch, s.seq, s.heads*s.dim)
		c := opCase{attr: graph.QKNormRoPEAttr{Norm: s.norm, Heads: s.heads, HeadDim: s.dim, Eps: qkEps[s.norm], Theta: 10000},
			in: []tensor{x, {}}, out: []tensor{x}}
		c.name = s.norm.String() + " " + dims(s.batch, s.seq, s.heads, s.dim)
		if gradient {
			c.in, c.out = []tensor{x, x, {}}, []tensor{x, {}}
		}
		operand := len(c.in) - 1
		if s.gain {
			c.in[operand] = gains(s.dim)
			c.name += " gain"
			if gradient {
				c.out[1] = f32(graph.Parts(s.batch*s.seq*s.heads), s.dim)
			}
		}
		if s.dim == 6 || s.dim == 10 || s.dim == 34 {
			c.special = true
			if s.norm != graph.QKNone {
				c.extra = []variant{{name: "heads of zeros", set: scaleBy(0, operand-1)}, {name: "small heads", set: scaleBy(qkSmall[s.norm], operand-1)},
					{name: "heads of 1e15", set: scaleBy(1e15, operand-1)}}
			}
		}
		list = append(list, c)
	}
	return list
}

// qkSmall scales heads so that eps decides.
var qkSmall = map[graph.QKNorm]float64{graph.QKRMS: 1e-3, graph.QKLayerNorm: 1e-3, graph.QKL2: 1e-6}

func qkNormRoPECases() []opCase     { return qkCases(false) }
func qkNormRoPEGradCases() []opCase { return qkCases(true) }

// rotateNum turns a head by sign times the angles of position t. An angle in float32 is off by a few units of itself, so that its
// sine and cosine are off by as much, beside their own error.
func rotateNum(x []num, t int, theta, sign float64) []num {
	half := len(x) / 2
	y := make([]num, len(x))
	for i := range half {
		angle := sign * float64(t) * math.Pow(theta, -2*float64(i)/float64(len(x)))
		e := funUnits * unit * (1 + math.Abs(angle))
		if t == 0 {
			e = 0
		}
		sin, cos := num{math.Sin(angle), e}, num{math.Cos(angle), e}
		a, b := x[i], x[i+half]
		y[i] = dotNum([]num{a, b.neg()}, []num{cos, sin})
		y[i+half] = dotNum([]num{b, a}, []num{cos, sin})
	}
	return y
}

// l2Num is x̂ = x r and r = 1/sqrt(sum x² + eps).
func l2Num(x []num, eps float64) (xhat []num, r num) {
	r = exact(1).div(dotNum(x, x).add(exact(eps)).sqrt())
	xhat = make([]num, len(x))
	for i := range x {
		xhat[i] = x[i].mul(r)
	}
	return xhat, r
}

func qkNormRoPEBound(n *graph.Node, in, out [][]num) {
	p := graph.AttrOf[graph.QKNormRoPEAttr](n)
	h, seq := p.HeadDim, n.In[0].Shape()[1]
	for r := range len(in[0]) / h {
		x := in[0][r*h : (r+1)*h]
		switch p.Norm {
		case graph.QKRMS, graph.QKLayerNorm:
			x, _ = standardizeNum(x, float64(p.Eps), p.Norm == graph.QKLayerNorm)
		case graph.QKL2:
			x, _ = l2Num(x, float64(p.Eps))
		}
		if in[1] != nil {
			for i := range x {
				x[i] = x[i].mul(in[1][i])
			}
		}
		copy(out[0][r*h:], rotateNum(x, r/p.Heads%seq, float64(p.Theta), 1))
	}
}

func qkNormRoPEGradBound(n *graph.Node, in, out [][]num) {
	p := graph.AttrOf[graph.QKNormRoPEAttr](n)
	h, seq := p.HeadDim, n.In[1].Shape()[1]
	parts := newPartSums(len(in[1])/h, h)
	for r := range len(in[1]) / h {
		x := in[1][r*h : (r+1)*h]
		u := rotateNum(in[0][r*h:(r+1)*h], r/p.Heads%seq, float64(p.Theta), -1)
		switch p.Norm {
		case graph.QKRMS, graph.QKLayerNorm:
			u = normRowGradNum(u, x, in[2], parts, r, float64(p.Eps), p.Norm == graph.QKLayerNorm)
		case graph.QKL2:
			u = l2GradNum(u, x, float64(p.Eps))
		}
		copy(out[0][r*h:], u)
	}
	parts.sum(out[1])
}

// l2GradNum is dx = r (u - x̂ sum(u x̂)).
func l2GradNum(u, x []num, eps float64) []num {
	xhat, r := l2Num(x, eps)
	dot := dotNum(u, xhat)
	dx := make([]num, len(x))
	for i := range x {
		dx[i] = u[i].sub(xhat[i].mul(dot)).mul(r)
	}
	return dx
}
