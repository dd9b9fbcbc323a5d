package graph

// Part is a piece of v that belongs to no program, for backends that lower a node over parts of its operands: shape elements from an element on. Its base is
// v's, and its offset need not be a multiple of ViewAlign.
func Part(v *Value, from int, shape ...int) *Value {
	base, offset := v.Base()
	p := &Value{id: -1, name: v.name, dtype: v.dtype, shape: Shape(shape), kind: v.kind, base: base, offset: offset + from*v.dtype.Size()}
	if from < 0 || p.offset+p.Bytes() > offset+v.Bytes() {
		misuse("part %v at element %d of %q %v", p.shape, from, v.name, v.shape)
	}
	return p
}

// Spare is a value of no program: scratch memory of a backend.
func Spare(name string, d DType, shape ...int) *Value {
	return &Value{id: -1, name: name, dtype: d, shape: Shape(shape)}
}
