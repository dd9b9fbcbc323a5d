package data

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// oddTexts are what tokenizers and files trip over.
var oddTexts = []string{
	"", " ", "a", "\x00", "\xff", "\xc3\x28", "\xed\xa0\x80", "a\xf0\x9f\x98", EndOfTextMarker, "x" + EndOfTextMarker + "\n",
	"naïve café\r\n", "日本語 テキスト", "👍🏽👩‍👩‍👧", "\ufeffmark", "\ufffd", strings.Repeat("a", 1000), strings.Repeat("ab ", 300), "\n\n\n \t  x",
	"don't 'll ''", "{\"json\": [1, 2]}", "Ġ Ċ Ā",
}

func trainBPE(t testing.TB, vocab int, texts ...string) *BPE {
	t.Helper()
	b, err := TrainBPE(texts, vocab)
	require.NoError(t, err)
	return b
}

func storyText(n int) string { return strings.Join(NewStories(1, "test").Docs(n), "\n") }

func TestByte(t *testing.T) {
	require.Equal(t, []int32{104, 195, 169, 255}, Byte{}.Encode("hé\xff"))
	require.Equal(t, "a"+EndOfTextMarker+"\ufffd\ufffdb", Byte{}.Decode([]int32{97, 256, 257, -1, 98}))
	require.Equal(t, 257, Byte{}.VocabSize())
}

func TestRoundTrip(t *testing.T) {
	for name, tok := range map[string]Tokenizer{
		"byte":     Byte{},
		"no merge": trainBPE(t, 257),
		"stories":  trainBPE(t, 400, storyText(20_000)),
		"odd":      trainBPE(t, 600, oddTexts...),
	} {
		for _, text := range oddTexts {
			ids := tok.Encode(text)
			require.Equal(t, text, tok.Decode(ids), "%s: %q", name, text)
			require.NotContains(t, ids, tok.EndOfText(), "text never becomes end-of-text")
			for _, id := range ids {
				require.True(t, id >= 0 && int(id) < tok.VocabSize())
			}
			require.Equal(t, ids, tok.Encode(text), "the second time comes from the cache")
		}
	}
}

func FuzzBPERoundTrip(f *testing.F) {
	b := trainBPE(f, 700, append(oddTexts, storyText(20_000))...)
	for _, text := range oddTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := b.Encode(text)
		if b.Decode(ids) != text {
			t.Fatalf("%q becomes %v, which is %q", text, ids, b.Decode(ids))
		}
		if want := encodeNaively(b, text); !equalIDs(want, ids) {
			t.Fatalf("%q becomes %v, want %v", text, ids, want)
		}
	})
}

func FuzzByteRoundTrip(f *testing.F) {
	f.Add("a\xff")
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, text, Byte{}.Decode(Byte{}.Encode(text)))
	})
}

func equalIDs(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// encodeNaively joins, again and again, the pair that was learned first, at its leftmost place.
func encodeNaively(b *BPE, text string) []int32 {
	var all []int32
	for _, word := range words(text) {
		ids := Byte{}.Encode(word)
		for i, id := range ids {
			ids[i] = b.bytes[id]
		}
		for {
			best, at := len(b.merges), -1
			for i := 1; i < len(ids); i++ {
				if r, ok := b.ranks[pair{ids[i-1], ids[i]}]; ok && int(r.order) < best {
					best, at = int(r.order), i-1
				}
			}
			if at < 0 {
				break
			}
			ids = append(append(append([]int32(nil), ids[:at]...), b.merges[best].id), ids[at+2:]...)
		}
		all = append(all, ids...)
	}
	return all
}

// trainNaively counts all pairs anew for each merge.
func trainNaively(texts []string, vocab int) []pair {
	var list [][]int32
	for _, text := range texts {
		for _, word := range words(text) {
			list = append(list, Byte{}.Encode(word))
		}
	}
	var merges []pair
	for firstMerge+len(merges) < vocab {
		counts := map[pair]int{}
		for _, ids := range list {
			for i := 1; i < len(ids); i++ {
				counts[pair{ids[i-1], ids[i]}]++
			}
		}
		best, most := pair{}, 1
		for p, n := range counts {
			if n > most || n == most && n > 1 && (p.left < best.left || p.left == best.left && p.right < best.right) {
				best, most = p, n
			}
		}
		if most < 2 {
			break
		}
		for k, ids := range list {
			var joined []int32
			for i := 0; i < len(ids); i++ {
				if i+1 < len(ids) && (pair{ids[i], ids[i+1]}) == best {
					joined = append(joined, int32(firstMerge+len(merges)))
					i++
				} else {
					joined = append(joined, ids[i])
				}
			}
			list[k] = joined
		}
		merges = append(merges, best)
	}
	return merges
}

func TestTrainBPEAgreesWithCountingAnew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := map[string][]string{
		"stories": {storyText(6000)}, "odd": oddTexts, "runs": {"aaaa aaa aaaaaaa", "abababab babab aabbaabb"},
	}
	for _, letters := range []string{"ab", "abc ", "a b"} { // few letters: many ties, many overlaps
		var text strings.Builder
		for range 400 {
			text.WriteByte(letters[r.IntN(len(letters))])
		}
		texts[letters] = []string{text.String()}
	}
	for name, docs := range texts {
		want := trainNaively(docs, 340)
		b := trainBPE(t, 340, docs...)
		require.Len(t, b.merges, len(want), name)
		for i, m := range b.merges {
			require.Equal(t, want[i], m.pair, "%s: merge %d", name, i)
		}
	}
}

