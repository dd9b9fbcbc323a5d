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

// merger is how an operator's nodes are merged.
type merger struct {
	kernel, many string                             // of one tensor, and of many
	windows      func(n *graph.Node) []*graph.Value // the tensor's operands, a window each
	shared       func(n *graph.Node) []*graph.Value // what all nodes must have in common
	launch       func(d *deviceCaps, nodes []*graph.Node, at [][]int) (dispatch, []uint32)
}

var mergers = map[graph.Op]merger{
	graph.OpAdamW: {
		kernel: "adamw", many: "adamw_many",
		windows: func(n *graph.Node) []*graph.Value { return n.In[:4] },
		shared:  func(n *graph.Node) []*graph.Value { return n.In[4:6] },
		launch:  manyAdamW,
	},
	graph.OpSumSquares: {
		kernel: "sum_squares", many: "sum_squares_many",
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

// manySumSquares has rows of: the tensor's elements, where it and its partial sums begin in their windows.
func manySumSquares(d *deviceCaps, nodes []*graph.Node, at [][]int) (dispatch, []uint32) {
	var table []uint32
	lanes := 0
	for i, n := range nodes {
		elems := n.In[0].Elems()
		lanes = max(lanes, d.rowLanes(ceilDiv(elems, graph.SumSquaresParts)))
		table = append(table, uint32(elems), uint32(at[i][0]), uint32(at[i][1]))
	}
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

// anywhere stands for a place where all is in one buffer, where nothing has a place.
func anywhere(*graph.Value) interval { return interval{} }

// mergeLaunches puts a launch for many nodes before the launches that it stands for. place says where a value lives.
func mergeLaunches(d *deviceCaps, p *graph.Program, barrier func(node int) bool, launches []launch, place func(*graph.Value) interval,
	lookup func(string) (shader, bool)) ([]launch, error) {
	var list []launch
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
		list = append(append(list, l), launches[i:i+l.covers]...)
		i += l.covers
	}
	return list, nil
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
	m, ok := mergers[node.Op]
	if !ok {
		return mergedRun{}
	}
	run := mergedRun{merger: m}
	total := 0
	for i, l := range launches {
		n := p.Nodes()[l.node]
		alone := i+1 == len(launches) || launches[i+1].node != l.node // the node's only launch, as the one before was of another node
		if n.Op != node.Op || l.kernel != d.variant(m.kernel, lookup) || !alone || i > 0 && barrier(l.node) ||
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

// add widens the windows by a node's operands, if those can still be bound.
func (r *mergedRun) add(d *deviceCaps, operands []*graph.Value, place func(*graph.Value) interval) bool {
	wider := make([]interval, len(operands))
	starts := make([]int64, len(operands))
	for i, v := range operands {
		if v.DType() != graph.F32 || v.Kind() == graph.KindInput {
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
			at[i] = append(at[i], int(s-r.windows[k].from)/graph.F32.Size())
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
