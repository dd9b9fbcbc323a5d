package reference

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

// softmax of each row, the largest subtracted first.
func softmax(n *graph.Node, in, out [][]float64) {
	d := n.In[0].Shape().Last()
	for r := range n.In[0].Shape().Rows() {
		x := in[0][r*d : (r+1)*d]
		l := logSumExp(x)
		for i, v := range x {
			out[0][r*d+i] = math.Exp(v - l)
		}
	}
}

// dx = y (dy - sum(dy y))
func softmaxGrad(n *graph.Node, in, out [][]float64) {
	d := n.In[1].Shape().Last()
	for r := range n.In[1].Shape().Rows() {
		dy, y := in[0][r*d:(r+1)*d], in[1][r*d:(r+1)*d]
		s := dot(dy, y)
		for i := range d {
			out[0][r*d+i] = y[i] * (dy[i] - s)
		}
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func swiGLU(_ *graph.Node, in, out [][]float64) {
	for i, g := range in[0] {
		out[0][i] = g * logistic(g) * in[1][i]
	}
}

// dgate = dy up σ (1 + gate (1 - σ)), dup = dy gate σ.
func swiGLUGrad(_ *graph.Node, in, out [][]float64) {
	for i, dy := range in[0] {
		g, up := in[1][i], in[2][i]
		s := logistic(g)
		out[0][i] = dy * up * s * (1 + g*logistic(-g))
		out[1][i] = dy * g * s
	}
}

// normalCDF is Φ, by erfc so that its lower tail keeps its digits.
func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func normalPDF(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

func gelu(_ *graph.Node, in, out [][]float64) {
	for i, x := range in[0] {
		out[0][i] = x * normalCDF(x)
	}
}

// dx = dy (Φ(x) + x φ(x))
func geluGrad(_ *graph.Node, in, out [][]float64) {
	for i, dy := range in[0] {
		x := in[1][i]
		out[0][i] = dy * (normalCDF(x) + x*normalPDF(x))
	}
}

func relu(_ *graph.Node, in, out [][]float64) {
	for i, x := range in[0] {
		if x < 0 {
			x = 0
		}
		out[0][i] = x
	}
}

// dx = dy where x > 0, 0 where it is not, NaN where x is.
func reluGrad(_ *graph.Node, in, out [][]float64) {
	for i, dy := range in[0] {
		switch x := in[1][i]; {
		case math.IsNaN(x):
			out[0][i] = x
		case x > 0:
			out[0][i] = dy
		default:
			out[0][i] = 0
		}
	}
}

func capOf(n *graph.Node) float64 { return float64(graph.AttrOf[graph.SoftCapAttr](n).Cap) }

// y = c tanh(x/c)
func softCap(n *graph.Node, in, out [][]float64) {
	c := capOf(n)
	for i, x := range in[0] {
		out[0][i] = c * math.Tanh(x/c)
	}
}

// dx = dy (1 - (y/c)²)
func softCapGrad(n *graph.Node, in, out [][]float64) {
	c := capOf(n)
	for i, dy := range in[0] {
		y := in[1][i] / c
		out[0][i] = dy * (1 - y*y)
	}
}

func add(_ *graph.Node, in, out [][]float64) {
	for i := range out[0] {
		out[0][i] = in[0][i] + in[1][i]
	}
}

// cast rounds to bf16 and f16; what is f32 stays float64.
func cast(_ *graph.Node, in, out [][]float64) { copy(out[0], in[0]) }
