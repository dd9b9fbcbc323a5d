package cpu

import (
	"unsafe"

	"github.com/vktrain/vktrain/graph"
)

// All storage is slices of float32, so that it is aligned for each format.

// words makes zeroed storage for n bytes.
func words(n int) []float32 { return make([]float32, (n+3)/4) }

func bytesOf(m []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m))), 4*len(m))
}

func floats(m []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(m))), len(m)/4)
}

func int32s(m []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(m))), len(m))
}

func uint16s(m []float32, n int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(m))), 2*len(m))[:n]
}

// compiler gives nodes their storage.
type compiler struct {
	pool   *pool
	plan   *graph.Plan
	arena  []float32 // and behind it room for stand-ins
	inputs map[*graph.Value][]float32
	store  *store
	wide   map[*graph.Value][]float32 // the stand-ins of the node that is compiled

	scratch *scratch
	ropes   map[ropeKey][]float32
}

// storage is the words of a value; nil for nil.
func (c *compiler) storage(v *graph.Value) []float32 {
	if v == nil {
		return nil
	}
	if m := c.wide[v]; m != nil {
		return m
	}
	base, off := v.Base()
	n := (v.Bytes() + 3) / 4
	var m []float32
	switch v.Kind() {
	case graph.KindInput:
		m = c.inputs[base]
	case graph.KindVar:
		m = c.store.memory[base.Name()]
	default:
		m, off = c.arena, c.plan.Offset(v)
	}
	return m[off/4 : off/4+n : off/4+n]
}

// operands gives the storage of a node's inputs and outputs.
func (c *compiler) operands(n *graph.Node) (in, out [][]float32) {
	for _, v := range n.In {
		in = append(in, c.storage(v))
	}
	for _, v := range n.Out {
		out = append(out, c.storage(v))
	}
	return in, out
}
