package conformance

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/vktrain/vktrain/graph"
)

// ratioOf is a result's error over its bound: at most 1 if it passes.
func ratioOf(got, want, bound float64, kind inputKind, d graph.DType) float64 {
	least := flush
	if d == graph.F16 {
		least = 0x1p-14
	}
	switch {
	case math.IsNaN(want) && kind == withInf:
		return passIf(math.IsNaN(got) || math.IsInf(got, 0))
	case math.IsNaN(want):
		return passIf(math.IsNaN(got))
	case math.IsInf(want, 0):
		return passIf(got == want || math.IsInf(bound, 0) || kind == withInf && math.IsNaN(got))
	case math.IsInf(bound, 0):
		return 0
	case got == want, got == 0 && math.Abs(want) < least:
		return 0
	case math.IsNaN(got) || math.IsInf(got, 0) || bound == 0:
		return math.Inf(1)
	}
	return math.Abs(got-want) / bound
}

func passIf(ok bool) float64 {
	if ok {
		return 0
	}
	return math.Inf(1)
}

// verdict collects the comparison of one tensor.
type verdict struct {
	what     string
	shape    graph.Shape
	worst    float64
	bad      int
	first    string // where the worst of the bad elements is, and what it is
	worstBad float64
	blank    int // bad elements that still hold the poison
}

func (v *verdict) add(i int, got, want, ratio, bound float64) {
	v.worst = math.Max(v.worst, ratio)
	if ratio <= 1 {
		return
	}
	if v.bad == 0 || ratio > v.worstBad {
		v.worstBad = ratio
		v.first = fmt.Sprintf("%v is %.9g, want %.9g, allowed %.3g off", v.index(i), got, want, bound)
	}
	v.bad++
}

// index gives an element's place along each dimension.
func (v *verdict) index(i int) []int {
	at := make([]int, len(v.shape))
	for d := len(v.shape) - 1; d >= 0; d-- {
		at[d] = i % v.shape[d]
		i /= v.shape[d]
	}
	return at
}

// unwritten counts the elements that a run left as they were.
func (v *verdict) unwritten(body []byte, d graph.DType) {
	if v.bad == 0 {
		return
	}
	for i := 0; i < len(body); i += d.Size() {
		if d.Size() == 4 && binary.LittleEndian.Uint32(body[i:]) == poison32 || d.Size() == 2 && binary.LittleEndian.Uint16(body[i:]) == poison16 {
			v.blank++
		}
	}
}

func (v *verdict) err() error {
	if v.bad == 0 {
		return nil
	}
	note := ""
	if v.blank > 0 {
		note = fmt.Sprintf("; %d were never written", v.blank)
	}
	return fmt.Errorf("%s: %d of %d elements are wrong, worst at %s%s", v.what, v.bad, v.shape.Elems(), v.first, note)
}
