//go:build cgo

package vulkan

import (
	"testing"

	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/graph"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, openTest(t, Options{}))
}

// leastDevice has all that is less than usual at once.
const leastDevice = "invocations=128,group=128,shared=16K,subgroup=off,16bit=off,8bit=off"

// The least device that kernels must run on, with the whole kit but the matmuls, of which software drivers take minutes for the largest batch:
// TestConformanceOfMatMulKernels has them. Limits by themselves, with what they change.
func TestConformanceOfLesserDevices(t *testing.T) {
	all := []string{"contract", "hazards", "block", "step", "curve", "invariants", "recompute", "golden"}
	for _, op := range graph.Ops() {
		if op != graph.OpMatMul {
			all = append(all, op.String())
		}
	}
	for limits, only := range map[string][]string{
		leastDevice:         all,
		"shared=16K":        {"attention", "attention_grad"},
		"range=1M,alloc=4M": {"contract", "step", "golden"},
	} {
		t.Run(limits, func(t *testing.T) {
			conformance.RunWith(t, openTest(t, Options{Limits: limits}), conformance.Options{Only: only})
		})
	}
}

func TestConformanceFloor(t *testing.T) {
	b := openTest(t, Options{FloorOnly: true})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"step"}})
}
