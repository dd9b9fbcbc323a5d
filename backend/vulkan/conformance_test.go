//go:build cgo

package vulkan

import (
	"testing"

	"github.com/vktrain/vktrain/backend/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, openTest(t, Options{}))
}

// The kernels that GPUs get, with nothing optional: software drivers take others by default.
func TestConformanceFloor(t *testing.T) {
	b := openTest(t, Options{FloorOnly: true})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul", "step"}})
}
