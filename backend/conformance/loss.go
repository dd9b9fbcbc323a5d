package conformance

import (
	"math"
	"math/rand/v2"

	"github.com/vktrain/vktrain/graph"
)

var crossEntropyShapes = []struct {
	shape []int // of the targets
	vocab int
	zLoss float32
}{{[]int{1}, 1, 0}, {[]int{3}, 2, 0.1}, {[]int{5}, 33, 0}, {[]int{2, 7}, 33, 1e-2}, {[]int{17}, 257, 0}, {[]int{3}, 1031, 1e-4}, {[]int{66000}, 2, 0}}

// lossCases makes the cases from the logits and targets on; fit adds the gradient's operands.
func lossCases(fit func(c *opCase)) []opCase {
	var list []opCase
	for _, s := range crossEntropyShapes {
		rows := f32(s.shape...)
		c := opCase{name: dims(s.shape...) + " of " + dims(s.vocab), attr: graph.CrossEntropyAttr{ZLoss: s.zLoss},
			in: []tensor{f32(append(s.shape, s.vocab)...).with(normal(0, 2)), i32(s.vocab, s.shape...)}, out: []tensor{rows, rows}}
		if s.zLoss != 0 {
			c.name += " z-loss"
		}
		if s.vocab == 33 {
			c.special = true
			c.extra = lossExtremes(s.vocab)
		}
		fit(&c)
		list = append(list, c)
	}
	return list
}

func lossExtremes(vocab int) []variant {
	return []variant{
		{name: "ignored targets", set: func(in [][]float64, r *rand.Rand) {
			strayIndices(1)(in, r)
			in[1][0] = graph.IgnoreTarget
		}},
		{name: "NaN in an ignored row", set: func(in [][]float64, _ *rand.Rand) { in[1][1] = graph.IgnoreTarget },
			nan: func(in [][]float64) { in[0][vocab+vocab/2] = math.NaN() }},
		{name: "logits of 1e4", set: scaleBy(1e4, 0)},
		{name: "equal logits", set: scaleBy(0, 0)},
		{name: "logits of -1e4", set: func(in [][]float64, _ *rand.Rand) {
			for i := range in[0] {
				in[0][i] -= 1e4
			}
		}},
	}
}

func crossEntropyCases() []opCase { return lossCases(func(*opCase) {}) }

func crossEntropyBound(n *graph.Node, in, out [][]num) {
	vocab, z := n.In[0].Shape().Last(), exact(float64(graph.AttrOf[graph.CrossEntropyAttr](n).ZLoss))
	for r, target := range in[1] {
		x := in[0][r*vocab : (r+1)*vocab]
		_, lse := softmaxNum(x)
		out[1][r], out[0][r] = lse, exact(0)
		if t := int(target.v); t >= 0 && t < vocab {
			out[0][r] = lse.sub(x[t])
			if z.v != 0 {
				out[0][r] = out[0][r].add(z.mul(lse).mul(lse))
			}
		}
	}
}

func crossEntropyGradCases() []opCase {
	return lossCases(func(c *opCase) {
		logits, targets, rows := c.in[0], c.in[1], c.out[0]
		attr := c.attr
		c.in, c.out = []tensor{logits, targets, rows.with(derived), rows}, []tensor{logits}
		c.derive = func(in [][]float64) {
			out := runReference(graph.OpCrossEntropy, attr, []tensor{logits, targets}, []tensor{rows, rows}, in[:2])
			copy(in[2], out[1])
		}
	})
}

func crossEntropyGradBound(n *graph.Node, in, out [][]num) {
	logits, lse, dlosses := in[0], in[2], in[3]
	vocab, z := n.In[0].Shape().Last(), 2*float64(graph.AttrOf[graph.CrossEntropyAttr](n).ZLoss)
	for r, target := range in[1] {
		t := int(target.v)
		for j := range vocab {
			at := r*vocab + j
			if t < 0 || t >= vocab {
				out[0][at] = exact(0)
				continue
			}
			d := logits[at].sub(lse[r]).exp()
			if z != 0 {
				d = d.mul(exact(1).add(exact(z).mul(lse[r])))
			}
			if j == t {
				d = d.sub(exact(1))
			}
			out[0][at] = d.mul(dlosses[r])
		}
	}
}

