package data

import "math"

// StoryLogProb is the natural logarithm of the probability that a story of the built-in corpus is this text, -Inf if none can be. So it
// also tells whether a text that a model wrote follows the grammar.
func StoryLogProb(text string) float64 {
	logProb, _ := storyGrammar().read(text)
	return logProb
}

// read gives the logarithm of the probability of a text, and the number of its derivations, whose probabilities it adds.
func (g *grammar) read(text string) (logProb float64, derivations int) {
	index := make(map[string]int, len(g.words))
	for i, word := range g.words {
		index[word] = i
	}
	var words []int
	eachWord(text, func(word string) {
		i, ok := index[word]
		if !ok {
			i = -1
		}
		words = append(words, i)
	})
	r := reader{g: g, entries: make([]entry, len(g.slots))}
	p := 0.0
	r.sequence(g.start, words, 0, func(rest []int, logProb float64) {
		if len(rest) == 0 {
			derivations++
			p += math.Exp(logProb)
		}
	})
	return math.Log(p), derivations
}

// reader tries every derivation, and gives up on one at the first word that differs.
type reader struct {
	g       *grammar
	entries []entry
}

// sequence calls then with the words that are left, for each way to read seq at the start of words.
func (r *reader) sequence(seq sequence, words []int, logProb float64, then func(rest []int, logProb float64)) {
	if len(seq) == 0 {
		then(words, logProb)
		return
	}
	next := func(rest []int, logProb float64) { r.sequence(seq[1:], rest, logProb, then) }
	switch n := seq[0]; {
	case n.choice != nil:
		for i, alternative := range n.choice.alternatives {
			r.sequence(alternative, words, logProb+n.choice.logProb(i), next)
		}
	case n.slot == nil:
		if rest, ok := cutWords(words, n.words); ok {
			next(rest, logProb)
		}
	case n.slot.draw < 0:
		e := r.entries[n.slot.slot]
		if rest, ok := cutWords(words, n.slot.text(r.g, e.list, e.row)); ok {
			next(rest, logProb)
		}
	default:
		rows := len(r.g.lists[n.slot.draw].rows)
		for row := range rows {
			if rest, ok := cutWords(words, n.slot.text(r.g, n.slot.draw, row)); ok {
				r.entries[n.slot.slot] = entry{n.slot.draw, row}
				next(rest, logProb-math.Log(float64(rows)))
			}
		}
	}
}

// cutWords removes a prefix.
func cutWords(words, prefix []int) (rest []int, ok bool) {
	if len(words) < len(prefix) {
		return nil, false
	}
	for i, w := range prefix {
		if words[i] != w {
			return nil, false
		}
	}
	return words[len(prefix):], true
}
