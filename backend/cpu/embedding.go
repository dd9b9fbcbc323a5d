package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

func embedding(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	table, tokens := in[0], int32s(in[1])
	vocab, dim := n.In[0].Shape()[0], n.In[0].Shape()[1]
	return c.overRows(len(tokens), dim, func(_ *workerScratch, from, to int) {
		for r := from; r < to; r++ {
			y := out[0][r*dim : (r+1)*dim]
			t := int(tokens[r])
			if t < 0 || t >= vocab {
				for i := range y {
					y[i] = float32(math.NaN())
				}
				continue
			}
			copy(y, table[t*dim:(t+1)*dim])
		}
	})
}

// embeddingGrad gives each task some rows of the table: it clears them and goes over the tokens, so that every element is summed by one
// task, in the order of the tokens.
func embeddingGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	tokens, dy, table := int32s(in[0]), in[1], out[0]
	vocab, dim := n.Out[0].Shape()[0], n.Out[0].Shape()[1]
	const parts = 32 // each reads all tokens
	span := (vocab + parts - 1) / parts
	return parallel((vocab+span-1)/span, func(_, i int) {
		from, to := i*span, min(vocab, (i+1)*span)
		if in[2] == nil {
			clear(table[from*dim : to*dim])
		}
		for r, t := range tokens {
			if int(t) >= from && int(t) < to {
				y := table[int(t)*dim : (int(t)+1)*dim]
				simd.Add(y, y, dy[r*dim:(r+1)*dim])
			}
		}
	})
}