func TestTrainBPETakesTheSmallestOfEqualPairs(t *testing.T) {
	// Each pair of "xy", "ab" and "ac" occurs twice, and none other.
	b := trainBPE(t, 1000, "xy", "ac", "ab", "xy", "ab", "ac")
	require.Equal(t, []pair{{'a', 'b'}, {'a', 'c'}, {'x', 'y'}}, []pair{b.merges[0].pair, b.merges[1].pair, b.merges[2].pair})
	require.Equal(t, 260, b.VocabSize())
}

func TestTrainBPEOnLittle(t *testing.T) {
	_, err := TrainBPE(nil, 256)
	require.EqualError(t, err, "vocabulary of 256 tokens: a BPE needs at least 257, the 256 bytes and end-of-text")
	for _, texts := range [][]string{nil, {}, {""}, {"a"}, {"abc"}, {"a", "b"}} {
		b := trainBPE(t, 300, texts...)
		require.Equal(t, 257, b.VocabSize(), "%q", texts)
	}
	require.Equal(t, 258, trainBPE(t, 300, "ab", "ab").VocabSize())
}

// A word as long as a file must not take quadratic time: at a million bytes that would be hours.
func TestOneLongWord(t *testing.T) {
	text := strings.Repeat("acgtacca", 1<<17)
	b := trainBPE(t, 300, text)
	require.Equal(t, text, b.Decode(b.Encode(text)))
}

func TestEncodeFromManyGoroutines(t *testing.T) {
	text := storyText(20_000)
	b := trainBPE(t, 400, text)
	want := b.Encode(text)
	var wg sync.WaitGroup
	got := make([][]int32, 8)
	for i := range got {
		wg.Go(func() { got[i] = b.Encode(text) })
	}
	wg.Wait()
	for _, ids := range got {
		require.Equal(t, want, ids)
	}
}

func TestEncodeWithAFullCache(t *testing.T) {
	b := trainBPE(t, 300, storyText(5000))
	e := b.encoders.New().(*encoder)
	var letters [4]byte
	for i := range maxCached + 2 {
		for k := range letters {
			letters[k] = 'a' + byte(i>>(4*k)&15)
		}
		word := string(letters[:])
		require.True(t, equalIDs(e.append(nil, word), e.append(nil, word)))
		require.LessOrEqual(t, len(e.cache), maxCached)
	}
}

func TestDecodeWhatIsNoToken(t *testing.T) {
	b := trainBPE(t, 300, storyText(5000))
	require.Equal(t, "\ufffda\ufffd"+EndOfTextMarker, b.Decode([]int32{-1, 'a', 300, 256}))
	require.Empty(t, b.Decode(nil))
}

func TestTokens(t *testing.T) {
	require.Equal(t, []int32{256}, Tokens(Byte{}, nil))
	require.Equal(t, []int32{256, 'a', 'b', 256, 256, 'c', 256}, Tokens(Byte{}, []string{"ab", "", "c"}))
}

func TestUnigramEntropy(t *testing.T) {
	require.Zero(t, UnigramEntropy(nil, 3))
	require.Zero(t, UnigramEntropy([]int32{2, 2}, 3))
	require.InDelta(t, math.Ln2, UnigramEntropy([]int32{0, 2, 2, 0}, 3), 1e-15)
	require.InDelta(t, 0.75*math.Log(4./3)+0.25*math.Log(4), UnigramEntropy([]int32{1, 1, 0, 1}, 2), 1e-15)
	for _, id := range []int32{-1, 3} {
		require.PanicsWithValue(t, "data: token outside of the vocabulary", func() { UnigramEntropy([]int32{id}, 3) })
	}
}

func BenchmarkTrainBPE(b *testing.B) {
	text := []string{storyText(1 << 20)}
	b.SetBytes(1 << 20)
	for b.Loop() {
		trainBPE(b, 512, text...)
	}
}

// Random words, which make for more merges than stories do.
func BenchmarkTrainBPE4096(b *testing.B) {
	text := []string{randomWords(1 << 20)}
	b.SetBytes(1 << 20)
	for b.Loop() {
		trainBPE(b, 4096, text...)
	}
}

func BenchmarkEncode(b *testing.B) {
	text := randomWords(1 << 20)
	tok := trainBPE(b, 4096, text)
	b.SetBytes(1 << 20)
	for b.Loop() {
		tok.Encode(text)
	}
}

// randomWords are syllables in a row, frequent ones first, as in language.
func randomWords(n int) string {
	r := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(r, 1.1, 4, 199)
	var text strings.Builder
	for text.Len() < n {
		for range 1 + r.IntN(3) {
			s := zipf.Uint64()
			text.WriteString(string("bcdfghklmnprstvwxyzj"[s%20]) + string("aeiou"[s/20%5]) + string(" nrst"[s/100*2:][:1]))
		}
		text.WriteByte(' ')
	}
	return text.String()
}
