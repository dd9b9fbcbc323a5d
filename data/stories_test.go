package data

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The entropy that the recursion gives is the mean of -log p over stories that the grammar writes, within its sampling error.
func TestEntropyAgainstSamples(t *testing.T) {
	s := NewStories(7, "sample")
	const n = 20000
	tok := trained(t, 400)
	var sum, squares, tokens, before float64
	for range n {
		text := s.Next()
		h := before - s.LogProb()
		before = s.LogProb()
		sum += h
		squares += h * h
		tokens += float64(len(tok.Encode(text)) + 1)
	}
	mean := sum / n
	sigma := math.Sqrt((squares/n - mean*mean) / n)
	require.InDelta(t, s.Entropy(), mean, 5*sigma, "standard error %.4f", sigma)
	require.InDelta(t, s.TokensPerStory(tok), tokens/n, 0.1)
	require.InDelta(t, s.Entropy()/s.TokensPerStory(tok), s.Floor(tok), 1e-12)
}

// A text has one derivation: the probability of the choices that wrote it is the probability that a parser, which sums over all
// derivations, gives it.
func TestStoriesAreUnambiguous(t *testing.T) {
	s := NewStories(3, "parse")
	before := 0.0
	for range 500 {
		text := s.Next()
		require.InDelta(t, s.LogProb()-before, StoryLogProb(text), 1e-9, "%s", text)
		before = s.LogProb()
	}
	require.True(t, math.IsInf(StoryLogProb("It was a dark and stormy night."), -1))
	require.True(t, math.IsInf(StoryLogProb(""), -1))
}

func TestStoriesAreAFunctionOfTheSeed(t *testing.T) {
	require.Equal(t, NewStories(5, "a").Docs(2000), NewStories(5, "a").Docs(2000))
	require.NotEqual(t, NewStories(5, "a").Docs(2000), NewStories(5, "b").Docs(2000))
	require.NotEqual(t, NewStories(5, "a").Docs(2000), NewStories(6, "a").Docs(2000))
}

func TestUnigramEntropy(t *testing.T) {
	require.InDelta(t, math.Ln2, UnigramEntropy([]int32{0, 1, 0, 1}, 3), 1e-12)
	require.Zero(t, UnigramEntropy([]int32{2, 2}, 3))
	require.Panics(t, func() { UnigramEntropy([]int32{3}, 3) })
}
