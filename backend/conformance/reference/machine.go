package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// Machine interprets one program. All numbers are float64: nothing is rounded except what is written to bf16 and f16 values. Integers
// are float64 too. Views share storage with their base.
type Machine struct {
	// Hook, if set, is called in place of each node, with the storage of its operands (nil where one is absent); run is what
	// the machine would do. It may round, watch, or spoil what a node computes. What is written to narrow values is rounded after it.
	Hook func(n *graph.Node, in, out [][]float64, run Kernel)

	prog    *graph.Program
	storage [][]float64 // by value ID; a view's is a part of its base's
}

// Kernel computes a node's outputs from its inputs. An addend may be the output's own storage.
type Kernel func(n *graph.Node, in, out [][]float64)

// Vars holds variables by name, for several machines to share.
type Vars map[string][]float64

// New returns a machine whose variables are its own, and zero.
func New(p *graph.Program) *Machine { return NewOver(p, Vars{}) }

// NewOver returns a machine over variables that others may share. A variable that is not there yet is added, zero.
// It panics if one has another number of elements than the program's.
func NewOver(p *graph.Program, vars Vars) *Machine {
	m := &Machine{prog: p, storage: make([][]float64, len(p.Values()))}
	for _, v := range p.Values() {
		if v.IsView() {
			continue
		}
		if v.Kind() != graph.KindVar {
			m.storage[v.ID()] = make([]float64, v.Elems())
			continue
		}
		data, ok := vars[v.Name()]
		if !ok {
			data = make([]float64, v.Elems())
			vars[v.Name()] = data
		}
		if len(data) != v.Elems() {
			panic(fmt.Sprintf("reference: variable %q has %d elements, want %d", v.Name(), len(data), v.Elems()))
		}
		m.storage[v.ID()] = data
	}
	for _, v := range p.Values() {
		if v.IsView() {
			base, off := v.Base()
			from := off / v.DType().Size()
			m.storage[v.ID()] = m.storage[base.ID()][from : from+v.Elems()]
		}
	}
	return m
}

// Set gives an input or a variable its elements, as []float64, []float32 or []int32. It panics on an unknown name, another
// type, or another number of elements.
func (m *Machine) Set(name string, data any) {
	dst := m.storage[m.value(name).ID()]
	n := 0
	switch data := data.(type) {
	case []float64:
		n = copy(dst, data)
		n += len(data) - n
	case []float32:
		n = fill(dst, data)
	case []int32:
		n = fill(dst, data)
	default:
		panic(fmt.Sprintf("reference: %q set to a %T", name, data))
	}
	if n != len(dst) {
		panic(fmt.Sprintf("reference: %q set to %d elements, want %d", name, n, len(dst)))
	}
}

func fill[T float32 | int32](dst []float64, src []T) int {
	for i := range min(len(dst), len(src)) {
		dst[i] = float64(src[i])
	}
	return len(src)
}

// Get copies a value's elements: an output by its name, or any other value by its own. It panics on an unknown name.
func (m *Machine) Get(name string) []float64 {
	if v := m.prog.Output(name); v != nil {
		return slices.Clone(m.storage[v.ID()])
	}
	return slices.Clone(m.storage[m.value(name).ID()])
}

func (m *Machine) value(name string) *graph.Value {
	for _, v := range m.prog.Values() {
		if v.Name() == name {
			return v
		}
	}
	panic(fmt.Sprintf("reference: program %s has no value %q", m.prog.Name(), name))
}

// Run runs the nodes in order. Temporaries are NaN before, so that one read before it is written shows. The error is of an
// operator that the machine does not know.
func (m *Machine) Run() error {
	for _, v := range m.prog.Values() {
		if v.Kind() == graph.KindTemp && !v.IsView() {
			for i := range m.storage[v.ID()] {
				m.storage[v.ID()][i] = math.NaN()
			}
		}
	}
	for _, n := range m.prog.Nodes() {
		if n.Op >= graph.NumOps || kernels[n.Op] == nil {
			return fmt.Errorf("reference: no kernel for %s", n)
		}
		in, out := m.operands(n.In), m.operands(n.Out)
		run := kernels[n.Op]
		if m.Hook != nil {
			m.Hook(n, in, out, run)
		} else {
			run(n, in, out)
		}
		for i, v := range n.Out {
			if v != nil && v.DType().Size() == 2 {
				roundAll(out[i], v.DType())
			}
		}
	}
	return nil
}

func roundAll(x []float64, d graph.DType) {
	for i := range x {
		x[i] = Round(x[i], d)
	}
}

func (m *Machine) operands(vs []*graph.Value) [][]float64 {
	data := make([][]float64, len(vs))
	for i, v := range vs {
		if v != nil {
			data[i] = m.storage[v.ID()]
		}
	}
	return data
}
