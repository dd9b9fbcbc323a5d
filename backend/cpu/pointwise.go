package cpu

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

func softmax(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	return c.overRows(n.In[0].Shape().Rows(), cols, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			x, y := in[0][r*cols:(r+1)*cols], out[0][r*cols:(r+1)*cols]
			top, s := largest(x), 0.0
			for i, v := range x {
				e := exp(v - top)
				y[i] = e
				s += float64(e)
			}
			f := 1 / s
			for i, e := range y {
				y[i] = float32(float64(e) * f)
			}
		}
	})
}

func softmaxGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	return c.overRows(n.In[0].Shape().Rows(), cols, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			dy, y, dx := in[0][r*cols:(r+1)*cols], in[1][r*cols:(r+1)*cols], out[0][r*cols:(r+1)*cols]
			s := dot(dy, y)
			for i, v := range y {
				dx[i] = float32(float64(v) * (float64(dy[i]) - s))
			}
		}
	})
}

// sigmoidTail is where e^-x nears overflow, and 1 / (1 + e^-x) is e^x to the last bit.
const sigmoidTail = -88

// sigmoid is 1 / (1 + e^-x).
func sigmoid(x float32) float32 {
	if x < sigmoidTail {
		return exp(x)
	}
	return 1 / (1 + exp(-x))
}

// silu is x / (1 + e^-x), by halves in the tail, where e^x would be subnormal but the product is not.
func silu(x float32) float32 {
	if x < sigmoidTail {
		h := exp(x / 2)
		return x * h * h
	}
	return x / (1 + exp(-x))
}

func swiGLU(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) {
		gate, up, y := in[0][from:to], in[1][from:to], out[0][from:to]
		for i, g := range gate {
			y[i] = silu(g) * up[i]
		}
	})
}

func swiGLUGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) {
		dy, gate, up, dgate, dup := in[0][from:to], in[1][from:to], in[2][from:to], out[0][from:to], out[1][from:to]
		for i, g := range gate {
			s := sigmoid(g)
			d := dy[i]
			dgate[i] = d * up[i] * s * (1 + g*(1-s))
			dup[i] = d * g * s
		}
	})
}

// each is an operator of one output of the same size as its inputs.
func each(c *compiler, n *graph.Node, f func(y, x []float32), g func(y, a, b []float32)) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) {
		if g != nil {
			g(out[0][from:to], in[0][from:to], in[1][from:to])
		} else {
			f(out[0][from:to], in[0][from:to])
		}
	})
}

// gaussian is Φ(x), the distribution function of N(0, 1). erfc keeps its precision for x far below 0.
func gaussian(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

func gelu(c *compiler, n *graph.Node) kernel {
	return each(c, n, func(y, x []float32) {
		for i, v := range x {
			y[i] = float32(float64(v) * gaussian(float64(v)))
		}
	}, nil)
}

func geluGrad(c *compiler, n *graph.Node) kernel {
	return each(c, n, nil, func(dx, dy, x []float32) {
		for i, v := range x {
			u := float64(v)
			slope := gaussian(u) + u*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi)
			dx[i] = float32(float64(dy[i]) * slope)
		}
	})
}

func relu(c *compiler, n *graph.Node) kernel {
	return each(c, n, func(y, x []float32) {
		for i, v := range x {
			if v <= 0 {
				v = 0
			}
			y[i] = v
		}
	}, nil)
}

func reluGrad(c *compiler, n *graph.Node) kernel {
	return each(c, n, nil, func(dx, dy, x []float32) {
		for i, v := range x {
			switch {
			case v > 0:
				dx[i] = dy[i]
			case v <= 0:
				dx[i] = 0
			default:
				dx[i] = v
			}
		}
	})
}

func softCap(c *compiler, n *graph.Node) kernel {
	limit := float64(graph.AttrOf[graph.SoftCapAttr](n).Cap)
	return each(c, n, func(y, x []float32) {
		for i, v := range x {
			y[i] = float32(limit * math.Tanh(float64(v)/limit))
		}
	}, nil)
}

func softCapGrad(c *compiler, n *graph.Node) kernel {
	limit := float64(graph.AttrOf[graph.SoftCapAttr](n).Cap)
	return each(c, n, nil, func(dx, dy, y []float32) {
		for i, v := range y {
			t := float64(v) / limit
			dx[i] = float32(float64(dy[i]) * (1 - t*t))
		}
	})
}

func add(c *compiler, n *graph.Node) kernel {
	return each(c, n, nil, func(y, a, b []float32) {
		for i := range y {
			y[i] = a[i] + b[i]
		}
	})
}

func fill(c *compiler, n *graph.Node) kernel {
	_, out := c.operands(n)
	value := graph.AttrOf[graph.FillAttr](n).Value
	return c.overElems(len(out[0]), func(from, to int) {
		y := out[0][from:to]
		for i := range y {
			y[i] = value
		}
	})
}

func broadcast(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) {
		v := in[0][0]
		if in[1] != nil {
			v *= in[1][0]
		}
		y := out[0][from:to]
		for i := range y {
			y[i] = v
		}
	})
}

func sum(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	return serial(func() {
		s := total(in[0])
		if in[1] != nil {
			s *= float64(in[1][0])
		}
		out[0][0] = float32(s)
	})
}

func sumRows(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	rows := n.In[0].Shape().Rows()
	return c.overRows(cols, rows, func(_ *workerScratch, from, to int) {
		for j := from; j < to; j++ {
			s := 0.0
			if in[1] != nil {
				s = float64(in[1][j])
			}
			for r := range rows {
				s += float64(in[0][r*cols+j])
			}
			out[0][j] = float32(s)
		}
	})
}
