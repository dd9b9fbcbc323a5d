package train

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// frequencies runs a sampler over evenly spaced draws, which gives each token its probability to within 1/n.
func frequencies(t *testing.T, s Sampler, logits []float32) []float64 {
	const n = 20000
	freq := make([]float64, len(logits))
	for i := range n {
		k, err := s.Pick(logits, (float64(i)+0.5)/n)
		require.NoError(t, err)
		freq[k] += 1.0 / n
	}
	return freq
}

func TestSamplerGivesEachTokenItsProbability(t *testing.T) {
	p := []float64{0.1, 0.4, 0.2, 0.3}
	logits := make([]float32, len(p))
	for i := range p {
		logits[i] = float32(math.Log(p[i])) + 7 // a shift of all logits changes nothing
	}
	for _, c := range []struct {
		name string
		s    Sampler
		want []float64
	}{
		{"the softmax", Sampler{Temperature: 1}, p},
		{"half the temperature squares", Sampler{Temperature: 0.5}, []float64{0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3}},
		{"the likeliest", Sampler{}, []float64{0, 1, 0, 0}},
		{"near zero, the likeliest", Sampler{Temperature: 1e-9}, []float64{0, 1, 0, 0}},
		{"top 2", Sampler{Temperature: 1, TopK: 2}, []float64{0, 4.0 / 7, 0, 3.0 / 7}},
		{"top 1", Sampler{Temperature: 1, TopK: 1}, []float64{0, 1, 0, 0}},
		{"top more than there are", Sampler{Temperature: 1, TopK: 9}, p},
		{"the token that crosses p is in", Sampler{Temperature: 1, TopP: 0.6}, []float64{0, 4.0 / 7, 0, 3.0 / 7}},
		{"p under the likeliest's", Sampler{Temperature: 1, TopP: 0.3}, []float64{0, 1, 0, 0}},
		{"p 1", Sampler{Temperature: 1, TopP: 1}, p},
		{"p is of what top-k leaves", Sampler{Temperature: 1, TopK: 2, TopP: 0.55}, []float64{0, 1, 0, 0}},
		{"p is at the temperature", Sampler{Temperature: 0.5, TopP: 0.5}, []float64{0, 1, 0, 0}},
	} {
		require.NoError(t, c.s.Validate())
		got := frequencies(t, c.s, logits)
		for i := range got {
			require.InDelta(t, c.want[i], got[i], 2e-4, "%s: token %d", c.name, i)
		}
	}
}

func TestSamplerTiesAndEnds(t *testing.T) {
	k, err := Sampler{}.Pick([]float32{1, 2, 2}, 0)
	require.NoError(t, err)
	require.Equal(t, 1, k)
	k, err = Sampler{Temperature: 1, TopK: 1}.Pick([]float32{1, 2, 2}, 0.999)
	require.NoError(t, err)
	require.Equal(t, 1, k)
	k, err = Sampler{Temperature: 1}.Pick([]float32{0, -1e30}, math.Nextafter(1, 0))
	require.NoError(t, err)
	require.Equal(t, 0, k, "a token of probability 0 is never drawn")
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for _, temperature := range []float64{0, 1} {
			_, err = Sampler{Temperature: temperature}.Pick([]float32{0, bad}, 0.5)
			require.ErrorIs(t, err, errNotFinite)
		}
	}
}

func TestSamplerSettingsThatCannotBe(t *testing.T) {
	for _, s := range []Sampler{{Temperature: -1}, {Temperature: math.NaN()}, {Temperature: math.Inf(1)}, {TopK: -1}, {TopP: -0.1}, {TopP: 1.1}, {TopP: math.NaN()}} {
		require.ErrorAs(t, s.Validate(), new(*ConfigError))
	}
}
