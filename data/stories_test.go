package data

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The entropy that the recursion gives is the mean of -log p over stories that the grammar writes, within its sampling error.
func TestEntropyAgainstSamples(t *testing.T) {
	s := NewStories(7, "sample")
	const n = 20000
	tok := trainBPE(t, 400, NewStories(1, "train").Docs(50<<10)...)
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

// A text that is almost a story is none: names, pronouns and numbers must agree, and nothing may be missing.
func TestAlmostAStory(t *testing.T) {
	s := NewStories(4, "almost")
	text, before := "", 0.0
	for !strings.HasPrefix(text, "One") || !strings.Contains(text, " She ") || !strings.Contains(text, " said ") {
		before = s.LogProb()
		text = s.Next()
	}
	require.InDelta(t, s.LogProb()-before, StoryLogProb(text), 1e-9)
	for _, wrong := range []string{
		text[:len(text)-1], text + " ", text + text, " " + text, strings.Replace(text, " She ", " He ", 1), strings.Replace(text, " said ", " says ", 1),
		strings.ToLower(text), strings.Replace(text, "One", "Two", 1), text + "\xff",
	} {
		require.True(t, math.IsInf(StoryLogProb(wrong), -1), "%s", wrong)
	}
}

// The size that the corpus is made for: short stories that repeat their hero, from words that a small BPE holds whole.
func TestStoriesAreShort(t *testing.T) {
	s := NewStories(8, "short")
	docs := s.Docs(1 << 20)
	b := trainBPE(t, 768, docs...)
	perStory := s.TokensPerStory(b)
	require.InDelta(t, 70, perStory, 25)
	require.InDelta(t, s.TokensPerStory(Byte{}), float64(1<<20)/float64(len(docs)), 6)
	require.Less(t, s.Floor(Byte{}), s.Floor(b))
	m := s.grammar.measure()
	whole := 0.0
	for i, word := range s.grammar.words {
		if len(b.Encode(word)) == 1 {
			whole += m.times[i]
		}
	}
	require.Greater(t, whole, 0.98*(perStory-1), "words that are one token")
	for _, doc := range docs[:100] {
		sentences := strings.Count(doc, ".") + strings.Count(doc, "?") + strings.Count(doc, "!")
		require.True(t, sentences >= 6 && sentences <= 13, doc)
	}
}

func TestDocsAreAsLongAsAskedFor(t *testing.T) {
	require.Empty(t, NewStories(1).Docs(0))
	require.Len(t, NewStories(1).Docs(1), 1)
	docs := NewStories(1).Docs(10_000)
	n := 0
	for _, doc := range docs {
		require.NotContains(t, doc, "\n")
		n += len(doc)
	}
	require.True(t, n >= 10_000 && n-len(docs[len(docs)-1]) < 10_000)
}

func BenchmarkStories(b *testing.B) {
	s := NewStories(1)
	n := 0
	for b.Loop() {
		n += len(s.Next())
	}
	b.SetBytes(int64(n / b.N))
}
