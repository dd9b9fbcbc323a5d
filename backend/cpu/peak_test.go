package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/cpu/simd"
)

func TestPeakLoops(t *testing.T) {
	b, err := New(Options{Threads: 3})
	require.NoError(t, err)
	loops, err := b.NewPeakLoops()
	require.NoError(t, err)
	require.Equal(t, simd.Instructions(), loops.Kernel())
	for range 2 {
		for _, measure := range []func() (float64, error){loops.FMA, loops.Triad} {
			got, err := measure()
			require.NoError(t, err)
			require.Positive(t, got)
		}
	}
	require.NoError(t, loops.Close())
	require.NoError(t, b.Close())
}
