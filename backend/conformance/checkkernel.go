package conformance

import (
	"errors"
	"fmt"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// quickElems and quickFLOPs bound the cases of CheckKernel.
const (
	quickElems = manyElems
	quickFLOPs = 600_000
)

// CheckKernel runs the smaller of an operator's cases on a backend, always with the same inputs, and returns the first failure: those in float32 for
// a node that is, and for another those in the formats that it has. Cases that the backend refuses are left out; it is an error if it refuses all.
func CheckKernel(b backend.Backend, n *graph.Node) error {
	formats := formatsOf(n)
	ran := false
	for _, c := range opTests[n.Op].allCases(n.Op) {
		own, small := c.formats(n.Op)
		if own&^formats != 0 || graph.HasNarrow(n) && own == 1<<graph.F32 || !small {
			continue
		}
		test := testCase{Case{n.Op.String(), c.name}, func(b backend.Backend, seed uint64) outcome { return c.run(b, n.Op, opTests[n.Op].bound, seed) }}
		res := test.result(b, Options{Seed: 1, AllowUnsupported: true})
		if res.Error != "" {
			return fmt.Errorf("%s, %s: %s", res.Group, res.Name, res.Error)
		}
		ran = ran || res.Unsupported == ""
	}
	if !ran {
		return errors.New("it takes no case of the conformance kit")
	}
	return nil
}

// formatsOf is a set of bits.
func formatsOf(n *graph.Node) (formats uint) {
	for _, list := range [][]*graph.Value{n.In, n.Out} {
		for _, v := range list {
			if v != nil {
				formats |= 1 << v.DType()
			}
		}
	}
	return formats
}

// formats is the set of a case's formats, and whether CheckKernel takes the case.
func (c *opCase) formats(op graph.Op) (formats uint, small bool) {
	g := graph.NewBuilder()
	elems := 0
	values := func(prefix string, ts []tensor) []*graph.Value {
		list := make([]*graph.Value, len(ts))
		for i, t := range ts {
			if !t.absent() {
				formats |= 1 << t.dtype
				elems = max(elems, t.shape.Elems())
				list[i] = g.Var(fmt.Sprint(prefix, i), t.dtype, t.shape...)
			}
		}
		return list
	}
	in := values("in", c.in)
	g.Append(op, in, values("out", c.out), c.attr)
	flops, _ := graph.Cost(g.Nodes()[0])
	return formats, elems <= quickElems && flops <= quickFLOPs
}
