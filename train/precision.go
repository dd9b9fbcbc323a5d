package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// PrecisionAuto is bf16 on a GPU, and f32 on the CPU and on drivers that run there.
const PrecisionAuto = "auto"

// PrecisionNames lists the choices of Config.Precision.
func PrecisionNames() []string {
	return []string{PrecisionAuto, graph.F32.String(), graph.BF16.String(), graph.F16.String()}
}

// Storage is the format of activations that a precision means on a device.
func Storage(precision string, kind backend.Kind) (graph.DType, error) {
	switch precision {
	case PrecisionAuto:
		if kind == backend.CPU || kind == backend.Software {
			return graph.F32, nil
		}
		return graph.BF16, nil
	case graph.F32.String():
		return graph.F32, nil
	case graph.BF16.String():
		return graph.BF16, nil
	case graph.F16.String():
		return graph.F16, nil
	}
	return 0, badKey("precision", "%q is unknown: use %s", precision, orList(PrecisionNames()))
}

// on is the config with what follows from the device.
func (c Config) on(info backend.Info) Config {
	if d, err := Storage(c.Precision, info.Kind); err == nil {
		c.Precision = d.String()
	}
	return c
}

// storage is what on has resolved.
func (c Config) storage() graph.DType {
	return graph.DType(max(0, slices.Index([]string{graph.F32.String(), graph.BF16.String(), graph.F16.String()}, c.Precision)))
}

// MastersFormat is the format of the matrices' variables that Config.Masters names.
func MastersFormat(name string) (graph.DType, error) {
	switch name {
	case graph.F32.String():
		return graph.F32, nil
	case graph.BF16.String():
		return graph.BF16, nil
	}
	return 0, badKey("masters", "%q is unknown: use %s", name, orList(mastersNames))
}

var mastersNames = []string{graph.F32.String(), graph.BF16.String()}

// masters is the format of the matrices' variables.
func (c Config) masters() graph.DType {
	d, err := MastersFormat(c.Masters)
	if err != nil {
		return graph.F32 // Validate tells
	}
	return d
}

// LossScale is the state of dynamic loss scaling (Micikevicius et al. 2018, section 3.2), all of it: a run that goes on from it goes on as it would
// have. Gradients in f16 are of the loss times Scale, so that small ones are not lost; where one overflows, the device leaves the step out.
type LossScale struct {
	Scale   float64 `json:"scale"`   // of the next step
	Good    int     `json:"good"`    // steps since it last changed
	Skipped int     `json:"skipped"` // steps that were left out so far
}

const (
	defaultLossScale   = 1 << 16
	defaultScaleGrowth = 1000
	largestLossScale   = 1 << 24
	leastLossScale     = 1.0 / 1024 // under which it is the model that overflows
)

// after notes the gradient's norm of a step that ran with a scale: it is halved after an overflow, and doubled after so many steps without one. Steps are
// read one late, so that a second one may overflow with a scale that has been halved already.
func (s *LossScale) after(used, norm float64, growth int) (skipped bool) {
	if !isFinite(norm) {
		s.Skipped++
		s.Good = 0
		s.Scale = math.Min(s.Scale, used/2)
		return true
	}
	if used != s.Scale {
		return false
	}
	if s.Good++; s.Good >= growth {
		s.Good, s.Scale = 0, math.Min(2*s.Scale, largestLossScale)
	}
	return false
}

func (s LossScale) String() string {
	return fmt.Sprintf("%g after %d steps that were left out", s.Scale, s.Skipped)
}
