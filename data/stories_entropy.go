package data

import "math"

// Entropy is that of one story, in nats: the expectation of -log p. It is computed, not sampled.
func (s *Stories) Entropy() float64 { return s.grammar.measure().entropy }

// TokensPerStory is the expected number of tokens of a story, with the end-of-text after it. The tokenizer must encode each word of
// GPT-2's rules by itself, as Byte and BPE do.
func (s *Stories) TokensPerStory(tok Tokenizer) float64 {
	n := 1.0
	for i, times := range s.grammar.measure().times {
		n += times * float64(len(tok.Encode(s.grammar.words[i])))
	}
	return n
}

// Floor is the entropy rate of endless stories in nats per token, end-of-text included: the least expected loss of any model. It is
// Entropy over TokensPerStory.
func (s *Stories) Floor(tok Tokenizer) float64 { return s.Entropy() / s.TokensPerStory(tok) }

// measures are expectations over the texts of a grammar.
type measures struct {
	entropy float64   // -log p, nats
	times   []float64 // each word is written, by index
}

// bound tells for each slot the list that its entry was drawn from, plus 1; 0 before it is drawn.
type bound [16]uint8

// weighted gives the probability of each bound at one place of a derivation.
type weighted map[bound]float64

// measure walks through the grammar once, with the probabilities of all bounds side by side. Nothing but bounds decides how a derivation
// goes on: which entry a slot holds is independent of all other choices, and so is uniform over its list wherever it is written.
func (g *grammar) measure() measures {
	m := measures{times: make([]float64, len(g.words))}
	m.sequence(g, g.start, weighted{{}: 1})
	return m
}

func (m *measures) sequence(g *grammar, seq sequence, at weighted) weighted {
	for _, n := range seq {
		switch {
		case n.choice != nil:
			at = m.choice(g, n.choice, at)
		case n.slot != nil:
			at = m.slot(g, n.slot, at)
		default:
			m.write(n.words, at.total())
		}
	}
	return at
}

func (m *measures) write(words []int, p float64) {
	for _, i := range words {
		m.times[i] += p
	}
}

func (m *measures) choice(g *grammar, c *choice, at weighted) weighted {
	after := weighted{}
	for i, seq := range c.alternatives {
		p := float64(c.weights[i]) / float64(c.total)
		taken := weighted{}
		for b, q := range at {
			taken[b] = p * q
		}
		m.entropy -= taken.total() * math.Log(p)
		for b, q := range m.sequence(g, seq, taken) {
			after[b] += q
		}
	}
	return after
}

func (m *measures) slot(g *grammar, n *slotNode, at weighted) weighted {
	if n.draw >= 0 {
		after := weighted{}
		for b, p := range at {
			if b[n.slot] != 0 {
				panic("data: grammar: slot " + g.slots[n.slot] + " is drawn twice")
			}
			b[n.slot] = uint8(n.draw + 1)
			after[b] = p
		}
		at = after
		m.entropy += at.total() * math.Log(float64(len(g.lists[n.draw].rows)))
	}
	for b, p := range at {
		if b[n.slot] == 0 {
			panic("data: grammar: slot " + g.slots[n.slot] + " is used before it is drawn")
		}
		l := int(b[n.slot]) - 1
		for row := range g.lists[l].rows {
			m.write(n.text(g, l, row), p/float64(len(g.lists[l].rows)))
		}
	}
	return at
}

func (w weighted) total() float64 {
	sum := 0.0
	for _, p := range w {
		sum += p
	}
	return sum
}
