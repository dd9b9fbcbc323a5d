package data

import (
	"fmt"
	"math"
	"strings"
)

// DefaultValFraction is the share of a text that is kept for validation where nobody says otherwise.
const DefaultValFraction = 0.1

// SplitDocs parts documents by position: val is the last valFraction of their bytes. The cut goes to the
// end of the word that it falls in, so that it may part a document in two but never a word. Either part may be empty.
func SplitDocs(docs []string, valFraction float64) (train, val []string) {
	total := 0
	for _, doc := range docs {
		total += len(doc)
	}
	left := total - share(total, valFraction) // bytes to go to train
	for i, doc := range docs {
		if left >= len(doc) {
			left -= len(doc)
			continue
		}
		train = append(train, docs[:i]...)
		if cut := cutAfter(doc, left); cut > 0 {
			train = append(train, doc[:cut])
			doc = doc[cut:]
		}
		if doc != "" {
			val = append(val, doc)
		}
		return train, append(val, docs[i+1:]...)
	}
	return docs, nil
}

// share is a fraction of n, rounded.
func share(n int, fraction float64) int {
	if !(fraction >= 0 && fraction <= 1) {
		panic("data: fraction outside of 0 to 1")
	}
	return int(math.Round(float64(n) * fraction))
}

// cutAfter is the first place at or after n, in words from the start of n's line, where doc may be cut.
func cutAfter(doc string, n int) int {
	at := strings.LastIndexByte(doc[:n], '\n') + 1
	for at < n {
		at += wordLen(doc[at:])
	}
	return at
}

// Split parts tokens by position: val is the last valFraction of them, rounded, but each part gets at least one sequence of seqLen tokens and
// the token after it. It is an error if there are too few tokens for that. The parts share the memory of tokens.
func Split(tokens []int32, valFraction float64, seqLen int) (train, val []int32, err error) {
	if seqLen < 1 {
		panic("data: sequence length under 1")
	}
	n := share(len(tokens), valFraction)
	if len(tokens) < 2*(seqLen+1) {
		return nil, nil, fmt.Errorf("the text has %d tokens, but a sequence of %d tokens and the token after it, for training and for validation, take %d: give more text or a smaller seq_len",
			len(tokens), seqLen, 2*(seqLen+1))
	}
	n = min(max(n, seqLen+1), len(tokens)-seqLen-1)
	cut := len(tokens) - n
	return tokens[:cut:cut], tokens[cut:], nil
}
