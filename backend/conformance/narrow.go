package conformance

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/vktrain/vktrain/graph"
)

// manyElems is from where on a case is repeated in one narrow format only.
const manyElems = 20000

// allCases are an operator's cases, and with narrow operands: those that are watched closely, and one in two others, in bf16, in f16 and with each operand in
// a format of its own; the rest, and those with many elements, in one of these.
func (t opTest) allCases(op graph.Op) []opCase {
	list := t.cases()
	if op == graph.OpCast { // has all formats already
		return list
	}
	in, out := op.Narrow()
	narrow := append(in[:len(in):len(in)], out...)
	for i, c := range list[:len(list):len(list)] {
		count, elems := 0, 0
		for j, o := range append(c.in[:len(c.in):len(c.in)], c.out...) {
			if !o.absent() && narrow[j] {
				count++
				elems = max(elems, o.shape.Elems())
			}
		}
		if count == 0 || c.round != nil {
			continue
		}
		all := func(d graph.DType) func(int) graph.DType { return func(int) graph.DType { return d } }
		h := fnv.New64a()
		h.Write([]byte(c.name))
		draw := h.Sum64() >> 16
		forms := []opCase{c.inFormats(op, " bf16", all(graph.BF16)), c.inFormats(op, " f16", all(graph.F16))}
		if count > 1 {
			forms = append(forms, c.inFormats(op, "", func(operand int) graph.DType {
				return []graph.DType{graph.F32, graph.BF16, graph.F16}[draw>>(2*operand)%3]
			}))
		}
		if !c.special && i%2 == 1 || elems > manyElems {
			one := i / 2 % len(forms)
			forms = forms[one : one+1]
		}
		list = append(list, forms...)
	}
	return list
}

// inFormats is a case with a format for each operand that may be narrow, counted over inputs and outputs. A name is made of the formats if
// none is given.
func (c opCase) inFormats(op graph.Op, name string, format func(operand int) graph.DType) opCase {
	in, out := op.Narrow()
	set := func(ts []tensor, narrow []bool, first int) []tensor {
		list := append([]tensor{}, ts...)
		for i := range list {
			if narrow[i] && !list[i].absent() {
				list[i].dtype = format(first + i)
			}
		}
		return list
	}
	c.in, c.out = set(c.in, in, 0), set(c.out, out, len(c.in))
	for o, i := range c.inPlace {
		c.out[o].dtype = c.in[i].dtype
	}
	if name == "" {
		name = fmt.Sprintf(" %s to %s", formatNames(c.in), formatNames(c.out))
	}
	c.name += name
	return c
}

func formatNames(ts []tensor) string {
	var names []string
	for _, t := range ts {
		if !t.absent() {
			names = append(names, t.dtype.String())
		}
	}
	return strings.Join(names, ",")
}

// afterRounding is how far apart two results may be once both are rounded, where one is v and the other at most e from it: rounding keeps order.
func afterRounding(v, e float64, round func(float64) float64) float64 {
	r := round(v)
	return math.Max(round(v+e)-r, r-round(v-e))
}
