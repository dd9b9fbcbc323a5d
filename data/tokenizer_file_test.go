package data

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSavedTokenizersComeBack(t *testing.T) {
	for _, tok := range []Tokenizer{Byte{}, trainBPE(t, 257), trainBPE(t, 400, storyText(20_000)), trainBPE(t, 600, oddTexts...)} {
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		for range 2 { // the second time over an existing file
			require.NoError(t, tok.Save(path))
		}
		loaded, err := LoadTokenizer(path)
		require.NoError(t, err)
		require.Equal(t, tok.VocabSize(), loaded.VocabSize())
		require.Equal(t, tok.EndOfText(), loaded.EndOfText())
		for _, text := range oddTexts {
			require.Equal(t, tok.Encode(text), loaded.Encode(text), "%q", text)
			require.Equal(t, text, loaded.Decode(tok.Encode(text)))
		}
		require.Equal(t, EndOfTextMarker, loaded.Decode([]int32{loaded.EndOfText()}))
		again := filepath.Join(t.TempDir(), "again.json")
		require.NoError(t, loaded.Save(again))
		first, err := os.ReadFile(path)
		require.NoError(t, err)
		second, err := os.ReadFile(again)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing is left beside the file")
	}
	require.Error(t, Byte{}.Save(filepath.Join(t.TempDir(), "no", "such", "folder.json")))
}

func TestKindsComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	require.NoError(t, Byte{}.Save(path))
	tok, err := LoadTokenizer(path)
	require.NoError(t, err)
	require.Equal(t, KindByte, tok.Kind())
	require.NoError(t, trainBPE(t, 300, storyText(5000)).Save(path))
	tok, err = LoadTokenizer(path)
	require.NoError(t, err)
	require.Equal(t, KindBPE, tok.Kind())
}

// What other programs look for in the file.
func TestSavedTokenizerIsHuggingFaceForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	b := trainBPE(t, 300, "the the the \u00e9\u00e9 \u00e9\u00e9\n\n\n\n")
	require.NoError(t, b.Save(path))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var f struct {
		AddedTokens []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		PreTokenizer map[string]any `json:"pre_tokenizer"`
		Decoder      map[string]any
		Model        struct {
			Type   string
			Vocab  map[string]int
			Merges []string
		}
	}
	require.NoError(t, json.Unmarshal(raw, &f))
	require.Equal(t, "BPE", f.Model.Type)
	require.Equal(t, "ByteLevel", f.PreTokenizer["type"])
	require.Equal(t, false, f.PreTokenizer["add_prefix_space"])
	require.Equal(t, "ByteLevel", f.Decoder["type"])
	require.Len(t, f.Model.Vocab, b.VocabSize())
	require.Equal(t, 256, f.Model.Vocab[EndOfTextMarker])
	require.Equal(t, 256, f.AddedTokens[0].ID)
	require.True(t, f.AddedTokens[0].Special)
	// GPT-2's letters: Ġ is the space, Ċ the line feed, and é two letters of Latin-1.
	for written, id := range map[string]int{"!": '!', "Ġ": ' ', "Ċ": '\n', "Ã": 0xc3, "Ā": 0, "Ń": 0xad, "ÿ": 255, "ġ": 0x7f} {
		require.Equal(t, id, f.Model.Vocab[written], written)
	}
	require.Contains(t, f.Model.Merges, "Ã ©")
	for i, merge := range f.Model.Merges {
		require.Equal(t, 257+i, f.Model.Vocab[strings.ReplaceAll(merge, " ", "")])
	}
}

// writeTokenizer writes a file as another program might: ids in another order, merges as pairs, a gap, and a second special token.
func writeTokenizer(t *testing.T, change func(f map[string]any)) string {
	t.Helper()
	vocab := map[string]int{}
	for i := range 256 {
		vocab[string(byteLetters[i])] = 300 - i
	}
	vocab["ab"], vocab["abĠ"] = 1, 2
	model := map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{[]string{"a", "b"}, []string{"ab", "Ġ"}}}
	f := map[string]any{
		"added_tokens":  []any{map[string]any{"id": 400, "content": EndOfTextMarker}, map[string]any{"id": 0, "content": "<pad>"}},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false},
		"model":         model,
	}
	change(f)
	raw, err := json.Marshal(f)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "other.json")
	require.NoError(t, os.WriteFile(path, raw, 0o666))
	return path
}

