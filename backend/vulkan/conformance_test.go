//go:build cgo

package vulkan

import (
	"testing"

	"github.com/vktrain/vktrain/backend/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, openTest(t, Options{}))
}

// The least device that kernels must run on; TestConformanceOfMatMulKernels has the matmuls that it gets.
func TestConformanceFloor(t *testing.T) {
	b := openTest(t, Options{FloorOnly: true})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"step"}})
}
