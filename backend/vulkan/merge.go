package vulkan

import (
	"math"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// A model has many tensors, and most of them are small: a launch for each that AdamW updates would be mostly launches. Nodes of such an operator
// that stand in a row without a barrier between them become one launch over windows: ranges of memory in which all their tensors lie, and a
// table that says where.

const (
	mergeEach  = 1 << 22 // elements of a tensor; a larger one is worth a launch of its own
	mergeTotal = 1 << 25 // elements of a launch, so that submissions can still be cut between launches
)

// merger is how nodes of a kernel are merged.
type merger struct {
	kernel, many string                             // of one tensor, and of many
	format       graph.DType                        // of the first window; the others are float32
	windows      func(n *graph.Node) []*graph.Value // the tensor's operands, a window each
	shared       func(n *graph.Node) []*graph.Value // what all nodes must have in common
	launch       func(d *deviceCaps, nodes []*graph.Node, at [][]int) (dispatch, []uint32)
}

var mergers = []merger{
	{
		kernel: "adamw", many: "adamw_many", format: graph.F32,
		windows: func(n *graph.Node) []*graph.Value { return n.In[:4] },
		shared:  func(n *graph.Node) []*graph.Value { return n.In[4:6] },
		launch:  manyAdamW,
	},
	{
		kernel: "adamw_bf16", many: "adamw_bf16_many", format: graph.BF16,
		windows: func(n *graph.Node) []*graph.Value { return n.In[:4] },
		shared:  func(n *graph.Node) []*graph.Value { return n.In[4:7] },
		launch:  manyAdamWBF16,
	},
	{
		kernel: "sum_squares", many: "sum_squares_many", format: graph.F32,
		windows: func(n *graph.Node) []*graph.Value { return []*graph.Value{n.In[0], n.Out[0]} },
		shared:  func(*graph.Node) []*graph.Value { return nil },
		launch:  manySumSquares,
	},
}

type manyPush struct{ Tensors uint32 }

// manyAdamW has rows of: the tensor's first group, its elements, where p, m, v and g begin in their windows, its decay.
func manyAdamW(d *deviceCaps, nodes []*graph.Node, at [][]int) (dispatch, []uint32) {
	var table []uint32
	groups := 0
	for i, n := range nodes {
		elems := n.In[0].Elems()
		table = append(table, uint32(groups), uint32(elems))
		for _, a := range at[i] {
			table = append(table, uint32(a))
		}
		table = append(table, math.Float32bits(graph.AttrOf[graph.AdamWAttr](n).Decay))
		groups += ceilDiv(elems, 4*d.threads())
	}
	return dispatch{push: manyPush{uint32(len(nodes))}, groups: d.grid(groups)}, table
}

// manyAdamWBF16 has rows of: the tensor's first group, its elements, where p, m, v and g begin in their windows, in words; its decay, its number, and that of its
// first block of random words.
func manyAdamWBF16(d *deviceCaps, nodes []*graph.Node, at [][]int) (dispatch, []uint32) {
	var table []uint32
	groups := 0
	for i, n := range nodes {
		elems, attr := n.In[0].Elems(), graph.AttrOf[graph.AdamWAttr](n)
		table = append(table, uint32(groups), uint32(elems))
		for _, a := range at[i] {
			table = append(table, uint32(a))
		}
		table = append(table, math.Float32bits(attr.Decay), attr.Tensor, uint32(attr.First/adamWEach))
		groups += ceilDiv(elems, adamWEach*d.threads())
	}
	return dispatch{spec: []uint32{flag(nodes[0].In[6] != nil)}, push: manyPush{uint32(len(nodes))}, groups: d.grid(groups)}, table
}

// manySumSquares has rows of: the tensor's elements, where it and its partial sums begin in their windows.
func manySumSquares(d *deviceCaps, nodes []*graph.Node, at [][]int) (dispatch, []uint32) {
	var table []uint32
	for i, n := range nodes {
		elems := n.In[0].Elems()
		table = append(table, uint32(elems), uint32(at[i][0]), uint32(at[i][1]))
	}
	lanes := d.sumLanes(mergeEach)
	return dispatch{
		spec: []uint32{uint32(lanes)}, push: manyPush{uint32(len(nodes))},
		groups: d.grid(len(nodes) * graph.SumSquaresParts * lanes / d.threads()),
	}, table
}

// interval is a range of bytes in some buffer; which one is told by a number.
type interval struct {
	buffer   uint64
	from, to int64
}

func (a interval) overlaps(b interval) bool {
	return a.buffer == b.buffer && a.from < b.to && b.from < a.to
}

// hull is the range from the first of values to the last, all in one buffer.
func hull(values []*graph.Value, place func(*graph.Value) interval) interval {
	all := place(values[0])
	for _, v := range values[1:] {
		at := place(v)
		all.from, all.to = min(all.from, at.from), max(all.to, at.to)
	}
	return all
}

// anywhere stands for a place where all is in one buffer, where nothing has a place.
func anywhere(*graph.Value) interval { return interval{} }

// mergeLaunches puts a launch for many nodes before the launches that it stands for. place says where a value lives.
func mergeLaunches(d *deviceCaps, p *graph.Program, barrier func(node int) bool, launches []launch, place func(*graph.Value) interval,
	lookup func(string) (shader, bool)) ([]launch, error) {
	var list []launch
	launches = slices.Clone(launches)
	groups := barriersBefore(len(p.Nodes()), barrier)
	for i := 0; i < len(launches); {
		run := mergeRun(d, p, barrier, launches[i:], place, lookup)
		if run.nodes == nil {
			list = append(list, launches[i])
			i++
			continue
		}
		l, err := run.launch(d, lookup)
		if err != nil {
			return nil, err
		}
		l.node = launches[i].node
		next := i + l.covers
		group := func(o launch) bool { return groups[o.node] == groups[l.node] }
		l.barrier = launches[i].barrier || run.clashes(p, sinceBarrier(list, group), place)
		launches[i].barrier = false
		if run.clashes(p, untilBarrier(launches[next:], group), place) {
			launches[next].barrier = true
		}
		list = append(append(list, l), launches[i:next]...)
		i = next
	}
	return list, nil
}

// sinceBarrier is the end of a list that no barrier parts from what comes next, all in one group of the plan.
func sinceBarrier(list []launch, group func(launch) bool) []launch {
	from := len(list)
	for from > 0 && group(list[from-1]) {
		if from--; list[from].barrier {
			break
		}
	}
	return list[from:]
}

// untilBarrier is the beginning of a list that no barrier parts from what came before.
func untilBarrier(list []launch, group func(launch) bool) []launch {
	to := 0
	for to < len(list) && group(list[to]) && !list[to].barrier {
		to++
	}
	return list[:to]
}

// combine puts launches that stand for several before those: sequences of norms, and many small tensors.
func combine(d *deviceCaps, p *graph.Program, barrier func(node int) bool, launches []launch, place func(*graph.Value) interval,
	lookup func(string) (shader, bool)) ([]launch, error) {
	launches, err := fuseNorms(d, p, barrier, launches, place, lookup)
	if err != nil {
		return nil, err
	}
	return mergeLaunches(d, p, barrier, launches, place, lookup)
}

// mergedRun is nodes whose launches become one.
type mergedRun struct {
	merger
	nodes   []*graph.Node
	windows []interval
	starts  [][]int64 // of each node's operands, in bytes of their buffers
}

// mergeRun finds how many of the next launches can be one, none if fewer than two.
func mergeRun(d *deviceCaps, p *graph.Program, barrier func(int) bool, launches []launch, place func(*graph.Value) interval,
	lookup func(string) (shader, bool)) mergedRun {
	node := p.Nodes()[launches[0].node]
	which := slices.IndexFunc(mergers, func(m merger) bool { return launches[0].kernel == d.variant(m.kernel, lookup) })
	if which < 0 {
		return mergedRun{}
	}
	m := mergers[which]
	run := mergedRun{merger: m}
	total := 0
	for i, l := range launches {
		n := p.Nodes()[l.node]
		alone := i+1 == len(launches) || launches[i+1].node != l.node // the node's only launch, as the one before was of another node
		if l.kernel != launches[0].kernel || !alone || i > 0 && barrier(l.node) ||
			!slices.Equal(m.shared(n), m.shared(node)) {
			break
		}
		elems := n.In[0].Elems()
		if total += elems; elems > mergeEach || total > mergeTotal || !run.add(d, m.windows(n), place) {
			break
		}
		run.nodes = append(run.nodes, n)
	}
	if len(run.nodes) < 2 {
		return mergedRun{}
	}
	return run
}

// clashes tells whether one of some launches uses memory that a window lies over, and one of the two writes. It is no hazard, since the tensors are elsewhere, but
// the validation layer sees windows alone, and a barrier costs far less than the launches that are spared.
func (r *mergedRun) clashes(p *graph.Program, launches []launch, place func(*graph.Value) interval) bool {
	first := r.nodes[0]
	for _, l := range launches {
		n := p.Nodes()[l.node]
		meets := func(at interval, v *graph.Value) bool {
			for i, w := range r.windows {
				if at.overlaps(w) && (mayWrite(n, v) || mayWrite(first, r.merger.windows(first)[i])) {
					return true
				}
			}
			return false
		}
		if slices.ContainsFunc(l.bind, func(v *graph.Value) bool { return v != nil && meets(place(v), v) }) ||
			slices.ContainsFunc(l.windows, func(list []*graph.Value) bool { return meets(hull(list, place), list[0]) }) {
			return true
		}
	}
	return false
}

// mayWrite tells what a node's launches write: its outputs, and scratch memory.
func mayWrite(n *graph.Node, v *graph.Value) bool {
	base, _ := v.Base()
	return hasBase(n.Out, base) || !isOperand(n, base)
}

// add widens the windows by a node's operands, if those can still be bound.
func (r *mergedRun) add(d *deviceCaps, operands []*graph.Value, place func(*graph.Value) interval) bool {
	wider := make([]interval, len(operands))
	starts := make([]int64, len(operands))
	for i, v := range operands {
		format := graph.F32
		if i == 0 {
			format = r.format
		}
		if v.DType() != format || v.Kind() == graph.KindInput {
			return false
		}
		at := place(v)
		starts[i], wider[i] = at.from, at
		if r.windows != nil {
			w := r.windows[i]
			wider[i] = interval{w.buffer, min(w.from, at.from), max(w.to, at.to)}
			if w.buffer != at.buffer {
				return false
			}
		}
		if wider[i].to-wider[i].from > d.maxBindBytes {
			return false
		}
	}
	r.windows, r.starts = wider, append(r.starts, starts)
	return true
}

func (r *mergedRun) launch(d *deviceCaps, lookup func(string) (shader, bool)) (launch, error) {
	at := make([][]int, len(r.nodes))
	for i, starts := range r.starts {
		for k, s := range starts {
			at[i] = append(at[i], int(s-r.windows[k].from)/4)
		}
	}
	dis, table := r.merger.launch(d, r.nodes, at)
	dis.kernel = d.variant(r.many, lookup)
	shared := r.shared(r.nodes[0])
	dis.bind = slices.Concat(make([]*graph.Value, len(r.windows)), shared, []*graph.Value{nil})
	l, err := checkDispatch(d, dis, lookup)
	l.covers, l.table = len(r.nodes), table
	for k := range r.windows {
		var all []*graph.Value
		for _, n := range r.nodes {
			all = append(all, r.merger.windows(n)[k])
		}
		l.windows = append(l.windows, all)
	}
	return l, err
}
