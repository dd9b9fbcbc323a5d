package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var oddTexts = []string{
	"", "a", " ", "\n", "aaaaaaaa", "it's we'll  two  spaces\t\ttabs\r\n", "héllo wörld ñ 日本語 🙂", "<|endoftext|>",
	"\xff\xfe\x00broken \xc3", "123 456,789!?", " 's 't don't can'T", strings.Repeat("the cat sat ", 50),
}

func trained(t testing.TB, vocab int) *BPE {
	t.Helper()
	tok, err := TrainBPE(NewStories(1, "train").Docs(50<<10), vocab)
	require.NoError(t, err)
	return tok
}

func TestTokenizersComeBack(t *testing.T) {
	for _, tok := range []Tokenizer{Byte{}, trained(t, 257), trained(t, 400)} {
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		require.NoError(t, tok.Save(path))
		loaded, err := LoadTokenizer(path)
		require.NoError(t, err)
		require.Equal(t, tok.VocabSize(), loaded.VocabSize())
		require.Equal(t, tok.EndOfText(), loaded.EndOfText())
		for _, text := range oddTexts {
			ids := tok.Encode(text)
			require.Equal(t, text, tok.Decode(ids), "%T", tok)
			require.Equal(t, ids, loaded.Encode(text))
			require.Equal(t, text, loaded.Decode(ids))
			require.NotContains(t, ids, tok.EndOfText(), "text never becomes end-of-text")
		}
	}
}

// The rule by the letter: count all pairs, join the most frequent, the smallest first among equals.
func TestTrainBPEAgainstRecounting(t *testing.T) {
	texts := []string{"low lower lowest newer newest wider widest aaaa aaaa", "low low new newer 11 11 1111"}
	tok, err := TrainBPE(texts, 290)
	require.NoError(t, err)
	var words [][]int32
	for _, text := range texts {
		rest := text
		for rest != "" { // these texts have only words that take the space before them
			end := strings.IndexByte(rest[1:], ' ')
			if end < 0 {
				end = len(rest) - 1
			}
			words = append(words, Byte{}.Encode(rest[:end+1]))
			rest = rest[end+1:]
		}
	}
	next := int32(257)
	for ; next < 290; next++ {
		counts := map[[2]int32]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				counts[[2]int32{w[i-1], w[i]}]++
			}
		}
		best, n := [2]int32{}, 1
		for p, c := range counts {
			if c > n || c == n && n > 1 && (p[0] < best[0] || p[0] == best[0] && p[1] < best[1]) {
				best, n = p, c
			}
		}
		if n < 2 {
			break
		}
		for j, w := range words {
			var joined []int32
			for i := 0; i < len(w); i++ {
				if i+1 < len(w) && w[i] == best[0] && w[i+1] == best[1] {
					joined = append(joined, next)
					i++
				} else {
					joined = append(joined, w[i])
				}
			}
			words[j] = joined
		}
	}
	require.Equal(t, int(next), tok.VocabSize())
	var got, want []int32
	for _, text := range texts {
		got = append(got, tok.Encode(text)...)
	}
	for _, w := range words {
		want = append(want, w...)
	}
	require.Equal(t, want, got)
}

func TestGPT2Words(t *testing.T) {
	// A merge of two letters works inside a word only, so the pieces show the cuts.
	for text, want := range map[string][]string{
		"Hello world":   {"Hello", " world"},
		"it's 12 dogs!": {"it", "'s", " 12", " dogs", "!"},
		"a  b":          {"a", " ", " b"},
		"end \n":        {"end", " \n"},
		"x_y  ":         {"x", "_", "y", "  "},
		"we'LL ...":     {"we", "'", "LL", " ..."},
	} {
		var got []string
		for rest := text; rest != ""; {
			n := wordLen(rest)
			got, rest = append(got, rest[:n]), rest[n:]
		}
		require.Equal(t, want, got, text)
	}
}

func TestLoadTokenizerRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := LoadTokenizer(filepath.Join(dir, "none.json"))
	require.ErrorContains(t, err, "none.json")
	for name, text := range map[string]string{
		"empty.json": "", "list.json": "[]", "other.json": `{"model":{"type":"Unigram"}}`, "cut.json": `{"model":`,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, err := LoadTokenizer(path)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestSavedTokenizerIsHuggingFaceForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, trained(t, 300).Save(path))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var f struct {
		AddedTokens []struct {
			Content string
			ID      int
		} `json:"added_tokens"`
		Model struct {
			Type   string
			Vocab  map[string]int
			Merges []any
		}
	}
	require.NoError(t, json.Unmarshal(raw, &f))
	require.Equal(t, "BPE", f.Model.Type)
	require.Equal(t, 300-257, len(f.Model.Merges))
	require.Equal(t, EndOfTextMarker, f.AddedTokens[0].Content)
	require.Equal(t, 256, f.AddedTokens[0].ID)
}

func FuzzBPERoundTrip(f *testing.F) {
	tok := trained(f, 400)
	for _, s := range oddTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		require.Equal(t, s, tok.Decode(tok.Encode(s)))
		require.Equal(t, s, Byte{}.Decode(Byte{}.Encode(s)))
	})
}

func BenchmarkTrainBPE(b *testing.B) {
	docs := NewStories(1, "train").Docs(1 << 20)
	for b.Loop() {
		_, err := TrainBPE(docs, 512)
		require.NoError(b, err)
	}
}
