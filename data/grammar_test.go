package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type set map[int]bool

const endOfStory = -1 // stands for a word after the last

// checker finds what may come first and next in a grammar.
type checker struct {
	*testing.T
	g     *grammar
	lists []set // by slot: the lists that it may be drawn from
	pairs map[[2]int]bool
}

func newChecker(t *testing.T, g *grammar) *checker {
	c := &checker{T: t, g: g, lists: make([]set, len(g.slots)), pairs: map[[2]int]bool{}}
	for i := range c.lists {
		c.lists[i] = set{}
	}
	c.collect(g.start)
	return c
}

func (c *checker) collect(seq sequence) {
	for _, n := range seq {
		if n.choice != nil {
			for _, a := range n.choice.alternatives {
				c.collect(a)
			}
		}
		if n.slot != nil && n.slot.draw >= 0 {
			c.lists[n.slot.slot][n.slot.draw] = true
		}
	}
}

// texts are all that a slot node may write.
func (c *checker) texts(n *slotNode) (texts [][]int) {
	lists := c.lists[n.slot]
	if n.draw >= 0 {
		lists = set{n.draw: true}
	}
	for l := range lists {
		for row := range c.g.lists[l].rows {
			texts = append(texts, n.text(c.g, l, row))
		}
	}
	return texts
}

// first gives the words that seq and what may follow it can begin with.
func (c *checker) first(seq sequence, follow set) set {
	if len(seq) == 0 {
		return follow
	}
	out := set{}
	switch n := seq[0]; {
	case n.choice != nil:
		rest := c.first(seq[1:], follow)
		for _, a := range n.choice.alternatives {
			for w := range c.first(a, rest) {
				out[w] = true
			}
		}
	case n.slot != nil:
		for _, text := range c.texts(n.slot) {
			out[text[0]] = true
		}
	default:
		out[n.words[0]] = true
	}
	return out
}

// decided checks that the next word tells each choice, and the next words each entry.
func (c *checker) decided(seq sequence, follow set) {
	for i, n := range seq {
		rest := c.first(seq[i+1:], follow)
		if n.choice != nil {
			seen := set{}
			for _, a := range n.choice.alternatives {
				for w := range c.first(a, rest) {
					if seen[w] {
						c.Errorf("two alternatives begin with %q", c.g.words[w])
					}
					seen[w] = true
				}
				c.decided(a, rest)
			}
		}
		if n.slot != nil && n.slot.draw >= 0 {
			texts := c.texts(n.slot)
			for j, text := range texts {
				for k, longer := range texts {
					if _, begins := cutWords(longer, text); begins && j != k {
						c.Errorf("entry %d of list %s begins as entry %d", k, c.g.lists[n.slot.draw].name, j)
					}
				}
			}
		}
	}
}

// neighbours collects the pairs of words that may stand side by side, and gives the words that may be last.
func (c *checker) neighbours(seq sequence, before set) set {
	write := func(words []int, last set) {
		for w := range before {
			c.pairs[[2]int{w, words[0]}] = true
		}
		for i := 1; i < len(words); i++ {
			c.pairs[[2]int{words[i-1], words[i]}] = true
		}
		last[words[len(words)-1]] = true
	}
	for _, n := range seq {
		last := set{}
		switch {
		case n.choice != nil:
			for _, a := range n.choice.alternatives {
				for w := range c.neighbours(a, before) {
					last[w] = true
				}
			}
		case n.slot != nil:
			for _, text := range c.texts(n.slot) {
				write(text, last)
			}
		default:
			write(n.words, last)
		}
		before = last
	}
	return before
}

// Every choice shows in the first word that is written after it, for the whole grammar: so a text has one derivation, and the entropy of a
// word, given those before it, is that of the choices before it.
func TestTheFirstWordTellsTheChoice(t *testing.T) {
	g := storyGrammar()
	newChecker(t, g).decided(g.start, set{endOfStory: true})
}

// No two words that may stand side by side are cut elsewhere than between them, so that the words of a story are those that the grammar
// wrote. A cut depends on the characters beside it alone, but for words with apostrophes or of nothing but space, and there are none.
func TestWordsOfStoriesAreThoseOfTheGrammar(t *testing.T) {
	g := storyGrammar()
	c := newChecker(t, g)
	c.neighbours(g.start, set{})
	require.Greater(t, len(c.pairs), 500)
	for p := range c.pairs {
		left, right := g.words[p[0]], g.words[p[1]]
		require.Equal(t, []string{left, right}, words(left+right))
		require.NotContains(t, left+right, "'")
		require.NotEmpty(t, strings.TrimSpace(left))
		require.NotEmpty(t, strings.TrimSpace(right))
	}
	s := NewStories(2, "words")
	for range 300 {
		for _, word := range words(s.Next()) {
			require.Contains(t, g.words, word)
		}
	}
}

