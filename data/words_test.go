package data

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func words(text string) []string {
	var list []string
	eachWord(text, func(word string) { list = append(list, word) })
	return list
}

// The rules of words.go, one case each. The expected words follow from GPT-2's pattern by hand.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         nil,
		"a":                        {"a"},
		" ":                        {" "},
		"  ":                       {"  "},
		"Hello world":              {"Hello", " world"},
		"it's they'll I'm we'd":    {"it", "'s", " they", "'ll", " I", "'m", " we", "'d"},
		"you're I've can't":        {"you", "'re", " I", "'ve", " can", "'t"},
		"'sad":                     {"'s", "ad"},
		"IT'S":                     {"IT", "'", "S"},
		"'l 'r":                    {"'", "l", " '", "r"},
		" 'til":                    {" '", "til"},
		"''s":                      {"''", "s"},
		"x2y 10.5":                 {"x", "2", "y", " 10", ".", "5"},
		"well...  then":            {"well", "...", " ", " then"},
		"a\n\nb":                   {"a", "\n", "\n", "b"},
		"a\n b":                    {"a", "\n", " b"},
		"a \n":                     {"a", " \n"},
		"tab\tx":                   {"tab", "\t", "x"},
		"\t\tx":                    {"\t", "\t", "x"},
		"no\u00a0break":            {"no", "\u00a0", "break"},
		"a \u2003b":                {"a", " ", "\u2003", "b"},
		"naïve café":               {"naïve", " café"},
		"中文 字":                     {"中文", " 字"},
		"½Ⅷ２":                      {"½Ⅷ２"},
		"a\xff\xfeb":               {"a", "\xff\xfe", "b"},
		" \xc3":                    {" \xc3"},
		"e\u0301":                  {"e", "\u0301"},
		"\"Oh!\" said Tom, \"no\"": {"\"", "Oh", "!\"", " said", " Tom", ",", " \"", "no", "\""},
	} {
		require.Equal(t, want, words(text), "%q", text)
	}
}

// Every character has the class of the Unicode category that the pattern names.
func TestRuneClass(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := other
		switch {
		case unicode.Is(unicode.L, r):
			want = letter
		case unicode.Is(unicode.N, r):
			want = number
		case unicode.Is(unicode.White_Space, r):
			want = space
		}
		if !utf8.ValidRune(r) {
			continue
		}
		if c, n := classAt(string(r)); c != want || n != utf8.RuneLen(r) {
			t.Fatalf("%U: class %d of %d bytes, want %d", r, c, n, want)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("it's  a\n\ttest 12'34")
	f.Add("\xff'll \u2003")
	f.Fuzz(func(t *testing.T, text string) {
		list := words(text)
		require.Equal(t, text, strings.Join(list, ""))
		for _, word := range list {
			require.NotEmpty(t, word)
		}
	})
}
