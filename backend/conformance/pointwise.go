package conformance

import (
	"math"
	"math/rand/v2"

	"github.com/vktrain/vktrain/graph"
)

// pointwiseShapes are of elementwise operators.
var pointwiseShapes = [][]int{{1}, {7}, {3, 5, 17}, {2, 1, 2, 129}, {70001}}

// pointwiseCases makes an operator of inputs and outputs of one shape.
func pointwiseCases(in, out int, attr any, f filler) []opCase {
	var list []opCase
	for _, s := range pointwiseShapes {
		c := opCase{name: dims(s...), attr: attr}
		for range in {
			c.in = append(c.in, f32(s...).with(f))
		}
		for range out {
			c.out = append(c.out, f32(s...))
		}
		if len(s) == 3 {
			c.special = true
			for i := range in {
				c.extra = append(c.extra, variant{name: "extreme values in " + string(rune('a'+i)), set: extremesIn(i)})
			}
		}
		list = append(list, c)
	}
	return list
}

// extremesIn puts numbers where functions overflow, saturate or vanish among an operand's.
func extremesIn(operand int) func([][]float64, *rand.Rand) {
	return func(in [][]float64, _ *rand.Rand) {
		i := 0
		for _, x := range []float64{0, 1e-38, 1e-30, 1e-8, 1e-4, 5, 9, 15, 30, 80, 87, 89, 100, 110, 150, 200, 1e4, 1e19, 1e30} {
			in[operand][i], in[operand][i+1] = x, -x
			i += 2
		}
	}
}

func swiGLUCases() []opCase     { return pointwiseCases(2, 1, nil, normal(0, 2)) }
func swiGLUGradCases() []opCase { return pointwiseCases(3, 2, nil, normal(0, 2)) }
func geluCases() []opCase       { return pointwiseCases(1, 1, nil, normal(0, 2)) }
func geluGradCases() []opCase   { return pointwiseCases(2, 1, nil, normal(0, 2)) }
func reluCases() []opCase       { return pointwiseCases(1, 1, nil, normal(0, 2)) }
func reluGradCases() []opCase   { return pointwiseCases(2, 1, nil, normal(0, 2)) }
func softCapCases() []opCase    { return pointwiseCases(1, 1, graph.SoftCapAttr{Cap: 1.5}, normal(0, 2)) }

// softCapGradCases read y, which lies between the caps.
func softCapGradCases() []opCase {
	list := pointwiseCases(2, 1, graph.SoftCapAttr{Cap: 30}, uniform(-30, 30))
	for i := range list {
		list[i].extra = nil
	}
	return list
}

func swiGLUBound(_ *graph.Node, in, out [][]num) {
	for i, g := range in[0] {
		out[0][i] = g.mul(g.logistic()).mul(in[1][i])
	}
}

func swiGLUGradBound(_ *graph.Node, in, out [][]num) {
	one := exact(1)
	for i, dy := range in[0] {
		g, up := in[1][i], in[2][i]
		s := g.logistic()
		out[0][i] = dy.mul(up).mul(s.mul(one.add(g.mul(one.sub(s)))))
		out[1][i] = dy.mul(g.mul(s))
	}
}

// cdfNum is (1 + erf(x/sqrt(2)))/2: what is left of Φ's lower tail after that sum is what a device may give.
func cdfNum(x num) num {
	return exact(1).add(x.mul(num{math.Sqrt2 / 2, unit}).erf()).mul(exact(0.5))
}

func geluBound(_ *graph.Node, in, out [][]num) {
	for i, x := range in[0] {
		out[0][i] = x.mul(cdfNum(x))
	}
}

func geluGradBound(_ *graph.Node, in, out [][]num) {
	c := 1 / math.Sqrt(2*math.Pi)
	for i, dy := range in[0] {
		x := in[1][i]
		out[0][i] = dy.mul(cdfNum(x).add(x.mul(x.gauss().mul(num{c, unit * c}))))
	}
}

// reluBound is exact: the input itself, or zero.
func reluBound(_ *graph.Node, in, out [][]num) {
	for i, x := range in[0] {
		if x.v < 0 {
			x = num{0, x.e}
		}
		out[0][i] = x
	}
}

func reluGradBound(_ *graph.Node, in, out [][]num) {
	for i, dy := range in[0] {
		x := in[1][i]
		switch {
		case math.IsNaN(x.v):
			dy = x
		case x.v <= 0:
			dy = exact(0)
		case x.e > 0: // a subnormal x may be read as zero
			dy.e = math.Abs(dy.v)
		}
		out[0][i] = dy
	}
}

func softCapBound(n *graph.Node, in, out [][]num) {
	c := exact(float64(graph.AttrOf[graph.SoftCapAttr](n).Cap))
	for i, x := range in[0] {
		out[0][i] = x.div(c).tanh().mul(c)
	}
}

