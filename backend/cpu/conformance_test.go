package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vktrain/vktrain/backend/conformance"
)

func TestConformance(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	conformance.Run(t, b)
}

func TestInPlace(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	conformance.RunInPlace(t, b)
}
