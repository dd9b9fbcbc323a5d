package reference

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

// y[r] = table[tokens[r]], NaN for a token that the table lacks.
func embedding(n *graph.Node, in, out [][]float64) {
	table, tokens, y := in[0], in[1], out[0]
	vocab, d := n.In[0].Shape()[0], n.In[0].Shape()[1]
	for r, tok := range tokens {
		for j := range d {
			if t := int(tok); t >= 0 && t < vocab {
				y[r*d+j] = table[t*d+j]
			} else {
				y[r*d+j] = math.NaN()
			}
		}
	}
}

// dtable[v] = addend[v] + sum over r with tokens[r] == v of dy[r].
func embeddingGrad(n *graph.Node, in, out [][]float64) {
	tokens, dy, addend, dtable := in[0], in[1], in[2], out[0]
	vocab, d := n.Out[0].Shape()[0], n.Out[0].Shape()[1]
	if addend == nil {
		clear(dtable)
	} else {
		copy(dtable, addend)
	}
	for r, tok := range tokens {
		if t := int(tok); t >= 0 && t < vocab {
			for j := range d {
				dtable[t*d+j] += dy[r*d+j]
			}
		}
	}
}