func softCapGradBound(n *graph.Node, in, out [][]num) {
	c := exact(float64(graph.AttrOf[graph.SoftCapAttr](n).Cap))
	for i, dy := range in[0] {
		th := in[1][i].div(c)
		out[0][i] = dy.mul(exact(1).sub(th.mul(th)))
	}
}

var softmaxShapes = [][]int{{1, 1}, {2}, {5, 33}, {2, 3, 257}, {2, 2, 2, 17}, {3, 1031}, {66000, 2}}

func softmaxCases() []opCase {
	var list []opCase
	for _, s := range softmaxShapes {
		c := opCase{name: dims(s...), in: []tensor{f32(s...).with(normal(0, 3))}, out: []tensor{f32(s...)}}
		if s[len(s)-1] == 33 {
			c.special = true
			c.extra = []variant{{name: "1e4", set: scaleBy(1e4, 0)}, {name: "1e30", set: scaleBy(1e30, 0)}, {name: "equal", set: scaleBy(0, 0)}}
		}
		list = append(list, c)
	}
	return list
}

func softmaxBound(n *graph.Node, in, out [][]num) {
	d := n.In[0].Shape().Last()
	for r := range n.In[0].Shape().Rows() {
		p, _ := softmaxNum(in[0][r*d : (r+1)*d])
		copy(out[0][r*d:], p)
	}
}

// simplex draws rows of n positive numbers that add to 1.
func simplex(n int) filler {
	return func(r *rand.Rand, x []float64) {
		for at := 0; at < len(x); at += n {
			total := 0.0
			for i := range n {
				x[at+i] = r.ExpFloat64()
				total += x[at+i]
			}
			for i := range n {
				x[at+i] /= total
			}
		}
	}
}

func softmaxGradCases() []opCase {
	var list []opCase
	for _, s := range softmaxShapes {
		n := s[len(s)-1]
		list = append(list, opCase{name: dims(s...), in: []tensor{f32(s...), f32(s...).with(simplex(n))}, out: []tensor{f32(s...)}, special: n == 33})
	}
	return list
}

func softmaxGradBound(n *graph.Node, in, out [][]num) {
	d := n.In[1].Shape().Last()
	for r := range n.In[1].Shape().Rows() {
		dy, y := in[0][r*d:(r+1)*d], in[1][r*d:(r+1)*d]
		s := dotNum(dy, y)
		for i := range d {
			out[0][r*d+i] = y[i].mul(dy[i].sub(s))
		}
	}
}

func addCases() []opCase {
	list := pointwiseCases(2, 1, nil, normal(0, 2))
	for operand := range 2 {
		c := pointwiseCases(2, 1, nil, normal(0, 2))[2]
		c.name += " into " + string(rune('a'+operand))
		c.inPlace = map[int]int{0: operand}
		list = append(list, c)
	}
	return list
}

func addBound(_ *graph.Node, in, out [][]num) {
	for i := range out[0] {
		out[0][i] = in[0][i].add(in[1][i])
	}
}

// wide draws numbers of all magnitudes that float16 has.
func wide(r *rand.Rand, x []float64) {
	for i := range x {
		x[i] = math.Ldexp(1+r.Float64(), r.IntN(36)-20) * float64(1-2*r.IntN(2))
	}
}

func castCases() []opCase {
	var list []opCase
	formats := []graph.DType{graph.F32, graph.BF16, graph.F16}
	for _, from := range formats {
		for _, to := range formats {
			if from == to {
				continue
			}
			for _, s := range [][]int{{1}, {3, 5, 17}} {
				c := opCase{name: from.String() + " to " + to.String() + " " + dims(s...),
					in: []tensor{{shape: s, dtype: from, fill: wide}}, out: []tensor{{shape: s, dtype: to}}}
				if len(s) == 3 {
					c.special = true
					c.extra = []variant{{name: "ties and limits", set: castLimits}}
				}
				list = append(list, c)
			}
		}
	}
	even := opCase{name: "f32 to bf16 1026", in: []tensor{f32(1026)}, out: []tensor{{shape: []int{1026}, dtype: graph.BF16}}}
	back := opCase{name: "bf16 to f32 70001", in: []tensor{{shape: []int{70001}, dtype: graph.BF16, fill: wide}}, out: []tensor{f32(70001)}}
	return append(list, even, back)
}

// castLimits sets numbers half way between those of the narrow formats, at their limits, and around float16's smallest.
func castLimits(in [][]float64, _ *rand.Rand) {
	i := 0
	for _, x := range []float64{0, 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1.1p-8, 2 - 0x1p-8, 65504, 65519, 65520, 65536, 1e30,
		math.MaxFloat32, 0x1p-14, 0x1.8p-15, 0x1p-24, 0x1.8p-25, 0x1p-25, 1e-30, 0x1p-126} {
		in[0][i], in[0][i+1] = x, -x
		i += 2
	}
}

// castBound is exact: rounding to nearest, which comes after it, has one result.
func castBound(_ *graph.Node, in, out [][]num) { copy(out[0], in[0]) }
