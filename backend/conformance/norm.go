package conformance

import (
	"math/rand/v2"

	"github.com/vktrain/vktrain/graph"
)

func rmsNormCases() []opCase   { return normCases(graph.OpRMSNorm) }
func layerNormCases() []opCase { return normCases(graph.OpLayerNorm) }

func rmsNormBound(n *graph.Node, in, out [][]num)   { normBound(n, in, out, false) }
func layerNormBound(n *graph.Node, in, out [][]num) { normBound(n, in, out, true) }

// normShapes are row counts and lengths, with what operands there are.
var normShapes = []struct {
	shape []int
	gain  bool
	mode  addendMode
}{
	{[]int{1, 1}, true, noAddend},
	{[]int{7}, false, noAddend},
	{[]int{3, 2}, false, separate},
	{[]int{7, 17}, true, separate},
	{[]int{5, 63}, false, noAddend},
	{[]int{2, 2, 129}, true, inPlace},
	{[]int{2, 3, 5, 31}, true, noAddend},
	{[]int{2, 257}, true, separate},
	{[]int{66000, 2}, true, noAddend},
}

func normCases(op graph.Op) []opCase {
	var list []opCase
	for _, s := range normShapes {
		c := opCase{attr: graph.NormAttr{Eps: 1e-6}, in: []tensor{f32(s.shape...), {}, {}}, out: []tensor{f32(s.shape...)}}
		c.name = dims(s.shape...) + gainOperand(&c, 1, s.gain, s.shape[len(s.shape)-1]) + s.mode.String()
		c.addend(s.mode, 2)
		if n := s.shape[len(s.shape)-1]; n == 17 || n == 63 {
			c.special = true
			c.extra = normExtremes(op, 0, n)
		}
		list = append(list, c)
	}
	return list
}

// gainOperand adds the gain, or leaves it frozen at 1.
func gainOperand(c *opCase, operand int, present bool, n int) string {
	if !present {
		return " frozen gain"
	}
	c.in[operand] = gains(n)
	return ""
}

// normExtremes change the rows of length n of an operand.
func normExtremes(op graph.Op, operand, n int) []variant {
	list := []variant{
		{name: "rows of zeros", set: scaleBy(0, operand)},
		{name: "constant rows", set: func(in [][]float64, _ *rand.Rand) {
			for i := range in[operand] {
				in[operand][i] = 1.7 * float64(1+i/n)
			}
		}},
		{name: "rows so small that eps decides", set: scaleBy(1e-3, operand)},
		{name: "rows of 1e-30", set: scaleBy(1e-30, operand)},
		{name: "rows of 1e15", set: scaleBy(1e15, operand)},
	}
	if op == graph.OpLayerNorm || op == graph.OpLayerNormGrad {
		list = append(list, variant{name: "rows far from zero", set: func(in [][]float64, _ *rand.Rand) {
			for i := range in[operand] {
				in[operand][i] += 1000
			}
		}})
	}
	return list
}

// standardizeNum is x̂ = (x - mean) r and r = 1/sqrt(mean((x - mean)²) + eps), the mean first, then the squares.
func standardizeNum(x []num, eps float64, centered bool) (xhat []num, r num) {
	n := exact(float64(len(x)))
	d := x
	if centered {
		mean := sumNum(x...).div(n)
		d = make([]num, len(x))
		for i := range x {
			d[i] = x[i].sub(mean)
		}
	}
	r = exact(1).div(dotNum(d, d).div(n).add(exact(eps)).sqrt())
	xhat = make([]num, len(x))
	for i := range d {
		xhat[i] = d[i].mul(r)
	}
	return xhat, r
}

func normBound(n *graph.Node, in, out [][]num, centered bool) {
	d, eps := n.In[0].Shape().Last(), float64(graph.AttrOf[graph.NormAttr](n).Eps)
	for r := range n.In[0].Shape().Rows() {
		xhat, _ := standardizeNum(in[0][r*d:(r+1)*d], eps, centered)
		for i, y := range xhat {
			if in[1] != nil {
				y = y.mul(in[1][i])
			}
			out[0][r*d+i] = plus(in[2], r*d+i, y)
		}
	}
}

func rmsNormGradCases() []opCase   { return normGradCases(graph.OpRMSNormGrad) }
func layerNormGradCases() []opCase { return normGradCases(graph.OpLayerNormGrad) }

func rmsNormGradBound(n *graph.Node, in, out [][]num)   { normGradBound(n, in, out, false) }
func layerNormGradBound(n *graph.Node, in, out [][]num) { normGradBound(n, in, out, true) }

func normGradCases(op graph.Op) []opCase {
	shapes := append(normShapes[:len(normShapes):len(normShapes)], normShapes[0])
	last := &shapes[len(shapes)-1]
	last.shape, last.gain, last.mode = []int{1111, 3}, true, separate // parts of more than 16 rows
	var list []opCase
	for _, s := range shapes {
		x := f32(s.shape...)
		d := x.shape.Last()
		c := opCase{attr: graph.NormAttr{Eps: 1e-6}, in: []tensor{x, x, {}, {}}, out: []tensor{x, {}}}
		c.name = dims(s.shape...) + gainOperand(&c, 2, s.gain, d) + s.mode.String()
		if s.gain {
			c.out[1] = f32(graph.Parts(x.shape.Rows()), d)
		}
		c.addend(s.mode, 3)
		if d == 17 || d == 63 {
			c.special = true
			c.extra = normExtremes(op, 1, d)
		}
		list = append(list, c)
	}
	return list
}

// partSums collects the terms of a gain's partial gradient.
type partSums struct {
	rows, d int
	terms   [][]num
}

func newPartSums(rows, d int) *partSums {
	return &partSums{rows, d, make([][]num, graph.Parts(rows)*d)}
}

func (p *partSums) add(row, i int, x num) {
	at := row/graph.RowsPerPart(p.rows)*p.d + i
	p.terms[at] = append(p.terms[at], x)
}

func (p *partSums) sum(out []num) {
	for i := range out {
		out[i] = sumNum(p.terms[i]...)
	}
}

func normGradBound(n *graph.Node, in, out [][]num, centered bool) {
	shape, eps := n.In[1].Shape(), float64(graph.AttrOf[graph.NormAttr](n).Eps)
	d := shape.Last()
	parts := newPartSums(shape.Rows(), d)
	for r := range shape.Rows() {
		dx := normRowGradNum(in[0][r*d:(r+1)*d], in[1][r*d:(r+1)*d], in[2], parts, r, eps, centered)
		for i := range dx {
			out[0][r*d+i] = plus(in[3], r*d+i, dx[i])
		}
	}
	parts.sum(out[1])
}

// normRowGradNum is dx = r (u - mean(u) - x̂ mean(u x̂)) with u = dy gain; what adds to the gain's gradient goes to parts.
func normRowGradNum(dy, x, gain []num, parts *partSums, row int, eps float64, centered bool) []num {
	xhat, r := standardizeNum(x, eps, centered)
	n := exact(float64(len(x)))
	u := make([]num, len(x))
	for i := range x {
		u[i] = dy[i]
		if gain != nil {
			u[i] = dy[i].mul(gain[i])
		}
		parts.add(row, i, dy[i].mul(xhat[i]))
	}
	meanUX := dotNum(u, xhat).div(n)
	meanU := exact(0)
	if centered {
		meanU = sumNum(u...).div(n)
	}
	dx := make([]num, len(x))
	for i := range x {
		dx[i] = sumNum(u[i], meanU.neg(), xhat[i].mul(meanUX).neg()).mul(r)
	}
	return dx
}
