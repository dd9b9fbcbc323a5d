package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Plan places a program's temporaries in one arena and its barriers before the nodes that need them. It is the same for
// every backend and depends on the program alone.
type Plan struct {
	prog    *Program
	arena   int
	offset  []int // by value ID; bytes in the arena, -1 for what is not a temporary
	life    []life
	barrier []bool
}

// life is the closed interval of barrier-free groups of nodes in which a temporary must keep its storage.
type life struct{ first, last int }

// ArenaAlign is the alignment in bytes of a temporary in the arena.
const ArenaAlign = ViewAlign

// NewPlan plans p.
//
// Barriers come first: consecutive nodes that neither write what another one of them reads or writes form a group, and
// may run at the same time. A temporary then lives from the group that first writes it to the last that uses it, and
// shares its bytes only with temporaries whose groups are all others; so that reusing storage never needs a barrier that
// the data does not. Offsets are given to the largest first, each at the lowest place that is free in its lifetime.
func NewPlan(p *Program) *Plan {
	pl := &Plan{prog: p, barrier: make([]bool, len(p.nodes)), offset: make([]int, len(p.values)), life: make([]life, len(p.values))}
	groups := pl.placeBarriers()
	pl.findLives(groups)
	pl.placeTemps()
	return pl
}

// span is a piece of a base value's storage.
type span struct {
	base     *Value
	from, to int
}

func spanOf(v *Value) span {
	base, off := v.Base()
	return span{base, off, off + (v.Bytes()+3)/4*4}
}

func (s span) overlaps(t span) bool { return s.base == t.base && s.from < t.to && t.from < s.to }

func overlapsAny(s span, list []span) bool {
	return slices.ContainsFunc(list, s.overlaps)
}

// placeBarriers sets a barrier before each node that conflicts with one of its group, and returns each node's group.
func (pl *Plan) placeBarriers() []int {
	groups := make([]int, len(pl.prog.nodes))
	group := 0
	var reads, writes []span
	for i, n := range pl.prog.nodes {
		var r, w []span
		for _, v := range n.In {
			if v != nil && v.kind != KindInput {
				r = append(r, spanOf(v))
			}
		}
		for _, v := range n.Out {
			if v != nil {
				w = append(w, spanOf(v))
			}
		}
		conflict := slices.ContainsFunc(r, func(s span) bool { return overlapsAny(s, writes) }) ||
			slices.ContainsFunc(w, func(s span) bool { return overlapsAny(s, writes) || overlapsAny(s, reads) })
		if conflict {
			pl.barrier[i] = true
			group++
			reads, writes = reads[:0], writes[:0]
		}
		reads, writes = append(reads, r...), append(writes, w...)
		groups[i] = group
	}
	return groups
}

func (pl *Plan) findLives(groups []int) {
	for i := range pl.life {
		pl.life[i] = life{-1, -1}
	}
	touch := func(v *Value, g int) {
		if v == nil {
			return
		}
		base, _ := v.Base()
		l := &pl.life[base.id]
		if l.first < 0 {
			l.first = g
		}
		l.last = max(l.last, g)
	}
	for i, n := range pl.prog.nodes {
		for _, v := range n.In {
			touch(v, groups[i])
		}
		for _, v := range n.Out {
			touch(v, groups[i])
		}
	}
	for _, o := range pl.prog.outputs {
		touch(o.Value, len(groups)) // read by the host after the last node
	}
}

func (pl *Plan) placeTemps() {
	var temps []*Value
	for i, v := range pl.prog.values {
		pl.offset[i] = -1
		if v.kind == KindTemp && v.base == nil {
			temps = append(temps, v)
		}
	}
	slices.SortStableFunc(temps, func(a, b *Value) int { return cmp.Compare(b.Bytes(), a.Bytes()) })
	var placed []*Value // by offset
	for _, v := range temps {
		l := pl.life[v.id]
		size := alignUp(v.Bytes())
		at := 0
		for _, w := range placed {
			lw := pl.life[w.id]
			if lw.last < l.first || l.last < lw.first {
				continue
			}
			if pl.offset[w.id]-at >= size {
				break
			}
			at = max(at, pl.offset[w.id]+alignUp(w.Bytes()))
		}
		pl.offset[v.id] = at
		pl.arena = max(pl.arena, at+size)
		i, _ := slices.BinarySearchFunc(placed, at, func(w *Value, at int) int { return cmp.Compare(pl.offset[w.id], at) })
		placed = slices.Insert(placed, i, v)
	}
}

func alignUp(n int) int { return (n + ArenaAlign - 1) / ArenaAlign * ArenaAlign }

// Program that was planned.
func (pl *Plan) Program() *Program { return pl.prog }

// ArenaBytes is the size of the arena.
func (pl *Plan) ArenaBytes() int { return pl.arena }

// Offset is the place in the arena of a temporary or of a view of one, in bytes.
func (pl *Plan) Offset(v *Value) int {
	base, off := v.Base()
	at := pl.offset[base.id]
	if at < 0 {
		misuse("%q is not in the arena", v.name)
	}
	return at + off
}

// Barrier tells whether all earlier nodes must have ended before node i begins.
func (pl *Plan) Barrier(i int) bool { return pl.barrier[i] }

// String prints the arena and the nodes with their barriers.
func (pl *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan %s: arena %d bytes\n", pl.prog.name, pl.arena)
	for i, v := range pl.prog.values {
		if pl.offset[i] >= 0 {
			fmt.Fprintf(&b, "%10d +%d %%%s groups %d-%d\n", pl.offset[i], v.Bytes(), v.name, pl.life[i].first, pl.life[i].last)
		}
	}
	for i, n := range pl.prog.nodes {
		if pl.barrier[i] {
			b.WriteString("barrier\n")
		}
		fmt.Fprintf(&b, "%s\n", n)
	}
	return b.String()
}
