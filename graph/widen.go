package graph

import "slices"

// Pair is a value and another that stands for it.
type Pair struct{ Of, Wide *Value }

// Widen gives, for a node with bf16 or f16 operands, the same node over float32 stand-ins: what a backend that has no kernel for those
// formats runs, once load's are cast to their stand-ins and before store's are rounded from theirs. The stand-ins are of no program; one that is an input
// and an output is one. Casts are of all formats already.
//
// A node without such operands, or a cast, is given back as it is.
func Widen(n *Node) (wide *Node, load, store []Pair) {
	if n.Op == OpCast || !HasNarrow(n) {
		return n, nil, nil
	}
	b := NewBuilder()
	wides := map[*Value]*Value{}
	standIn := func(vs []*Value, pairs *[]Pair) []*Value {
		list := make([]*Value, len(vs))
		for i, v := range vs {
			list[i] = v
			if !v.narrow() {
				continue
			}
			if wides[v] == nil {
				wides[v] = b.Temp(v.name+".wide", F32, v.shape...)
			}
			list[i] = wides[v]
			if p := (Pair{v, wides[v]}); !slices.Contains(*pairs, p) {
				*pairs = append(*pairs, p)
			}
		}
		return list
	}
	return &Node{Op: n.Op, In: standIn(n.In, &load), Out: standIn(n.Out, &store), Attr: n.Attr}, load, store
}

// HasNarrow tells whether an operand of a node is bf16 or f16.
func HasNarrow(n *Node) bool {
	return slices.ContainsFunc(n.In, (*Value).narrow) || slices.ContainsFunc(n.Out, (*Value).narrow)
}

func (v *Value) narrow() bool { return v != nil && (v.dtype == BF16 || v.dtype == F16) }
