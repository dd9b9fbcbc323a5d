package data

import (
	"math"
	"unicode/utf8"
)

// Tokenizer turns text into tokens and back. For any text at all, valid UTF-8 or not, Decode(Encode(text)) is text.
type Tokenizer interface {
	// Kind is KindByte or KindBPE.
	Kind() string
	// VocabSize is one more than the largest token.
	VocabSize() int
	// EndOfText is the token between documents. Encode never gives it.
	EndOfText() int32
	// Encode gives the tokens of a text.
	Encode(text string) []int32
	// Decode gives the text of tokens: end-of-text is written <|endoftext|>, and what is no token at all U+FFFD. A character may
	// span tokens, so that a part of a sequence need not be valid UTF-8.
	Decode(ids []int32) string
	// Save writes the tokenizer to a file that LoadTokenizer reads, in the form of Hugging Face's tokenizer.json.
	Save(path string) error
}

// The kinds of tokenizers.
const (
	KindByte = "byte" // a token is a byte
	KindBPE  = "bpe"  // byte pair encoding
)

// EndOfTextMarker is end-of-text, written out: between documents in a file, and in a tokenizer's file.
const EndOfTextMarker = "<|endoftext|>"

// firstMerge is the id that follows those of the bytes and of end-of-text in tokenizers of this package.
const (
	endOfTextID = 256
	firstMerge  = 257
)

// Byte is the tokenizer without a vocabulary: tokens 0 to 255 are the bytes, and 256 is end-of-text.
type Byte struct{}

var _ Tokenizer = Byte{}

// Kind is KindByte.
func (Byte) Kind() string { return KindByte }

// VocabSize is 257.
func (Byte) VocabSize() int { return firstMerge }

// EndOfText is 256.
func (Byte) EndOfText() int32 { return endOfTextID }

// Encode gives the bytes.
func (Byte) Encode(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

// Decode gives the bytes back.
func (Byte) Decode(ids []int32) string {
	text := make([]byte, 0, len(ids))
	for _, id := range ids {
		switch {
		case id >= 0 && id < 256:
			text = append(text, byte(id))
		case id == endOfTextID:
			text = append(text, EndOfTextMarker...)
		default:
			text = utf8.AppendRune(text, utf8.RuneError)
		}
	}
	return string(text)
}

// Save writes a BPE without merges, which is the same thing.
func (Byte) Save(path string) error { return byteLevel().Save(path) }

// Tokens joins documents to one sequence of tokens: end-of-text, then each document and end-of-text after it.
func Tokens(tok Tokenizer, docs []string) []int32 {
	ids := []int32{tok.EndOfText()}
	for _, doc := range docs {
		ids = append(append(ids, tok.Encode(doc)...), tok.EndOfText())
	}
	return ids
}

// UnigramEntropy is the entropy of a sequence's tokens taken one by one, in nats per token: what a model reaches that knows how often
// each token occurs, and nothing of their order. It panics on a token outside of the vocabulary.
func UnigramEntropy(tokens []int32, vocab int) float64 {
	counts := make([]int, vocab)
	for _, id := range tokens {
		if id < 0 || int(id) >= vocab {
			panic("data: token outside of the vocabulary")
		}
		counts[id]++
	}
	h := 0.0
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / float64(len(tokens))
			h -= p * math.Log(p)
		}
	}
	return h
}
