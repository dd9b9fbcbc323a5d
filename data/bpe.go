package data

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// BPE is byte-level byte pair encoding (Sennrich et al. 2016, Radford et al. 2019): a text is cut into words, a word starts as its bytes, and
// the pair of neighbours that was learned earliest is joined, until none of those left was learned.
type BPE struct {
	tokens    []string // by id: the bytes it stands for; empty where no token has this id
	special   []bool   // by id: not made from text
	endOfText int32
	bytes     [256]int32    // the token of each byte
	merges    []merge       // in the order they were learned
	ranks     map[pair]rank // of merges
	encoders  sync.Pool     // of *encoder
}

var _ Tokenizer = (*BPE)(nil)

type pair struct{ left, right int32 }

type merge struct {
	pair
	id int32 // of both joined
}

type rank struct{ order, id int32 }

// byteLevel is the BPE of no merges: the bytes, and end-of-text.
func byteLevel() *BPE {
	b := &BPE{endOfText: endOfTextID}
	for i := range 256 {
		b.tokens = append(b.tokens, string([]byte{byte(i)}))
		b.bytes[i] = int32(i)
	}
	b.tokens = append(b.tokens, EndOfTextMarker)
	b.special = make([]bool, len(b.tokens))
	b.special[endOfTextID] = true
	b.index()
	return b
}

// newBPE appends tokens for merges to those of byteLevel.
func newBPE(pairs []pair) *BPE {
	b := byteLevel()
	for _, p := range pairs {
		b.merges = append(b.merges, merge{p, int32(len(b.tokens))})
		b.tokens = append(b.tokens, b.tokens[p.left]+b.tokens[p.right])
		b.special = append(b.special, false)
	}
	b.index()
	return b
}

// index prepares for encoding.
func (b *BPE) index() {
	b.ranks = make(map[pair]rank, len(b.merges))
	for i, m := range b.merges {
		b.ranks[m.pair] = rank{int32(i), m.id}
	}
	b.encoders.New = func() any { return &encoder{bpe: b, cache: map[string][]int32{}} }
}

// Kind is KindBPE.
func (b *BPE) Kind() string { return KindBPE }

// VocabSize counts the bytes, end-of-text and the merges.
func (b *BPE) VocabSize() int { return len(b.tokens) }

// EndOfText is 256 in a tokenizer that was trained here.
func (b *BPE) EndOfText() int32 { return b.endOfText }

// Encode gives the tokens of a text; none for an empty one.
func (b *BPE) Encode(text string) []int32 {
	e := b.encoders.Get().(*encoder)
	defer b.encoders.Put(e)
	ids := make([]int32, 0, len(text)/3+1)
	eachWord(text, func(word string) { ids = e.append(ids, word) })
	return ids
}

// Decode joins the tokens' bytes.
func (b *BPE) Decode(ids []int32) string {
	var text []byte
	for _, id := range ids {
		if id < 0 || int(id) >= len(b.tokens) || b.tokens[id] == "" {
			text = utf8.AppendRune(text, utf8.RuneError)
			continue
		}
		text = append(text, b.tokens[id]...)
	}
	return string(text)
}

func (b *BPE) String() string {
	return fmt.Sprintf("BPE of %d tokens, %d of them merges", len(b.tokens), len(b.merges))
}

const (
	maxCachedWord = 64      // bytes; longer words seldom come twice
	maxCached     = 1 << 16 // words
)

// encoder is one goroutine's work space.
type encoder struct {
	bpe   *BPE
	cache map[string][]int32
	parts []part
	queue queue[joint]
}

// part is a piece of the word that is being joined: a doubly linked list in one slice. -1 ends it.
type part struct{ id, prev, next int32 }

// joint is a pair that may be joined. It is out of date once either part has changed.
type joint struct {
	rank
	at   int32 // the left part
	pair pair
}

//lint:ignore U1000 queue calls it through its constraint
func (j joint) before(o joint) bool {
	return j.order < o.order || j.order == o.order && j.at < o.at
}

func (e *encoder) append(ids []int32, word string) []int32 {
	if cached, ok := e.cache[word]; ok {
		return append(ids, cached...)
	}
	start := len(ids)
	ids = e.join(ids, word)
	if len(word) <= maxCachedWord {
		if len(e.cache) >= maxCached {
			clear(e.cache)
		}
		e.cache[string([]byte(word))] = append([]int32(nil), ids[start:]...)
	}
	return ids
}

// join takes time n log n in the word's length.
func (e *encoder) join(ids []int32, word string) []int32 {
	e.parts, e.queue = e.parts[:0], e.queue[:0]
	for i := range len(word) {
		e.parts = append(e.parts, part{e.bpe.bytes[word[i]], int32(i - 1), int32(i + 1)})
	}
	e.parts[len(word)-1].next = -1
	for i := range len(word) - 1 {
		e.offer(int32(i))
	}
	for len(e.queue) > 0 {
		j := e.queue.pop()
		left := &e.parts[j.at]
		if left.id != j.pair.left || left.next < 0 || e.parts[left.next].id != j.pair.right {
			continue
		}
		gone := left.next
		left.id, left.next = j.id, e.parts[gone].next
		e.parts[gone].id = -1 // so that nothing joins it any more
		if left.next >= 0 {
			e.parts[left.next].prev = j.at
			e.offer(j.at)
		}
		if left.prev >= 0 {
			e.offer(left.prev)
		}
	}
	for i := int32(0); i >= 0; i = e.parts[i].next {
		ids = append(ids, e.parts[i].id)
	}
	return ids
}

// offer queues the pair of part i and the one after it, if it was learned.
func (e *encoder) offer(i int32) {
	p := pair{e.parts[i].id, e.parts[e.parts[i].next].id}
	if r, ok := e.bpe.ranks[p]; ok {
		e.queue.push(joint{r, i, p})
	}
}
