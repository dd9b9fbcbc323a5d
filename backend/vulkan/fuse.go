package vulkan

import (
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// normNextPush is the block of norm.comp with NEXT.
type normNextPush struct {
	RowCount, N        uint32
	InvN, Eps, NextEps float32
}

// fuseNorms puts a launch of two norms before theirs, where the second takes what the first gives: the norm of a module's output with the residual sum, and
// the norm of the next one's input. What is between them is written and not read again. place says where a value lives.
func fuseNorms(d *deviceCaps, p *graph.Program, barrier func(node int) bool, launches []launch, place func(*graph.Value) interval,
	lookup func(string) (shader, bool)) ([]launch, error) {
	var list []launch
	for i := 0; i < len(launches); i++ {
		if l := launches[i]; d.isNorm(p, launches, i, lookup) && i+1 < len(launches) && launches[i+1].node == l.node+1 && d.isNorm(p, launches, i+1, lookup) &&
			fusible(p, barrier, l.node, place) {
			fused, err := d.fusedNorms(p.Nodes()[l.node], p.Nodes()[l.node+1], lookup)
			if err != nil {
				return nil, err
			}
			fused.node, fused.covers = l.node, 2
			list = append(list, fused, l, launches[i+1])
			i++
			continue
		}
		list = append(list, launches[i])
	}
	return list, nil
}

func (d *deviceCaps) fusedNorms(first, second *graph.Node, lookup func(string) (shader, bool)) (launch, error) {
	x, gain, addend, y := first.In[0], first.In[1], first.In[2], first.Out[0]
	nextGain, z := second.In[1], second.Out[0]
	plain, err := lowerNorm(d, first)
	if err != nil {
		return launch{}, err
	}
	dis := plain[0]
	spec := append(dis.spec[:4:4], flag(second.Op == graph.OpLayerNorm), flag(nextGain != nil))
	dis.kernel, dis.spec = forFormats(first, "norm_next", spec, x, addend, y, z)
	dis.kernel = d.variant(dis.kernel, lookup)
	push := dis.push.(normPush)
	dis.push = normNextPush{push.RowCount, push.N, push.InvN, push.Eps, graph.AttrOf[graph.NormAttr](second).Eps}
	dis.bind = []*graph.Value{x, gain, addend, y, nextGain, z}
	return checkDispatch(d, dis, lookup)
}

// isNorm tells whether a launch is all of a norm's node.
func (d *deviceCaps) isNorm(p *graph.Program, launches []launch, i int, lookup func(string) (shader, bool)) bool {
	l := launches[i]
	op := p.Nodes()[l.node].Op
	kernel, _ := forFormats(p.Nodes()[l.node], "norm", nil)
	return (op == graph.OpRMSNorm || op == graph.OpLayerNorm) && l.kernel == d.variant(kernel, lookup) &&
		(i == 0 || launches[i-1].node != l.node) && (i+1 == len(launches) || launches[i+1].node != l.node)
}

// fusible tells whether the norm after node i may run with it: then what it writes must not be in the place of anything that is in use at the
// same time, unless each of its rows takes the place of the same row of what the first norm reads.
func fusible(p *graph.Program, barrier func(node int) bool, i int, place func(*graph.Value) interval) bool {
	first, second := p.Nodes()[i], p.Nodes()[i+1]
	if second.In[0] != first.Out[0] || second.In[2] != nil || graph.HasNarrow(first) != graph.HasNarrow(second) {
		return false
	}
	z := place(second.Out[0])
	from := i
	for from > 0 && !barrier(from) {
		from--
	}
	for k := from; k <= i; k++ {
		n := p.Nodes()[k]
		for _, v := range slices.Concat(n.In, n.Out) {
			if v == nil || v.Kind() == graph.KindInput {
				continue
			}
			at := place(v)
			rows := k == i && at == z && v.DType() == second.Out[0].DType() && (v == n.In[0] || v == n.In[2])
			if at.overlaps(z) && !rows {
				return false
			}
		}
	}
	return true
}
