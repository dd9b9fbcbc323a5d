package cpu

import (
	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

func softmax(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	return c.overRows(n.In[0].Shape().Rows(), cols, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			x, y := in[0][r*cols:(r+1)*cols], out[0][r*cols:(r+1)*cols]
			s := simd.ExpScaleSum(y, x, 1, simd.Max(x))
			simd.Scale(y, y, 1/s)
		}
	})
}

func softmaxGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	return c.overRows(n.In[0].Shape().Rows(), cols, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			dy, y := in[0][r*cols:(r+1)*cols], in[1][r*cols:(r+1)*cols]
			simd.SoftmaxGrad(out[0][r*cols:(r+1)*cols], dy, y, simd.Dot(dy, y))
		}
	})
}

func swiGLU(c *compiler, n *graph.Node) kernel { return binary(c, n, simd.SwiGLU) }

func swiGLUGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) {
		simd.SwiGLUGrad(out[0][from:to], out[1][from:to], in[0][from:to], in[1][from:to], in[2][from:to])
	})
}

// unary is an operator of one input and one output of the same size.
func unary(c *compiler, n *graph.Node, f func(y, x []float32)) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) { f(out[0][from:to], in[0][from:to]) })
}

// binary is an operator of two inputs and one output of the same size.
func binary(c *compiler, n *graph.Node, f func(y, a, b []float32)) kernel {
	in, out := c.operands(n)
	return c.overElems(len(out[0]), func(from, to int) { f(out[0][from:to], in[0][from:to], in[1][from:to]) })
}

func gelu(c *compiler, n *graph.Node) kernel     { return unary(c, n, simd.GELU) }
func geluGrad(c *compiler, n *graph.Node) kernel { return binary(c, n, simd.GELUGrad) }
func relu(c *compiler, n *graph.Node) kernel     { return unary(c, n, simd.ReLU) }
func reluGrad(c *compiler, n *graph.Node) kernel { return binary(c, n, simd.ReLUGrad) }
func add(c *compiler, n *graph.Node) kernel      { return binary(c, n, simd.Add) }

func softCap(c *compiler, n *graph.Node) kernel {
	limit := graph.AttrOf[graph.SoftCapAttr](n).Cap
	return unary(c, n, func(y, x []float32) { simd.SoftCap(y, x, limit) })
}

func softCapGrad(c *compiler, n *graph.Node) kernel {
	limit := graph.AttrOf[graph.SoftCapAttr](n).Cap
	return binary(c, n, func(dx, dy, y []float32) { simd.SoftCapGrad(dx, dy, y, limit) })
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

// sumRows adds rows in order; a task has some columns.
func sumRows(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	rows, cols := n.In[0].Shape().Rows(), n.In[0].Shape().Last()
	const width = 128
	return parallel((cols+width-1)/width, func(_, i int) {
		from, to := i*width, min(cols, (i+1)*width)
		y := out[0][from:to]
		if in[1] != nil {
			copy(y, in[1][from:to])
		} else {
			clear(y)
		}
		for r := range rows {
			simd.Add(y, y, in[0][r*cols+from:r*cols+to])
		}
	})
}
