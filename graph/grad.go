package graph

import "fmt"

// gradRule emits the gradient nodes of n, given the gradients of its outputs (nil where none reached one).
type gradRule func(s *gradState, n *Node, dout []*Value)

// gradRules is indexed by Op. Where an operator has none, taking a gradient through it is an error, never a silent zero.
var gradRules = [NumOps]gradRule{
	OpEmbedding:    gradEmbedding,
	OpMatMul:       gradMatMul,
	OpRMSNorm:      gradNorm,
	OpLayerNorm:    gradNorm,
	OpQKNormRoPE:   gradQKNormRoPE,
	OpAttention:    gradAttention,
	OpSoftmax:      gradSoftmax,
	OpSwiGLU:       gradSwiGLU,
	OpGELU:         gradGELU,
	OpReLU:         gradReLU,
	OpSoftCap:      gradSoftCap,
	OpCrossEntropy: gradCrossEntropy,
	OpAdd:          gradAdd,
	OpSum:          gradSum,
	OpCast:         gradCast,
}

// gradState is one reverse walk.
type gradState struct {
	b     *Builder
	needs map[*Value]bool   // depends on a value that a gradient is asked for
	slots map[*Value]slot   // gradients so far
	into  map[*Value]*Value // accumulators named by the caller
	of    map[*Value]*Value // what a value of Builder.Stored was cast from
}

// slot holds the gradient of a value so far. It is owned when nothing else reads that storage, so that the next
// contribution may be added in place.
type slot struct {
	v     *Value
	owned bool
}

// Grad emits nodes for the gradient of y with respect to each of wrt, and returns them in that order. dy is the gradient of y itself and has its
// size: of a loss (1), 1 or a loss scale. A view and its base are different values here: nothing goes from one to the other. Where into has an accumulator for a value (usually a variable), its
// gradient is added to it in place and the accumulator is what is returned.
//
// Gradients of variables are float32, those of other values have their value's format.
//
// Values that [Builder.Recompute] names are computed again where gradients need them.
//
// It is an error if y does not depend on one of wrt, or depends on it through an operator that has no gradient.
func (b *Builder) Grad(y, dy *Value, wrt []*Value, into map[*Value]*Value) ([]*Value, error) {
	s := &gradState{b: b, needs: map[*Value]bool{}, slots: map[*Value]slot{}, into: into, of: map[*Value]*Value{}}
	for _, v := range wrt {
		s.needs[v] = true
	}
	for key, v := range b.casts {
		if !s.needs[v] {
			s.of[v] = key.v
		}
	}
	nodes := b.nodes
	for _, n := range nodes {
		for _, v := range n.In {
			if v != nil && s.needs[v] {
				for _, o := range n.Out {
					if o != nil {
						s.needs[o] = true
					}
				}
			}
		}
	}
	b.copies = b.newCopies()
	defer func() { b.copies = nil }()
	s.slots[y] = slot{v: dy}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		dout := make([]*Value, len(n.Out))
		reached := false
		for j, o := range n.Out {
			if sl, ok := s.slots[o]; ok && o != nil && s.needs[o] {
				dout[j], reached = sl.v, true
			}
		}
		if !reached {
			continue
		}
		rule := gradRules[n.Op]
		if rule == nil || dout[0] == nil {
			return nil, fmt.Errorf("graph: no gradient through %s", n)
		}
		for _, d := range dout[1:] {
			if d != nil {
				return nil, fmt.Errorf("graph: no gradient through the second output of %s", n)
			}
		}
		rule(s, n, dout)
	}
	out := make([]*Value, len(wrt))
	for i, v := range wrt {
		sl, ok := s.slots[v]
		if !ok {
			return nil, fmt.Errorf("graph: %q does not depend on %q: it has no gradient", y.name, v.name)
		}
		out[i] = sl.v
		if v.kind == KindVar && sl.v.dtype != F32 {
			out[i] = b.Cast(sl.v, F32)
		}
	}
	return out, nil
}

// wants tells whether v's gradient is of use; nil values have none.
func (s *gradState) wants(v *Value) bool { return v != nil && s.needs[v] }

// source is the value whose slot has v's gradient: what v was cast from, or v itself.
func (s *gradState) source(v *Value) *Value {
	if x := s.of[v]; x != nil {
		return x
	}
	return v
}

// temp makes the storage of v's gradient: float32 for a variable's, else in v's format.
func (s *gradState) temp(v *Value) *Value {
	v = s.source(v)
	d := v.dtype
	if v.kind == KindVar {
		d = F32
	}
	return s.b.add(&Value{name: "grad." + v.name, dtype: d, shape: v.shape})
}

// give adds a contribution by an operator that has an addend. emit must return the value it writes: dst, or a new one if dst is nil.
func (s *gradState) give(v *Value, emit func(addend, dst *Value) *Value) {
	if !s.wants(v) {
		return
	}
	v = s.source(v)
	sl, ok := s.slots[v]
	acc := s.into[v]
	switch {
	case !ok && acc != nil:
		s.slots[v] = slot{emit(acc, acc), true}
	case !ok:
		s.slots[v] = slot{emit(nil, nil), true}
	case sl.owned:
		emit(sl.v, sl.v)
	default:
		s.slots[v] = slot{emit(sl.v, nil), true}
	}
}

// giveInPlace is give for an operator whose addend can only be its output.
func (s *gradState) giveInPlace(v *Value, emit func(addend, dst *Value) *Value) {
	v = s.source(v)
	if sl, ok := s.slots[v]; ok && !sl.owned {
		s.giveOwned(v, emit(nil, nil))
		return
	}
	s.give(v, emit)
}

// giveFresh is give for an operator that has an addend and always writes a new value. It emits even where v's gradient is
// of no use, for the operator's other outputs.
func (s *gradState) giveFresh(v *Value, emit func(addend *Value) *Value) {
	v = s.source(v)
	sl, ok := s.slots[v]
	if !s.wants(v) || s.into[v] != nil {
		s.giveOwned(v, emit(nil))
		return
	}
	if !ok {
		sl.v = nil
	}
	s.slots[v] = slot{emit(sl.v), true}
}

// giveOwned adds a contribution g that nothing else reads.
func (s *gradState) giveOwned(v, g *Value) { s.merge(v, g, true) }

// pass adds a contribution g that others read too, such as the gradient that goes through an addition unchanged.
func (s *gradState) pass(v, g *Value) { s.merge(v, g, false) }

func (s *gradState) merge(v, g *Value, owned bool) {
	if !s.wants(v) {
		return
	}
	v = s.source(v)
	sl, ok := s.slots[v]
	acc := s.into[v]
	switch {
	case !ok && acc != nil:
		s.slots[v] = slot{s.b.Add(acc, g, acc), true}
	case !ok:
		s.slots[v] = slot{g, owned}
	case sl.owned:
		s.b.Add(sl.v, g, sl.v)
	case owned:
		s.slots[v] = slot{s.b.Add(sl.v, g, g), true}
	default:
		s.slots[v] = slot{s.b.Add(sl.v, g, s.temp(v)), true}
	}
}

// giveRows adds the gradient of a gain from its partial sums.
func (s *gradState) giveRows(gain, rows *Value) {
	if !s.wants(gain) {
		return
	}
	s.give(gain, func(addend, dst *Value) *Value {
		if dst == nil {
			dst = s.temp(gain)
		}
		return s.b.SumRows(rows, addend, dst)
	})
}