// smallRules have each thing that the notation has: weights, nothing at all, a slot of two lists, forms, one rule in two places.
var smallRules = map[string]string{
	"start": `{who} {often} {did} {where}. | 3* No, {who} {did}! {end}`,
	"who":   `2* {name=one} | {name=many}`,
	"often": `often | 2* `,
	"did":   `ran | sat | {it=thing} lay`,
	"where": `by {name.they} | 2* near {name}`,
	"end":   ` | Then {name.they} slept.`,
}

var smallLists = map[string]storyList{
	"one":   {same: "they=he", rows: "Tom | Sam | Ned"},
	"many":  {forms: "they", rows: "Tims,they | Old Bens,both"},
	"thing": {rows: "a cat | dogs"},
}

type derived struct {
	text string
	p    float64
}

// enumerate calls then for every derivation of seq.
func enumerate(g *grammar, seq sequence, entries []entry, d derived, then func([]entry, derived)) {
	if len(seq) == 0 {
		then(entries, d)
		return
	}
	write := func(words []int, entries []entry, p float64) {
		text := d.text
		for _, w := range words {
			text += g.words[w]
		}
		enumerate(g, seq[1:], entries, derived{text, p}, then)
	}
	switch n := seq[0]; {
	case n.choice != nil:
		for i, a := range n.choice.alternatives {
			p := d.p * float64(n.choice.weights[i]) / float64(n.choice.total)
			enumerate(g, a, entries, derived{d.text, p}, func(entries []entry, d derived) { enumerate(g, seq[1:], entries, d, then) })
		}
	case n.slot == nil:
		write(n.words, entries, d.p)
	case n.slot.draw < 0:
		e := entries[n.slot.slot]
		write(n.slot.text(g, e.list, e.row), entries, d.p)
	default:
		rows := len(g.lists[n.slot.draw].rows)
		for row := range rows {
			drawn := slices.Clone(entries)
			drawn[n.slot.slot] = entry{n.slot.draw, row}
			write(n.slot.text(g, n.slot.draw, row), drawn, d.p/float64(rows))
		}
	}
}

// What the recursions compute, counted out on a grammar with few enough texts.
func TestMeasuresAgainstEnumeration(t *testing.T) {
	g := compile(smallRules, smallLists, "start")
	newChecker(t, g).decided(g.start, set{endOfStory: true})
	var all []derived
	enumerate(g, g.start, make([]entry, len(g.slots)), derived{p: 1}, func(_ []entry, d derived) { all = append(all, d) })
	require.Len(t, all, 5*2*4*2+5*4*2)
	texts := map[string]bool{}
	total, entropy, counts := 0.0, 0.0, map[string]float64{}
	for _, d := range all {
		require.False(t, texts[d.text], "two derivations of %q", d.text)
		texts[d.text] = true
		total += d.p
		entropy -= d.p * math.Log(d.p)
		for _, word := range words(d.text) {
			counts[word] += d.p
		}
		logProb, derivations := g.read(d.text)
		require.Equal(t, 1, derivations)
		require.InDelta(t, math.Log(d.p), logProb, 1e-12, d.text)
	}
	require.InDelta(t, 1, total, 1e-12)
	require.True(t, texts["Tom often ran near Tom."] && texts["No, Old Bens a cat lay! Then both slept."])
	m := g.measure()
	require.InDelta(t, entropy, m.entropy, 1e-12)
	for i, word := range g.words {
		require.InDelta(t, counts[word], m.times[i], 1e-12, word)
	}
}

// The reader sees an ambiguity, so that finding none means something; and so does the check of first words.
func TestAmbiguityIsSeen(t *testing.T) {
	g := compile(map[string]string{"start": "a {b} d | 2* a b d", "b": "b | c"}, nil, "start")
	logProb, derivations := g.read("a b d")
	require.Equal(t, 2, derivations)
	require.InDelta(t, math.Log(1./3*0.5+2./3), logProb, 1e-12)
	quiet := &testing.T{}
	newChecker(quiet, g).decided(g.start, set{endOfStory: true})
	require.True(t, quiet.Failed())
}

func TestGrammarMistakesPanic(t *testing.T) {
	for want, rules := range map[string]map[string]string{
		"no rule s":                {},
		"rule s contains itself":   {"s": "a {s}"},
		"bad weight in s":          {"s": "x* a"},
		"no end to x":              {"s": "a {x"},
		"no list l":                {"s": "{a=l}"},
		"a is drawn twice":         {"s": "{a=one} {a=one}"},
		"a is used before it is":   {"s": "{a}"},
		"no form old in list one":  {"s": "{a=one} {a.old}"},
		"b is used before it is d": {"s": "{r} {b}", "r": "x | {b=one}"},
	} {
		func() {
			defer func() { require.Contains(t, recover(), want) }()
			compile(rules, smallLists, "s").measure()
		}()
	}
	require.Panics(t, func() { compile(nil, map[string]storyList{"l": {forms: "x", rows: "a,b | c"}}, "s") })
}
