package data

import "fmt"

// TrainBPE learns a vocabulary of at most vocabSize tokens: the 256 bytes (0 to 255), end-of-text (256), and then, one by one, the pair of
// neighbouring tokens that the words of the texts hold most often. Of pairs that are equally frequent it takes the one whose left token is
// smallest, and then whose right one is. It stops early when no pair is left that occurs twice, so that VocabSize may be less than asked for;
// texts without any such pair, even none at all, give the 257 tokens to start with.
//
// In a run of one token, as in "aaaa", overlapping pairs all count.
func TrainBPE(texts []string, vocabSize int) (*BPE, error) {
	if vocabSize < firstMerge {
		return nil, fmt.Errorf("vocabulary of %d tokens: a BPE needs at least %d, the 256 bytes and end-of-text", vocabSize, firstMerge)
	}
	t := newTrainer(texts)
	var merges []pair
	for firstMerge+len(merges) < vocabSize {
		p, ok := t.best()
		if !ok {
			break
		}
		t.join(p, int32(firstMerge+len(merges)))
		merges = append(merges, p)
	}
	return newBPE(merges), nil
}

// trainer keeps the words of the texts as tokens, and how often each pair occurs in them.
type trainer struct {
	words  []trainWord
	counts map[pair]*pairCount
	queue  queue[candidate]
}

type trainWord struct {
	ids   []int32
	count int // in the texts
}

type pairCount struct {
	n     int     // in the texts
	words []int32 // that hold it, or did; ascending
}

// candidate is a pair as frequent as it was when it was queued. From then on its frequency can only fall: a pair is new when one of its
// tokens is.
type candidate struct {
	n    int
	pair pair
}

//lint:ignore U1000 queue calls it through its constraint
func (c candidate) before(o candidate) bool {
	switch {
	case c.n != o.n:
		return c.n > o.n
	case c.pair.left != o.pair.left:
		return c.pair.left < o.pair.left
	}
	return c.pair.right < o.pair.right
}

func newTrainer(texts []string) *trainer {
	t := &trainer{counts: map[pair]*pairCount{}}
	index := map[string]int{}
	for _, text := range texts {
		eachWord(text, func(word string) {
			i, ok := index[word]
			if !ok {
				i = len(t.words)
				index[word] = i
				t.words = append(t.words, trainWord{ids: Byte{}.Encode(word)})
			}
			t.words[i].count++
		})
	}
	for i, w := range t.words {
		for k := 1; k < len(w.ids); k++ {
			t.add(pair{w.ids[k-1], w.ids[k]}, i)
		}
	}
	for p, c := range t.counts {
		t.queue.push(candidate{c.n, p})
	}
	return t
}

// add counts one more place of a pair, in word i.
func (t *trainer) add(p pair, i int) *pairCount {
	c := t.counts[p]
	if c == nil {
		c = &pairCount{}
		t.counts[p] = c
	}
	c.n += t.words[i].count
	if k := len(c.words); k == 0 || c.words[k-1] != int32(i) {
		c.words = append(c.words, int32(i))
	}
	return c
}

// best gives the most frequent pair, if any occurs twice.
func (t *trainer) best() (pair, bool) {
	for len(t.queue) > 0 {
		top := t.queue.pop()
		switch n := t.counts[top.pair].n; {
		case n < 2:
		case n < top.n:
			t.queue.push(candidate{n, top.pair})
		default:
			return top.pair, true
		}
	}
	return pair{}, false
}

// join makes the token id of a pair, wherever it occurs.
func (t *trainer) join(p pair, id int32) {
	made := map[pair]*pairCount{} // pairs with the new token
	for _, i := range t.counts[p].words {
		t.joinWord(p, id, int(i), made)
	}
	delete(t.counts, p)
	for q, c := range made {
		if c.n >= 2 {
			t.queue.push(candidate{c.n, q})
		}
	}
}

func (t *trainer) joinWord(p pair, id int32, i int, made map[pair]*pairCount) {
	w := &t.words[i]
	remove := func(left, right int32) {
		t.counts[pair{left, right}].n -= w.count
	}
	add := func(left, right int32) {
		q := pair{left, right}
		made[q] = t.add(q, i)
	}
	out := w.ids[:0]
	for k := 0; k < len(w.ids); k++ {
		if w.ids[k] != p.left || k+1 == len(w.ids) || w.ids[k+1] != p.right {
			out = append(out, w.ids[k])
			continue
		}
		if n := len(out); n > 0 {
			remove(out[n-1], p.left)
			add(out[n-1], id)
		}
		remove(p.left, p.right)
		if k+2 < len(w.ids) {
			remove(p.right, w.ids[k+2])
			add(id, w.ids[k+2])
		}
		out = append(out, id)
		k++
	}
	w.ids = out
}
