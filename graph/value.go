package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DType is the format of a tensor's elements.
type DType uint8

const (
	F32  DType = iota // IEEE 754 binary32
	BF16              // the upper half of a binary32, rounded to nearest even
	F16               // IEEE 754 binary16
	I32               // signed 32-bit integer: tokens, targets, keys
)

var dtypes = [...]struct {
	name string
	size int
}{F32: {"f32", 4}, BF16: {"bf16", 2}, F16: {"f16", 2}, I32: {"i32", 4}}

// String gives the name: f32, bf16, f16 or i32.
func (d DType) String() string { return dtypes[d].name }

// Size is an element's size in bytes.
func (d DType) Size() int { return dtypes[d].size }

// Shape is a tensor's dimensions, outermost first. Tensors are dense and row-major.
type Shape []int

// Elems is the number of elements.
func (s Shape) Elems() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Last is the innermost dimension, the length of a row.
func (s Shape) Last() int { return s[len(s)-1] }

// Rows is the number of rows: the product of all dimensions but the last.
func (s Shape) Rows() int { return s[:len(s)-1].Elems() }

// String prints as [2 3 4].
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(d))
	}
	b.WriteByte(']')
	return b.String()
}

// Kind says where a value lives.
type Kind uint8

const (
	KindTemp  Kind = iota // the arena; written before it is read
	KindInput             // fed from the host before each run
	KindVar               // a backend.Store; lives across runs and programs
)

// ViewAlign is the alignment in bytes of a view's start in its base: every device can bind there.
const ViewAlign = 256

// Value is a piece of storage: see the package comment. Values belong to one Builder and its Program.
type Value struct {
	id    int
	name  string
	dtype DType
	shape Shape
	kind  Kind

	base   *Value // the value this one is a view of, nil if none; never itself a view
	offset int    // bytes from the base's start
}

// ID is unique in the program and dense from 0, in order of creation.
func (v *Value) ID() int { return v.id }

// Name is unique in the program. Variables and inputs are addressed by it.
func (v *Value) Name() string { return v.name }

// DType is the format of the elements.
func (v *Value) DType() DType { return v.dtype }

// Shape must not be modified.
func (v *Value) Shape() Shape { return v.shape }

// Kind of a view is its base's.
func (v *Value) Kind() Kind { return v.kind }

// Elems is the number of elements.
func (v *Value) Elems() int { return v.shape.Elems() }

// Bytes is the tensor's size. Its storage is Bytes rounded up to a multiple of 4, and a kernel may write
// the padding: devices without 16-bit storage write whole words.
func (v *Value) Bytes() int { return v.Elems() * v.dtype.Size() }

// Base is the value that owns the storage and the offset in bytes there: v itself and 0 unless v is a view.
func (v *Value) Base() (*Value, int) {
	if v.base == nil {
		return v, 0
	}
	return v.base, v.offset
}

// IsView tells whether v is a part of another value.
func (v *Value) IsView() bool { return v.base != nil }

// Var describes a variable to a backend.Store. Two programs over one store agree on it by name.
type Var struct {
	Name  string
	DType DType
	Shape Shape
}

// Elems is the number of elements.
func (v Var) Elems() int { return v.Shape.Elems() }

// Bytes is the size of the variable's data.
func (v Var) Bytes() int { return v.Elems() * v.DType.Size() }

// Equal compares name, format and shape.
func (v Var) Equal(w Var) bool {
	return v.Name == w.Name && v.DType == w.DType && slices.Equal(v.Shape, w.Shape)
}

// String prints as name f32[2 3].
func (v Var) String() string { return fmt.Sprintf("%s %s%s", v.Name, v.DType, v.Shape) }
