package data

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// BPE never joins bytes of different words. The words of a text are GPT-2's (Radford et al. 2019): the leftmost of
//
//	's 't 're 've 'm 'll 'd | " "?\p{L}+ | " "?\p{N}+ | " "?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
//
// one after the other, so that a word takes the space before it with it. A byte that is no UTF-8 counts as neither letter, number nor space.

// class is what a character is to the rules above.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = runeClass(r)
	}
	return t
}()

func runeClass(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// classAt gives the class and the length of the first character of s, which is not empty.
func classAt(s string) (class, int) {
	if s[0] < utf8.RuneSelf {
		return asciiClass[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return runeClass(r), n
}

// run is the length of the characters of class c at the start of s.
func run(s string, c class) int {
	n := 0
	for n < len(s) {
		ci, ni := classAt(s[n:])
		if ci != c {
			break
		}
		n += ni
	}
	return n
}

// contraction is the length of the ending that s starts with, 0 if there is none.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if strings.HasPrefix(s, "'re") || strings.HasPrefix(s, "'ve") || strings.HasPrefix(s, "'ll") {
		return 3
	}
	return 0
}

// wordLen is the length of the first word of s, which is not empty.
func wordLen(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	if s[0] == ' ' && len(s) > 1 {
		if c, _ := classAt(s[1:]); c != space {
			return 1 + run(s[1:], c)
		}
	}
	c, _ := classAt(s)
	n := run(s, c)
	if c != space || n == len(s) {
		return n
	}
	// The last space of a run belongs to what follows, or stands alone.
	_, last := utf8.DecodeLastRuneInString(s[:n])
	if last == n {
		return n
	}
	return n - last
}

// eachWord calls f with the words of text in order.
func eachWord(text string, f func(word string)) {
	for len(text) > 0 {
		n := wordLen(text)
		f(text[:n])
		text = text[n:]
	}
}
