package graph

import (
	"fmt"
	"slices"
)

// Builder records nodes. Its methods named after operators append a node and return what it computes.
// A Builder is not safe for concurrent use and is spent after Build.
type Builder struct {
	values  []*Value
	nodes   []*Node
	inputs  []*Value
	vars    []*Value
	outputs []Output
	names   map[string]int // how often a name was asked for
	scope   string
	built   bool

	again  map[*Value]bool // what the backward pass does not keep: see Recompute
	casts  map[castKey]*Value
	copies *copies // in a reverse walk, nil outside or where nothing is computed again
}

// Output is a value that the host may fetch after a run, under a name of its own.
type Output struct {
	Name  string
	Value *Value
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder { return &Builder{names: map[string]int{}} }

func misuse(format string, args ...any) {
	panic("graph: " + fmt.Sprintf(format, args...))
}

// Nodes are those recorded so far. They must not be modified.
func (b *Builder) Nodes() []*Node { return b.nodes }

// Scope puts name and a dot before the names of the temporaries that follow, until the returned function
// is called: defer b.Scope("layers.0")().
func (b *Builder) Scope(name string) (end func()) {
	old := b.scope
	b.scope += name + "."
	return func() { b.scope = old }
}

func (b *Builder) add(v *Value) *Value {
	if b.built {
		misuse("builder used after Build")
	}
	if len(v.shape) == 0 {
		misuse("%q has no dimensions", v.name)
	}
	for _, d := range v.shape {
		if d <= 0 {
			misuse("%q has shape %v", v.name, v.shape)
		}
	}
	b.names[v.name]++
	if n := b.names[v.name]; n > 1 {
		if v.kind != KindTemp && v.base == nil {
			misuse("the name %q is taken", v.name)
		}
		v.name = fmt.Sprintf("%s#%d", v.name, n)
	}
	v.id = len(b.values)
	v.shape = slices.Clone(v.shape)
	b.values = append(b.values, v)
	return v
}

// Temp makes a temporary. Operator methods call it; programs rarely need to.
func (b *Builder) Temp(name string, d DType, shape ...int) *Value {
	return b.add(&Value{name: b.scope + name, dtype: d, shape: shape})
}

// Input declares a value that the host feeds before each run.
func (b *Builder) Input(name string, d DType, shape ...int) *Value {
	v := b.add(&Value{name: name, dtype: d, shape: shape, kind: KindInput})
	b.inputs = append(b.inputs, v)
	return v
}

// Var declares a variable of the store.
func (b *Builder) Var(name string, d DType, shape ...int) *Value {
	v := b.add(&Value{name: name, dtype: d, shape: shape, kind: KindVar})
	b.vars = append(b.vars, v)
	return v
}

// View names a part of v that starts at an element offset, with a shape of its own. The start must be a
// multiple of ViewAlign bytes.
func (b *Builder) View(v *Value, elemOffset int, shape ...int) *Value {
	base, off := v.Base()
	off += elemOffset * v.dtype.Size()
	w := b.add(&Value{name: v.name + ".view", dtype: v.dtype, shape: shape, kind: v.kind, base: base, offset: off})
	if off%ViewAlign != 0 || off < 0 || off+w.Bytes() > base.Bytes() {
		misuse("view %v at element %d of %q %v", Shape(shape), elemOffset, v.name, v.shape)
	}
	return w
}

// Output lets the host fetch v under a name.
func (b *Builder) Output(name string, v *Value) {
	for _, o := range b.outputs {
		if o.Name == name {
			misuse("the output name %q is taken", name)
		}
	}
	b.outputs = append(b.outputs, Output{name, v})
}

// node appends a node; operator methods have checked shapes before.
func (b *Builder) node(op Op, in, out []*Value, attr any) {
	for _, v := range slices.Concat(in, out) {
		if v != nil && (v.id >= len(b.values) || b.values[v.id] != v) {
			misuse("%s: value %q is of another builder", op, v.name)
		}
	}
	for _, v := range out {
		if v != nil && v.kind == KindInput {
			misuse("%s writes the input %q", op, v.name)
		}
	}
	narrowIn, narrowOut := op.Narrow()
	checkFormats(op, in, narrowIn)
	checkFormats(op, out, narrowOut)
	if b.copies != nil {
		in = b.copies.operands(in)
	}
	b.nodes = append(b.nodes, &Node{Op: op, In: in, Out: out, Attr: attr})
}

// out gives the value that a node writes: dst if the caller named one, else a new temporary.
func (b *Builder) out(op Op, dst *Value, name string, d DType, shape Shape) *Value {
	if dst == nil {
		return b.Temp(name, d, shape...)
	}
	if dst.Elems() != shape.Elems() {
		misuse("%s into %q %s%v, want %v", op, dst.name, dst.dtype, dst.shape, shape)
	}
	return dst
}

// checkFormats lets operands be what the operator table says; those of I32 are the methods' to check.
func checkFormats(op Op, vs []*Value, narrow []bool) {
	for i, v := range vs {
		if v.narrow() && !narrow[i] {
			misuse("%s: %q is %s, want f32", op, v.name, v.dtype)
		}
	}
}

// wantFloat is for operands that may be narrow, before their format is given to an output.
func wantFloat(op Op, vs ...*Value) {
	for _, v := range vs {
		if v != nil && v.dtype == I32 {
			misuse("%s: %q is %s, want f32, bf16 or f16", op, v.name, v.dtype)
		}
	}
}

func wantElems(op Op, n int, vs ...*Value) {
	for _, v := range vs {
		if v != nil && v.Elems() != n {
			misuse("%s: %q has shape %v, want %d elements", op, v.name, v.shape, n)
		}
	}
}
