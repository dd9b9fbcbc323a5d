package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxTokenizerFile is far above the largest published vocabularies, whose files have some 30 MB.
const maxTokenizerFile = 256 << 20

// hfTokenizer is the part of Hugging Face's tokenizer.json that decides what a byte-level BPE does.
type hfTokenizer struct {
	AddedTokens  []hfAdded       `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer *struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		UseRegex       *bool  `json:"use_regex"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type         string            `json:"type"`
		Vocab        map[string]int64  `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Prefix       string            `json:"continuing_subword_prefix"`
		Suffix       string            `json:"end_of_word_suffix"`
	} `json:"model"`
}

type hfAdded struct {
	ID      int64  `json:"id"`
	Content string `json:"content"`
}

// LoadTokenizer reads a tokenizer.json: one that Save wrote, or another one that is a byte-level BPE with GPT-2's words and an
// <|endoftext|> token. A file without merges whose tokens are those of Byte is that.
//
// Special tokens other than end-of-text are decoded, and never encoded.
func LoadTokenizer(path string) (Tokenizer, error) {
	raw, err := readFile(path, maxTokenizerFile)
	if err != nil {
		return nil, err
	}
	tok, err := parseTokenizer(raw)
	if err != nil {
		return nil, fmt.Errorf("tokenizer file %s: %w", path, err)
	}
	return tok, nil
}

func parseTokenizer(raw []byte) (Tokenizer, error) {
	var f hfTokenizer
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	b, err := f.vocabulary()
	if err != nil {
		return nil, err
	}
	if err := f.merge(b); err != nil {
		return nil, err
	}
	if len(b.merges) == 0 && slices.Equal(b.tokens, byteLevel().tokens) {
		return Byte{}, nil
	}
	b.index()
	return b, nil
}

// check refuses what this package would encode differently.
func (f *hfTokenizer) check() error {
	switch m, p := f.Model, f.PreTokenizer; {
	case m.Type != "BPE" && m.Type != "": // early files leave it out
		return fmt.Errorf("its model is %q: only BPE can be read", m.Type)
	case p == nil || p.Type != "ByteLevel" || p.UseRegex != nil && !*p.UseRegex:
		return errors.New("its pre_tokenizer is not ByteLevel with GPT-2's words: no other can be read")
	case p.AddPrefixSpace:
		return errors.New("its pre_tokenizer has add_prefix_space, which would change the text: only tokenizers without it can be read")
	case len(f.Normalizer) > 0 && string(f.Normalizer) != "null":
		return errors.New("it has a normalizer, which would change the text: only tokenizers without one can be read")
	case m.ByteFallback || m.IgnoreMerges || m.Prefix != "" || m.Suffix != "":
		return errors.New("its model has byte_fallback, ignore_merges or affixes: only plain byte-level BPE can be read")
	}
	return nil
}

// vocabulary makes a BPE without merges.
func (f *hfTokenizer) vocabulary() (*BPE, error) {
	largest := int64(-1)
	for _, id := range f.Model.Vocab {
		largest = max(largest, id)
	}
	for _, a := range f.AddedTokens {
		largest = max(largest, a.ID)
	}
	if all := len(f.Model.Vocab) + len(f.AddedTokens); largest >= math.MaxInt32 || largest > 16*int64(all)+1024 {
		return nil, fmt.Errorf("its largest id is %d, but it has %d tokens", largest, all)
	}
	b := &BPE{tokens: make([]string, largest+1), special: make([]bool, largest+1), endOfText: -1}
	for i := range b.bytes {
		b.bytes[i] = -1
	}
	for _, a := range f.AddedTokens {
		if a.ID < 0 || a.Content == "" || b.special[a.ID] && b.tokens[a.ID] != a.Content {
			return nil, fmt.Errorf("added token %q cannot have id %d", a.Content, a.ID)
		}
		b.tokens[a.ID], b.special[a.ID] = a.Content, true
		if a.Content == EndOfTextMarker {
			b.endOfText = int32(a.ID)
		}
	}
	if b.endOfText < 0 {
		return nil, fmt.Errorf("it has no added token %s", EndOfTextMarker)
	}
	for written, id := range f.Model.Vocab {
		if err := b.addToken(written, id); err != nil {
			return nil, err
		}
	}
	for i, id := range b.bytes {
		if id < 0 {
			return nil, fmt.Errorf("it has no token for byte %d: only byte-level BPE can be read", i)
		}
	}
	return b, nil
}

func (b *BPE) addToken(written string, id int64) error {
	if id >= 0 && b.special[id] && b.tokens[id] == written {
		return nil // an added token, listed here too
	}
	text, ok := readBytes(written)
	if !ok {
		return fmt.Errorf("token %q is not written in GPT-2's letters for bytes", written)
	}
	if id < 0 || text == "" || b.tokens[id] != "" {
		return fmt.Errorf("token %q cannot have id %d", written, id)
	}
	b.tokens[id] = text
	if len(text) == 1 {
		b.bytes[text[0]] = int32(id)
	}
	return nil
}

// merge reads the merges, written "a b" or ["a", "b"].
func (f *hfTokenizer) merge(b *BPE) error {
	seen := make(map[pair]bool, len(f.Model.Merges))
	for i, raw := range f.Model.Merges {
		var whole string
		var parts []string
		if json.Unmarshal(raw, &whole) == nil {
			parts = strings.Split(whole, " ")
		} else if err := json.Unmarshal(raw, &parts); err != nil {
			return fmt.Errorf("merge %d is neither a text nor a pair of texts", i)
		}
		if len(parts) != 2 {
			return fmt.Errorf("merge %d has %d parts instead of 2", i, len(parts))
		}
		left, ok1 := f.Model.Vocab[parts[0]]
		right, ok2 := f.Model.Vocab[parts[1]]
		id, ok3 := f.Model.Vocab[parts[0]+parts[1]]
		p := pair{int32(left), int32(right)}
		if !ok1 || !ok2 || !ok3 || b.special[left] || b.special[right] || b.special[id] || seen[p] {
			return fmt.Errorf("merge %d, of %q and %q, is of tokens that are not in the vocabulary, or comes twice", i, parts[0], parts[1])
		}
		seen[p] = true
		b.merges = append(b.merges, merge{p, int32(id)})
	}
	return nil
}

// Save writes tokenizer.json. The file is replaced as a whole or not at all.
func (b *BPE) Save(path string) error {
	var buf bytes.Buffer
	b.write(bufio.NewWriter(&buf))
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(buf.Bytes())
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// write lists the vocabulary by id, which a JSON encoder of maps would not.
func (b *BPE) write(w *bufio.Writer) {
	quote := func(s string) string {
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			panic("data: a token that is no JSON text")
		}
		return strings.TrimSuffix(out.String(), "\n")
	}
	fmt.Fprint(w, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [")
	sep := ""
	for id, special := range b.special {
		if special {
			fmt.Fprintf(w, "%s\n    {\"id\": %d, \"content\": %s, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}", sep, id, quote(b.tokens[id]))
			sep = ","
		}
	}
	fmt.Fprint(w, "\n  ],\n  \"normalizer\": null,\n"+
		"  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true},\n"+
		"  \"post_processor\": null,\n"+
		"  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true},\n"+
		"  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n"+
		"    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {")
	sep = ""
	for id, text := range b.tokens {
		if text != "" {
			if !b.special[id] {
				text = writeBytes(text)
			}
			fmt.Fprintf(w, "%s\n      %s: %d", sep, quote(text), id)
			sep = ","
		}
	}
	fmt.Fprint(w, "\n    },\n    \"merges\": [")
	sep = ""
	for _, m := range b.merges {
		fmt.Fprintf(w, "%s\n      %s", sep, quote(writeBytes(b.tokens[m.pair.left])+" "+writeBytes(b.tokens[m.pair.right])))
		sep = ","
	}
	fmt.Fprint(w, "\n    ]\n  }\n}\n")
	w.Flush()
}

// byteLetters are GPT-2's letters for bytes: a byte that is a visible character of Latin-1 stands for itself, the others, in order, for the
// characters from 256.
var byteLetters, letterBytes = func() (letters [256]rune, values map[rune]byte) {
	values = map[rune]byte{}
	next := rune(256)
	for i := range rune(256) {
		letters[i] = i
		if !(i >= '!' && i <= '~' || i >= '¡' && i <= '¬' || i >= '®' && i <= 'ÿ') {
			letters[i] = next
			next++
		}
		values[letters[i]] = byte(i)
	}
	return letters, values
}()

func writeBytes(text string) string {
	var out []byte
	for i := range len(text) {
		out = utf8.AppendRune(out, byteLetters[text[i]])
	}
	return string(out)
}

func readBytes(written string) (string, bool) {
	var out []byte
	for _, r := range written {
		b, ok := letterBytes[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}
