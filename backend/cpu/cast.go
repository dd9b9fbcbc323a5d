package cpu

import (
	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

// cast goes through float32, in pieces that stay in the cache, where neither format is.
func cast(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	from, to := n.In[0].DType(), n.Out[0].DType()
	elems := n.Out[0].Elems()
	load, store := loadOf(from, in[0], elems), storeOf(to, out[0], elems)
	switch {
	case from == graph.F32:
		return c.overElems(elems, func(i, j int) { store(in[0][i:j], i) })
	case to == graph.F32:
		return c.overElems(elems, func(i, j int) { load(out[0][i:j], i) })
	}
	c.scratch.grow(taskElems)
	return c.overRows(elems, 1, func(w *workerScratch, i, j int) {
		x := w.f32[0][:j-i]
		load(x, i)
		store(x, i)
	})
}

// loadOf gives what reads elements from i on of memory in a format.
func loadOf(d graph.DType, memory []float32, elems int) func(y []float32, i int) {
	h := uint16s(memory, elems)
	if d == graph.BF16 {
		return func(y []float32, i int) { simd.FromBF16(y, h[i:i+len(y)]) }
	}
	return func(y []float32, i int) { simd.FromF16(y, h[i:i+len(y)]) }
}

// storeOf gives what writes elements from i on of memory in a format.
func storeOf(d graph.DType, memory []float32, elems int) func(x []float32, i int) {
	h := uint16s(memory, elems)
	if d == graph.BF16 {
		return func(x []float32, i int) { simd.ToBF16(h[i:i+len(x)], x) }
	}
	return func(x []float32, i int) { simd.ToF16(h[i:i+len(x)], x) }
}
