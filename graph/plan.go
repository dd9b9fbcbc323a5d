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
	offset  []int    // by value ID; bytes in the arena, -1 for what is not a temporary
	segment int      // PlanOptions.Segment
	home    []*Value // by value ID: the temporary whose place this one has, itself unless it was put in another's place
	life    []life   // by value ID; of a home with all that live there
	barrier []bool
}

// PlanOptions is what a plan depends on besides the program.
type PlanOptions struct {
	// InPlace gives an output the storage of an input that no later node reads, where Op.InPlace allows it. It is for backends whose kernels
	// read each row of those inputs before they write that row of the output.
	InPlace bool
	// Segment is the size in bytes of the pieces that the arena consists of, a multiple of ArenaAlign: no temporary lies in two of them, unless it is larger than
	// one. 0: the arena is one piece.
	Segment int
}

// life is the closed interval of barrier-free groups of nodes in which a temporary must keep its storage.
type life struct{ first, last int }

// ArenaAlign is the alignment in bytes of a temporary in the arena.
const ArenaAlign = ViewAlign

// NewPlan plans p with no options.
func NewPlan(p *Program) *Plan { return NewPlanWith(p, PlanOptions{}) }

// NewPlanWith plans p.
//
// Barriers come first: consecutive nodes that neither write what another one of them reads or writes form a group, and
// may run at the same time; but a large temporary begins in a group after the one in which another ends. A temporary then lives from the group that first writes it to the last that uses it, and
// shares its bytes only with temporaries whose groups are all others; so that reusing storage never needs a barrier that
// the data does not. Offsets are given to the largest first, each at the lowest place that is free in its lifetime.
func NewPlanWith(p *Program, o PlanOptions) *Plan {
	n := len(p.values)
	pl := &Plan{prog: p, segment: o.Segment, barrier: make([]bool, len(p.nodes)), offset: make([]int, n), home: slices.Clone(p.values), life: make([]life, n)}
	groups := pl.placeBarriers()
	pl.findLives(groups)
	if o.InPlace {
		pl.shareInPlace(groups)
	}
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

// spans are pieces of values' storage, by the base's ID: for each disjoint, and in order.
type spans map[int][]span

// find gives where in its list the first piece is that ends behind s's start.
func (l spans) find(s span) int {
	i, _ := slices.BinarySearchFunc(l[s.base.id], s.from+1, func(t span, at int) int { return cmp.Compare(t.to, at) })
	return i
}

func (l spans) overlap(s span) bool {
	list, i := l[s.base.id], l.find(s)
	return i < len(list) && s.overlaps(list[i])
}

func (l spans) add(s span) {
	list, i := l[s.base.id], l.find(s)
	j := i
	for ; j < len(list) && s.overlaps(list[j]); j++ {
		s.from, s.to = min(s.from, list[j].from), max(s.to, list[j].to)
	}
	l[s.base.id] = slices.Replace(list, i, j, s)
}

// largeBytes is the size from which a temporary's storage is worth a barrier: what a kernel does to so much memory takes far longer.
const largeBytes = 16 << 20

func large(v *Value) bool { return whole(v) && v.Bytes() >= largeBytes }

// placeBarriers sets a barrier before each node that conflicts with one of its group, and before one that begins a large temporary where another has
// ended in the group, so that it may have that one's storage. It returns each node's group.
func (pl *Plan) placeBarriers() []int {
	groups := make([]int, len(pl.prog.nodes))
	group := 0
	reads, writes := spans{}, spans{}
	uses := pl.findUses()
	ends := false // of a large temporary, in the group
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
		if slices.ContainsFunc(r, writes.overlap) || slices.ContainsFunc(w, writes.overlap) || slices.ContainsFunc(w, reads.overlap) ||
			ends && slices.ContainsFunc(n.Out, func(v *Value) bool { return large(v) && uses[v.id][0] == i }) {
			pl.barrier[i] = true
			group++
			clear(reads)
			clear(writes)
			ends = false
		}
		ends = ends || slices.ContainsFunc(n.In, func(v *Value) bool { return large(v) && uses[v.id][len(uses[v.id])-1] == i })
		for _, s := range r {
			reads.add(s)
		}
		for _, s := range w {
			writes.add(s)
		}
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

// shareInPlace puts each output that begins at a node in the place of an input that ends there, if the operator allows it and no other
// node of the group uses that input.
func (pl *Plan) shareInPlace(groups []int) {
	uses := pl.findUses()
	for i, n := range pl.prog.nodes {
		begins := func(v *Value) bool {
			return whole(v) && pl.home[v.id] == v && uses[v.id][0] == i
		}
		ends := func(v *Value) bool {
			if !whole(v) || pl.life[pl.home[v.id].id].last != groups[i] {
				return false
			}
			u := uses[v.id]
			return len(u) > 1 && u[len(u)-1] == i && groups[u[len(u)-2]] < groups[i] && countOf(n.In, v) == 1
		}
		var taken []*Value
		for _, place := range n.Op.InPlace() {
			from, to := n.In[place.In], n.Out[place.Out]
			if !ends(from) || !begins(to) || from.Bytes() != to.Bytes() || slices.Contains(taken, from) {
				continue
			}
			home := pl.home[from.id]
			pl.home[to.id] = home
			pl.life[home.id].last = pl.life[to.id].last
			taken = append(taken, from)
		}
	}
}

// findUses gives, by value ID, the nodes that use a value or a view of it, in order.
func (pl *Plan) findUses() [][]int {
	uses := make([][]int, len(pl.prog.values))
	for i, n := range pl.prog.nodes {
		for _, v := range slices.Concat(n.In, n.Out) {
			if v == nil {
				continue
			}
			base, _ := v.Base()
			if u := uses[base.id]; len(u) == 0 || u[len(u)-1] != i {
				uses[base.id] = append(u, i)
			}
		}
	}
	return uses
}

// whole tells a temporary that is no view.
func whole(v *Value) bool { return v != nil && v.kind == KindTemp && v.base == nil }

// countOf is how many of a list are v or views of it.
func countOf(list []*Value, v *Value) int {
	n := 0
	for _, w := range list {
		if w != nil {
			if base, _ := w.Base(); base == v {
				n++
			}
		}
	}
	return n
}

// moreOrders is how many other orders placeTemps tries, until the arena is within a hundredth of what is alive at once.
const moreOrders = 400

// placeTemps gives every temporary its offset. Where the largest-first order leaves gaps at the arena's peak, whatever lies on top there is placed before
// all others the next time, and the best of some such orders is kept.
func (pl *Plan) placeTemps() {
	var temps []*Value
	for i, v := range pl.prog.values {
		pl.offset[i] = -1
		if whole(v) && pl.home[i] == v {
			temps = append(temps, v)
		}
	}
	slices.SortStableFunc(temps, func(a, b *Value) int { return cmp.Compare(b.Bytes(), a.Bytes()) })
	pl.arena = pl.placeInOrder(temps)
	least := pl.LiveBytes()
	best := slices.Clone(pl.offset)
	for range moreOrders {
		if pl.arena <= least+least/100 {
			break
		}
		top := 0
		for i, v := range temps {
			if pl.offset[v.id]+alignUp(v.Bytes()) > pl.offset[temps[top].id]+alignUp(temps[top].Bytes()) {
				top = i
			}
		}
		v := temps[top]
		temps = slices.Insert(slices.Delete(temps, top, top+1), 0, v)
		if arena := pl.placeInOrder(temps); arena < pl.arena {
			pl.arena, best = arena, slices.Clone(pl.offset)
		}
	}
	pl.offset = best
	for i, home := range pl.home {
		if home.base == nil {
			pl.offset[i] = pl.offset[home.id]
		}
	}
}

// placeInOrder gives each temporary the lowest place that those before it leave free in its lifetime, and returns the arena's size.
func (pl *Plan) placeInOrder(temps []*Value) (arena int) {
	type place struct {
		life
		from, to int
	}
	var placed []place // by offset
	for _, v := range temps {
		l := pl.life[v.id]
		size := alignUp(v.Bytes())
		at := 0
		fit := func() {
			if pl.segment > 0 && size <= pl.segment && at/pl.segment < (at+size-1)/pl.segment {
				at = (at/pl.segment + 1) * pl.segment
			}
		}
		for _, w := range placed {
			if w.last < l.first || l.last < w.first {
				continue
			}
			if w.from-at >= size {
				break
			}
			at = max(at, w.to)
			fit()
		}
		pl.offset[v.id] = at
		arena = max(arena, at+size)
		i, _ := slices.BinarySearchFunc(placed, at, func(w place, at int) int { return cmp.Compare(w.from, at) })
		placed = slices.Insert(placed, i, place{l, at, at + size})
	}
	return arena
}

func alignUp(n int) int { return (n + ArenaAlign - 1) / ArenaAlign * ArenaAlign }

// Program that was planned.
func (pl *Plan) Program() *Program { return pl.prog }

// ArenaBytes is the size of the arena.
func (pl *Plan) ArenaBytes() int { return pl.arena }

// LiveBytes is the most that temporaries hold at one time: no arena for these barriers can be smaller.
func (pl *Plan) LiveBytes() int {
	change := make([]int, len(pl.prog.nodes)+2) // by group
	for i, v := range pl.prog.values {
		if pl.offset[i] >= 0 && pl.home[i] == v {
			change[pl.life[i].first] += alignUp(v.Bytes())
			change[pl.life[i].last+1] -= alignUp(v.Bytes())
		}
	}
	now, most := 0, 0
	for _, d := range change {
		now += d
		most = max(most, now)
	}
	return most
}

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
