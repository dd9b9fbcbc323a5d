package conformance

import (
	"math"
	"math/rand/v2"

	"github.com/vktrain/vktrain/graph"
)

func embeddingCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		vocab, d int
		tokens   []int
	}{{1, 1, []int{1}}, {7, 3, []int{5}}, {257, 6, []int{2, 31}}, {33, 65, []int{3, 2, 3}}, {5, 2, []int{66000}}} {
		tokens := i32(s.vocab, s.tokens...)
		c := opCase{name: dims(s.vocab, s.d) + " tokens " + dims(s.tokens...),
			in: []tensor{f32(s.vocab, s.d), tokens}, out: []tensor{f32(append(s.tokens, s.d)...)}}
		if s.vocab == 33 || s.vocab == 7 {
			c.special = true
			c.extra = []variant{{name: "tokens out of range", set: strayIndices(1)}}
		}
		list = append(list, c)
	}
	return list
}

// strayIndices puts indices that the table lacks among an operand's.
func strayIndices(operand int) func([][]float64, *rand.Rand) {
	return func(in [][]float64, r *rand.Rand) {
		x := in[operand]
		stray := []float64{graph.IgnoreTarget, -1, 33, math.MaxInt32, math.MinInt32}
		for i, at := range r.Perm(len(x))[:min(len(stray), len(x)-1)] {
			x[at] = stray[i]
		}
	}
}

func embeddingBound(n *graph.Node, in, out [][]num) {
	vocab, d := n.In[0].Shape()[0], n.In[0].Shape()[1]
	for r, tok := range in[1] {
		for j := range d {
			out[0][r*d+j] = exact(math.NaN())
			if t := int(tok.v); t >= 0 && t < vocab {
				out[0][r*d+j] = in[0][t*d+j]
			}
		}
	}
}

func embeddingGradCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		vocab, d, rows int
		mode           addendMode
	}{{1, 1, 1, noAddend}, {7, 3, 5, inPlace}, {33, 65, 17, noAddend}, {3, 6, 129, inPlace}, {257, 2, 63, noAddend}, {66000, 2, 7, inPlace},
		// More tokens and more columns than a workgroup has threads: a kernel goes over either in blocks.
		{5, 3, 700, noAddend}, {40, 2, 1031, inPlace}, {3, 601, 9, inPlace},
	} {
		c := opCase{name: dims(s.vocab, s.d) + " tokens " + dims(s.rows) + s.mode.String(),
			in: []tensor{i32(s.vocab, s.rows), f32(s.rows, s.d), {}}, out: []tensor{f32(s.vocab, s.d)}}
		c.addend(s.mode, 2)
		if s.vocab == 33 || s.vocab == 7 {
			c.special = true
			c.extra = []variant{{name: "tokens out of range", set: strayIndices(0)}, {name: "one token everywhere", set: func(in [][]float64, _ *rand.Rand) {
				for i := range in[0] {
					in[0][i] = 3
				}
			}}}
		}
		list = append(list, c)
	}
	return list
}

// A token that comes k times has a sum of k rows.
func embeddingGradBound(n *graph.Node, in, out [][]num) {
	vocab, d := n.Out[0].Shape()[0], n.Out[0].Shape()[1]
	terms := make([][]num, vocab*d)
	for r, tok := range in[0] {
		if t := int(tok.v); t >= 0 && t < vocab {
			for j := range d {
				terms[t*d+j] = append(terms[t*d+j], in[1][r*d+j])
			}
		}
	}
	for i, x := range terms {
		if in[2] != nil {
			x = append(x, in[2][i])
		}
		out[0][i] = sumNum(x...)
	}
}
