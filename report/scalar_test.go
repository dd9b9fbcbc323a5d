package report

import (
	"html"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScalarModelFollowsItsRecurrences(t *testing.T) {
	curves, err := ScalarModel(4, 0.5)
	require.NoError(t, err)
	require.Len(t, curves, 3)
	post, pre, peri := curves[0], curves[1], curves[2]
	require.Equal(t, []float64{1, 1, 1, 1, 1}, post.Variance)
	require.Equal(t, []float64{1, 1.5, 2.25, 3.375, 5.0625}, pre.Variance)
	require.Equal(t, []float64{1, 2, 3, 4, 5}, peri.Variance)
	require.Equal(t, []float64{0, 5.0625, 1}, []float64{post.Derivative, pre.Derivative, peri.Derivative})
	require.Equal(t, []float64{0, 2.25, 1 / math.Sqrt(5)}, []float64{post.Amplitude, pre.Amplitude, peri.Amplitude})

	curves, err = ScalarModel(24, 0.5)
	require.NoError(t, err)
	require.InDelta(t, 16834, curves[1].Variance[24], 1)
	require.Equal(t, 25.0, curves[2].Variance[24])
}

// The derivative is that of the recurrence itself.
func TestScalarDerivativeIsThatOfTheRecurrence(t *testing.T) {
	const depth, gain, h = 7, 0.3, 1e-6
	curves, err := ScalarModel(depth, gain)
	require.NoError(t, err)
	for i, r := range scalarRules {
		last := func(v float64) float64 {
			for range depth {
				v = r.next(v, gain)
			}
			return v
		}
		require.InDelta(t, (last(1+h)-last(1-h))/(2*h), curves[i].Derivative, 1e-6, r.placement)
		root := func(s float64) float64 { return math.Sqrt(last(s * s)) }
		require.InDelta(t, (root(1+h)-root(1-h))/(2*h), curves[i].Amplitude, 1e-6, r.placement)
	}
}

func TestScalarModelRefusesWhatIsNoNumberOfLayers(t *testing.T) {
	for _, bad := range []struct {
		depth int
		gain  float64
		says  string
	}{
		{0, 1, "depth: 0"}, {MaxScalarDepth + 1, 0, "depth: 10001"}, {4, -1, "gain: -1"}, {4, math.NaN(), "gain: NaN"}, {4, math.Inf(1), "gain: +Inf"},
		{2000, 1, "use fewer layers"},
	} {
		_, err := ScalarModel(bad.depth, bad.gain)
		require.ErrorContains(t, err, bad.says)
	}
}

func TestScalarPageIsWholeInItself(t *testing.T) {
	var page strings.Builder
	require.NoError(t, WriteScalarPage(&page, 24, 0.5))
	text := html.UnescapeString(page.String())
	require.Contains(t, text, `value="24"`)
	require.Contains(t, text, `"placement":"pre"`)
	for _, c := range ScalarCaveats {
		require.Contains(t, text, c)
	}
	for _, outside := range []string{"src=", "href=", "@import", "url(", "fetch("} {
		require.NotContains(t, text, outside)
	}
}