func TestLoadAnotherTokenizer(t *testing.T) {
	tok, err := LoadTokenizer(writeTokenizer(t, func(map[string]any) {}))
	require.NoError(t, err)
	require.Equal(t, 401, tok.VocabSize())
	require.Equal(t, int32(400), tok.EndOfText())
	require.Equal(t, []int32{1, 300 - ' ', 1}, tok.Encode("ab ab"))
	require.Equal(t, "<pad>ab\ufffd", tok.Decode([]int32{0, 1, 399}))
	require.Equal(t, "<pad>", tok.Decode(tok.Encode("<pad>")))
	path := filepath.Join(t.TempDir(), "saved.json")
	require.NoError(t, tok.Save(path))
	again, err := LoadTokenizer(path)
	require.NoError(t, err)
	for _, text := range oddTexts {
		require.Equal(t, tok.Encode(text), again.Encode(text))
	}
}

func TestLoadTokenizerRefuses(t *testing.T) {
	set := func(section, key string, value any) func(map[string]any) {
		return func(f map[string]any) { f[section].(map[string]any)[key] = value }
	}
	vocab := func(token string, id int) func(map[string]any) {
		return func(f map[string]any) { f["model"].(map[string]any)["vocab"].(map[string]int)[token] = id }
	}
	for want, change := range map[string]func(map[string]any){
		"only BPE":              set("model", "type", "Unigram"),
		"byte_fallback":         set("model", "byte_fallback", true),
		"no other can be":       set("pre_tokenizer", "type", "Whitespace"),
		"not ByteLevel":         func(f map[string]any) { delete(f, "pre_tokenizer") },
		"GPT-2's words":         set("pre_tokenizer", "use_regex", false),
		"add_prefix_space":      set("pre_tokenizer", "add_prefix_space", true),
		"normalizer":            func(f map[string]any) { f["normalizer"] = map[string]any{"type": "NFC"} },
		"no added token":        func(f map[string]any) { f["added_tokens"] = nil },
		"cannot have id 0":      vocab("abc", 0),
		"cannot have id -1":     vocab("abc", -1),
		"cannot have id 45":     vocab("\u0121x", 45),
		"GPT-2's letters":       vocab("a b", 310),
		"largest id":            vocab("abc", 1<<30),
		"no token for byte 0":   func(f map[string]any) { delete(f["model"].(map[string]any)["vocab"].(map[string]int), "Ā") },
		"3 parts":               set("model", "merges", []string{"a b c"}),
		"1 parts":               set("model", "merges", []any{[]string{"a"}}),
		"neither":               set("model", "merges", []any{7}),
		"not in the vocabulary": set("model", "merges", []string{"a c"}),
		"comes twice":           set("model", "merges", []string{"a b", "a b"}),
	} {
		path := writeTokenizer(t, change)
		_, err := LoadTokenizer(path)
		require.ErrorContains(t, err, want, want)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
	}
	dir := t.TempDir()
	for i, text := range []string{"", "[]", "null", "{", `{"model":{"type":"BPE","vocab":{"a":1.5}}}`, "\x00"} {
		path := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, err := LoadTokenizer(path)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := LoadTokenizer(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "does not exist: check the path")
	_, err = LoadTokenizer(dir)
	require.ErrorContains(t, err, "is not a file")
}

func FuzzParseTokenizer(f *testing.F) {
	path := filepath.Join(f.TempDir(), "tokenizer.json")
	require.NoError(f, trainBPE(f, 260, "abab abab").Save(path))
	raw, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		tok, err := parseTokenizer(raw)
		if err != nil {
			return
		}
		const text = "ab abab\xff"
		require.Equal(t, text, tok.Decode(tok.Encode(text)))
	})
}
