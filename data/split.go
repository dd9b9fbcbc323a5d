package data

import (
	"math"
	"strings"
)

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
