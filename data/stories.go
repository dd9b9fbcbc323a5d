package data

import (
	"math"
	"strings"
	"sync"

	"github.com/vktrain/vktrain/rng"
)

// Stories is the built-in corpus: short stories in simple English, as many as asked for, written by a stochastic grammar. Its entropy is
// known exactly, so that the loss of a model can be held against the least that any model can reach.
//
// A text has just one derivation from the grammar, so its probability is the product of those of the choices in it.
type Stories struct {
	grammar *grammar
	random  *rng.Rand
	logProb float64
}

var storyGrammar = sync.OnceValue(func() *grammar { return compile(storyRules, storyLists, "story") })

// NewStories starts a stream of stories. Different names give independent streams of a seed, such as "train" and "validation".
func NewStories(seed uint64, names ...string) *Stories {
	return &Stories{grammar: storyGrammar(), random: rng.New(seed, append([]string{"stories"}, names...)...)}
}

// Next writes one story, a paragraph without a line end.
func (s *Stories) Next() string {
	w := writer{g: s.grammar, random: s.random, entries: make([]entry, len(s.grammar.slots))}
	w.sequence(s.grammar.start)
	s.logProb += w.logProb
	return w.text.String()
}

// Docs writes stories until they have at least n bytes together, a document each.
func (s *Stories) Docs(n int) []string {
	var docs []string
	for n > 0 {
		docs = append(docs, s.Next())
		n -= len(docs[len(docs)-1])
	}
	return docs
}

// LogProb is the natural logarithm of the probability of all stories that were written so far. For their tokens as Tokens joins them,
// -LogProb/(len(tokens)-1) is the loss in nats per token of a model that knows the grammar.
func (s *Stories) LogProb() float64 { return s.logProb }

// entry is what a slot holds.
type entry struct{ list, row int }

// writer derives one text.
type writer struct {
	g       *grammar
	random  *rng.Rand
	entries []entry // by slot
	text    strings.Builder
	logProb float64
}

func (w *writer) sequence(seq sequence) {
	for _, n := range seq {
		switch {
		case n.choice != nil:
			i := w.choose(n.choice)
			w.sequence(n.choice.alternatives[i])
		case n.slot != nil:
			e := &w.entries[n.slot.slot]
			if n.slot.draw >= 0 {
				rows := len(w.g.lists[n.slot.draw].rows)
				*e = entry{n.slot.draw, w.random.IntN(rows)}
				w.logProb -= math.Log(float64(rows))
			}
			w.write(n.slot.text(w.g, e.list, e.row))
		default:
			w.write(n.words)
		}
	}
}

func (w *writer) write(words []int) {
	for _, i := range words {
		w.text.WriteString(w.g.words[i])
	}
}

func (w *writer) choose(c *choice) int {
	if len(c.alternatives) == 1 {
		return 0
	}
	r := w.random.IntN(c.total)
	for i, weight := range c.weights {
		if r < weight {
			w.logProb += c.logProb(i)
			return i
		}
		r -= weight
	}
	panic("data: grammar: weights do not add up")
}

// logProb is that of alternative i.
func (c *choice) logProb(i int) float64 {
	return math.Log(float64(c.weights[i]) / float64(c.total))
}
