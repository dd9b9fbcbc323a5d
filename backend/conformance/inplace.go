package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// RunInPlace checks a backend that plans with graph.PlanOptions.InPlace: wherever the operator table lets an output take the place of an
// input, the outputs of every case must have the same bits as in places of their own.
func RunInPlace(t *testing.T, b backend.Backend) {
	t.Helper()
	seed := seedFromEnvironment(t)
	t.Logf("%s, %s=%d", b.Info(), SeedVariable, seed)
	for _, op := range graph.Ops() {
		if len(op.InPlace()) == 0 {
			continue
		}
		t.Run(op.String(), func(t *testing.T) {
			checked := 0
			for _, c := range opTests[op].allCases(op) {
				for _, places := range c.places(op) {
					checked++
					if err := c.compareInPlace(b, op, places, seed); err != nil {
						t.Errorf("%s: outputs in the place of inputs %v: %v", c.name, places, err)
					}
				}
			}
			if checked == 0 {
				t.Error("no case has operands that may share a place")
			}
		})
	}
}

// places lists the ways to put outputs in the places of inputs: each alone, and as many at once as a plan would.
func (c *opCase) places(op graph.Op) []map[int]int {
	var list []map[int]int
	all, taken := map[int]int{}, map[int]bool{}
	for _, p := range op.InPlace() {
		if _, has := c.inPlace[p.Out]; has || c.in[p.In].absent() || c.out[p.Out].absent() || c.in[p.In].shape.Elems() != c.out[p.Out].shape.Elems() ||
			c.in[p.In].dtype != c.out[p.Out].dtype {
			continue
		}
		list = append(list, map[int]int{p.Out: p.In})
		if _, has := all[p.Out]; !has && !taken[p.In] {
			all[p.Out], taken[p.In] = p.In, true
		}
	}
	if len(all) > 1 {
		list = append(list, all)
	}
	return list
}

// compareInPlace runs the case both ways with every variant of its inputs.
func (c *opCase) compareInPlace(b backend.Backend, op graph.Op, places map[int]int, seed uint64) (err error) {
	shared := *c
	shared.inPlace = maps.Clone(places)
	maps.Copy(shared.inPlace, c.inPlace)
	var runs [2]*opRun
	for i, oc := range []*opCase{c, &shared} {
		if runs[i], err = oc.compile(b, op, nil); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, runs[i].close()) }()
	}
	for _, v := range c.variants(runs[0].in, seed) {
		var after [2]map[string][]byte
		for i, r := range runs {
			if after[i], err = r.submit(r.storage(v.data)); err != nil {
				return err
			}
		}
		for i, o := range runs[0].out {
			if o.absent() {
				continue
			}
			p := runs[1].out[i]
			if !bytes.Equal(o.body(after[0][o.name]), p.body(after[1][p.name])) {
				return fmt.Errorf("%s: %s has other bits", v.name, o.what)
			}
		}
	}
	return nil
}
