package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The curve is one of a model that learns, or agreeing on it would say little; and its bound is far below what it falls by.
func TestCurveFalls(t *testing.T) {
	s, err := training{config: smallModel(nil), batch: 2, maxNorm: 1}.curve()
	require.NoError(t, err)
	exact, moves := s.measure()
	losses := exact["losses to step 100"]
	require.Len(t, losses, curveSteps)
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	first, last := mean(losses[:5]), mean(losses[curveSteps-5:])
	require.Less(t, last, first-1)
	require.Less(t, moves.bound("losses to step 100"), (first-last)/1000)
}
