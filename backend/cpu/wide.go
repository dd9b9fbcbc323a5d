package cpu

import (
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

var _ backend.Scratcher = (*Backend)(nil)

// compile gives a node's kernel: its operator's, between conversions where operands are bf16 or f16.
func (c *compiler) compile(n *graph.Node) kernel {
	wide, load, store := widen(n)
	if wide == n {
		return kernels[n.Op](c, n)
	}
	at := len(c.arena) - wideWords(load, store)
	c.wide = map[*graph.Value][]float32{}
	for _, p := range slices.Concat(load, store) {
		if c.wide[p.Wide] == nil {
			c.wide[p.Wide] = c.arena[at : at+p.Of.Elems() : at+p.Of.Elems()]
			at += alignedElems(p.Of)
		}
	}
	steps := c.conversions(load, false)
	steps = append(steps, kernels[n.Op](c, wide))
	steps = append(steps, c.conversions(store, true)...)
	c.wide = nil
	return kernel{whole: func() {
		for _, k := range steps {
			if k.whole != nil {
				k.whole()
				continue
			}
			c.pool.For(k.tasks, k.task)
		}
	}}
}

// conversions fill stand-ins from what they stand for, or the other way round.
func (c *compiler) conversions(pairs []graph.Pair, round bool) []kernel {
	var list []kernel
	for _, p := range pairs {
		of, wide := c.storage(p.Of), c.storage(p.Wide)
		load, store := loadOf(p.Of.DType(), of, p.Of.Elems()), storeOf(p.Of.DType(), of, p.Of.Elems())
		list = append(list, c.overElems(p.Of.Elems(), func(i, j int) {
			if round {
				store(wide[i:j], i)
			} else {
				load(wide[i:j], i)
			}
		}))
	}
	return list
}

// widen is graph.Widen, but for operators that have kernels for narrow operands.
func widen(n *graph.Node) (wide *graph.Node, load, store []graph.Pair) {
	if n.Op == graph.OpAdamW || n.Op == graph.OpAdamWStats {
		return n, nil, nil
	}
	return graph.Widen(n)
}

// wideWords is the room of a node's stand-ins.
func wideWords(load, store []graph.Pair) int {
	n, seen := 0, map[*graph.Value]bool{}
	for _, p := range slices.Concat(load, store) {
		if !seen[p.Wide] {
			seen[p.Wide] = true
			n += alignedElems(p.Of)
		}
	}
	return n
}

func alignedElems(v *graph.Value) int {
	const align = graph.ArenaAlign / 4
	return (v.Elems() + align - 1) / align * align
}

// ScratchBytes is the room for the float32 stand-ins of one node, behind the arena: nodes that have some run alone.
func (b *Backend) ScratchBytes(p *graph.Program) int64 {
	most := 0
	for _, n := range p.Nodes() {
		_, load, store := widen(n)
		most = max(most, wideWords(load, store))
	}
	return int64(4 * most)
}
