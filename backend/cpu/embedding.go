package cpu

import (
	"math"

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

// embeddingGrad gives each task some columns of the table: every element is summed by one task, in the order of the rows.
func embeddingGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	tokens, dy, table := int32s(in[0]), in[1], out[0]
	vocab, dim := n.Out[0].Shape()[0], n.Out[0].Shape()[1]
	const width = 16 // a cache line
	zero := c.overElems(len(table), func(from, to int) { clear(table[from:to]) })
	gather := parallel((dim+width-1)/width, func(_, i int) {
		from, to := i*width, min(dim, (i+1)*width)
		for r, t := range tokens {
			if t < 0 || int(t) >= vocab {
				continue
			}
			dst, src := table[int(t)*dim+from:int(t)*dim+to], dy[r*dim+from:r*dim+to]
			for j, v := range src {
				dst[j] += v
			}
		}
	})
	if in[2] != nil {
		return gather
	}
	return kernel{whole: func() {
		c.pool.For(zero.tasks, zero.task)
		c.pool.For(gather.tasks, gather.task)
	}}
}
