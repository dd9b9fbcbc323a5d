package cpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vktrain/vktrain/backend/conformance"
)

// ofShort are the cases that run with -short, as under the race detector, where the reference takes most of the time: every operator in every format, and of
// whole models a block and the steps in float32.
func ofShort(c conformance.Case) bool {
	switch c.Group {
	case "curve", "golden", "invariants", "recompute":
		return false
	case "block", "step":
		return !strings.Contains(c.Name, "f16")
	}
	return true
}

func TestConformance(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	o := conformance.Options{}
	if testing.Short() {
		o.Pick = ofShort
	}
	conformance.RunWith(t, b, o)
}

func TestInPlace(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	conformance.RunInPlace(t, b)
}