func sumCases() []opCase {
	scale := f32(1).with(uniform(0.1, 2))
	one := f32(1)
	return []opCase{
		{name: "1", in: []tensor{one, {}}, out: []tensor{one}},
		{name: "1 scale", in: []tensor{one, scale}, out: []tensor{one}},
		{name: "7x37", in: []tensor{f32(7, 37), {}}, out: []tensor{one}, special: true},
		{name: "3x5x17 scale", in: []tensor{f32(3, 5, 17), scale}, out: []tensor{one}, special: true,
			extra: []variant{{name: "1e30", set: scaleBy(1e30, 0)}, {name: "a scale of 0", set: scaleBy(0, 1)}}},
		{name: "4099 scale", in: []tensor{f32(4099), scale}, out: []tensor{one}, extra: onlyEnds(0)},
		{name: "70001", in: []tensor{f32(70001), {}}, out: []tensor{one}, extra: onlyEnds(0)},
	}
}

// onlyEnds leaves only an end of a long sum, whose bound would hide a missing term otherwise.
func onlyEnds(operand int) []variant {
	return []variant{
		{name: "only the first", set: func(in [][]float64, _ *rand.Rand) { clear(in[operand][1:]) }},
		{name: "only the last", set: func(in [][]float64, _ *rand.Rand) { clear(in[operand][:len(in[operand])-1]) }},
	}
}

func sumBound(_ *graph.Node, in, out [][]num) {
	out[0][0] = sumNum(in[0]...)
	if in[1] != nil {
		out[0][0] = out[0][0].mul(in[1][0])
	}
}

func broadcastCases() []opCase {
	one := f32(1)
	return []opCase{
		{name: "1", in: []tensor{one, {}}, out: []tensor{one}},
		{name: "3x5x17", in: []tensor{one, {}}, out: []tensor{f32(3, 5, 17)}, special: true},
		{name: "257 scale", in: []tensor{one, one}, out: []tensor{f32(257)}, special: true},
		{name: "70001 scale", in: []tensor{one, one}, out: []tensor{f32(70001)}},
	}
}

func broadcastBound(_ *graph.Node, in, out [][]num) {
	y := in[0][0]
	if in[1] != nil {
		y = y.mul(in[1][0])
	}
	for i := range out[0] {
		out[0][i] = y
	}
}

func sumRowsCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		shape []int
		mode  addendMode
	}{{[]int{1, 1}, noAddend}, {[]int{3, 7}, separate}, {[]int{62, 33}, inPlace}, {[]int{17, 129}, noAddend}, {[]int{64, 257}, inPlace}, {[]int{2, 2, 3, 31}, separate}} {
		c := opCase{name: dims(s.shape...) + s.mode.String(), in: []tensor{f32(s.shape...), {}}, out: []tensor{f32(s.shape[len(s.shape)-1])},
			special: s.shape[0] == 3 || s.shape[0] == 62}
		c.addend(s.mode, 1)
		list = append(list, c)
	}
	return list
}

func sumRowsBound(n *graph.Node, in, out [][]num) {
	d := len(out[0])
	for i := range d {
		var terms []num
		if in[1] != nil {
			terms = append(terms, in[1][i])
		}
		for r := range n.In[0].Shape().Rows() {
			terms = append(terms, in[0][r*d+i])
		}
		out[0][i] = sumNum(terms...)
	}
}

func fillCases() []opCase {
	return []opCase{
		{name: "1", attr: graph.FillAttr{Value: -2.5}, out: []tensor{f32(1)}},
		{name: "3x5x17", attr: graph.FillAttr{}, out: []tensor{f32(3, 5, 17)}},
		{name: "70001", attr: graph.FillAttr{Value: 0.1}, out: []tensor{f32(70001)}},
	}
}

func fillBound(n *graph.Node, _, out [][]num) {
	for i := range out[0] {
		out[0][i] = exact(float64(graph.AttrOf[graph.FillAttr](n).Value))
	}
}
