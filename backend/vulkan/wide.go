package vulkan

import (
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// needsWide tells a node that lowerWide has to lower.
func (d *deviceCaps) needsWide(n *graph.Node) bool {
	takes := narrowKernels[n.Op]
	return graph.HasNarrow(n) && (takes == nil || !takes(d, n))
}

// lowerWide runs the float32 kernels of a node between casts, with scratch memory for the stand-ins of its narrow operands.
func (d *deviceCaps) lowerWide(n *graph.Node) ([]dispatch, error) {
	wide, load, store := graph.Widen(n)
	var list []dispatch
	add := func(n *graph.Node, barrier bool) error {
		part, err := lowerNode(d, n)
		if err == nil {
			part[0].barrier = part[0].barrier || barrier
			list = append(list, part...)
		}
		return err
	}
	cast := func(from, to *graph.Value) *graph.Node {
		return &graph.Node{Op: graph.OpCast, In: []*graph.Value{from}, Out: []*graph.Value{to}}
	}
	for _, p := range load {
		if err := add(cast(p.Of, p.Wide), false); err != nil {
			return nil, err
		}
	}
	if err := add(wide, len(load) > 0); err != nil {
		return nil, err
	}
	for i, p := range store {
		if err := add(cast(p.Wide, p.Of), i == 0); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// scratch is where launches have memory of their own: a value that a launch binds and that is no operand of its node.
type scratch struct {
	offset map[*graph.Value]int64
	bytes  int64
}

// placeScratch gives nodes that may run at the same time different places, and those with a barrier between them the same.
func placeScratch(plan *graph.Plan, launches []launch, segment int64) scratch {
	const align = graph.ArenaAlign
	s := scratch{offset: map[*graph.Value]int64{}}
	at, group, barriers := int64(0), 0, barriersBefore(len(plan.Program().Nodes()), plan.Barrier)
	for _, l := range launches {
		n := plan.Program().Nodes()[l.node]
		if g := barriers[l.node]; g != group {
			at, group = 0, g
		}
		for _, v := range l.bind {
			if v == nil {
				continue
			}
			v, _ = v.Base()
			if _, placed := s.offset[v]; placed || isOperand(n, v) {
				continue
			}
			size := (int64(v.Bytes()) + align - 1) / align * align
			if at/segment < (at+size-1)/segment { // allocations are no larger
				at = (at/segment + 1) * segment
			}
			s.offset[v] = at
			at += size
			s.bytes = max(s.bytes, at)
		}
	}
	return s
}

// isOperand tells the storage of a node's operands.
func isOperand(n *graph.Node, base *graph.Value) bool {
	return hasBase(n.In, base) || hasBase(n.Out, base)
}

func hasBase(list []*graph.Value, base *graph.Value) bool {
	return slices.ContainsFunc(list, func(v *graph.Value) bool {
		if v == nil {
			return false
		}
		of, _ := v.Base()
		return of == base
	})
}

// barriersBefore counts, for each of so many nodes, the barriers up to it.
func barriersBefore(nodes int, barrier func(node int) bool) []int {
	counts := make([]int, nodes)
	count := 0
	for i := range counts {
		if barrier(i) {
			count++
		}
		counts[i] = count
	}
	return counts
}
