package graph

// Recompute says that the backward pass does not keep v, which one node of the forward pass writes: gradient nodes that read it get a copy
// instead, made just before by the same operator from the same inputs, so that gradients keep their bits and the storage of v is free from
// its last use in the forward pass on. Inputs that are marked too are copied first, back to values that are kept. A copy is made once and
// lives to the last gradient node that reads it.
func (b *Builder) Recompute(v ...*Value) {
	for _, v := range v {
		if !whole(v) {
			misuse("recompute of %q, which is no temporary", v.name)
		}
		if b.again == nil {
			b.again = map[*Value]bool{}
		}
		b.again[v] = true
	}
}

// copies are what a reverse walk has computed again.
type copies struct {
	b      *Builder
	writer map[*Value]*Node // of each base; nil where there are several
	of     map[*Value]*Value
}

func (b *Builder) newCopies() *copies {
	if b.again == nil {
		return nil
	}
	c := &copies{b: b, writer: map[*Value]*Node{}, of: map[*Value]*Value{}}
	for _, n := range b.nodes {
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			base, _ := v.Base()
			if _, written := c.writer[base]; written {
				c.writer[base] = nil
				continue
			}
			c.writer[base] = n
		}
	}
	return c
}

// operands gives a gradient node's inputs, with copies in the place of values that are not kept.
func (c *copies) operands(in []*Value) []*Value {
	list := make([]*Value, len(in))
	for i, v := range in {
		list[i] = c.value(v)
	}
	return list
}

func (c *copies) value(v *Value) *Value {
	if v == nil || !c.b.again[v] {
		return v
	}
	if w := c.of[v]; w != nil {
		return w
	}
	n := c.writer[v]
	if n == nil {
		misuse("recompute of %q, which is not written by one node alone", v.name)
	}
	for _, x := range n.In {
		if x == nil {
			continue
		}
		base, _ := x.Base()
		if w, written := c.writer[base]; written && (w == nil || base.kind == KindVar) {
			misuse("recompute of %q: its input %q is overwritten", v.name, x.name)
		}
	}
	in := c.operands(n.In)
	out := make([]*Value, len(n.Out))
	for i, o := range n.Out {
		if o != nil {
			out[i] = c.b.add(&Value{name: "again." + o.name, dtype: o.dtype, shape: o.shape})
			c.of[o] = out[i]
		}
	}
	c.b.nodes = append(c.b.nodes, &Node{Op: n.Op, In: in, Out: out, Attr: n.Attr})
	return c.of[v]
}
