package data

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// writeFile writes a file below dir, and the folders that it needs.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

func TestLoadTextFile(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string][]string{
		"a":                    {"a"},
		"a\n":                  {"a\n"},
		"\ufeffa\ufeff":        {"a\ufeff"},
		"a\r\nb\rc\r\r\n":      {"a\nb\nc\n\n"},
		" é日\U0001F642\ufffd ": {" é日\U0001F642\ufffd "},
		"a<|endoftext|>b":      {"a", "b"},
		"a\n\n<|endoftext|>\n\nb\n<|endoftext|>\n":                           {"a\n", "\nb"},
		"a\r\n<|endoftext|>\r\nb":                                            {"a", "b"},
		"<|endoftext|>\n<|endoftext|> \n <|endoftext|>x<|endoftext|":         {"x<|endoftext|"},
		"tab\t\v\f\x1b control characters are text, but for zero bytes \x7f": {"tab\t\v\f\x1b control characters are text, but for zero bytes \x7f"},
	} {
		got, err := LoadText(writeFile(t, dir, "x", text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got.Docs, "%q", text)
		require.Equal(t, []string{"x"}, got.Files)
	}
}

func TestLoadTextRefuses(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":                              "is empty: give a file with text in it",
		" \n\t\n":                       "is empty: give a file with text in it",
		"\ufeff":                        "is empty: give a file with text in it",
		"<|endoftext|>\n":               "is empty: give a file with text in it",
		"text\x00":                      "byte 4 is zero, as in a binary file: give a UTF-8 text file",
		"caf\xe9":                       "byte 3 (0xe9) is not UTF-8: convert it to UTF-8",
		"cut \xe6\x97":                  "byte 4 (0xe6) is not UTF-8: convert it to UTF-8",
		"\xed\xa0\x80":                  "byte 0 (0xed) is not UTF-8: convert it to UTF-8",
		"\xff\xfea\x00":                 "it is UTF-16: save it as UTF-8",
		"\xfe\xff\x00a":                 "it is UTF-16: save it as UTF-8",
		"\x89PNG\r\n\x1a\n\x00\x00\x00": "byte 8 is zero",
	} {
		path := writeFile(t, dir, "x.txt", text)
		_, err := LoadText(path)
		require.ErrorContains(t, err, want, "%q", text)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := LoadText(filepath.Join(dir, "none.txt"))
	require.ErrorContains(t, err, "none.txt does not exist: check the path")
	_, err = LoadText(filepath.Join(dir, "x.txt", "below"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	_, err = LoadText("")
	require.Error(t, err)
	if runtime.GOOS != "windows" {
		_, err = LoadText(os.DevNull)
		require.ErrorContains(t, err, "is not a file")
	}
}

func TestLoadTextUnreadable(t *testing.T) {
	err := unreadable("a/b", &os.PathError{Op: "open", Path: "a/b", Err: os.ErrPermission})
	require.EqualError(t, err, "a/b cannot be read (permission denied): check its permissions")
	require.ErrorIs(t, err, os.ErrPermission)
}

func TestLoadFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.txt": "second", "a/z.md": "first", "a.txt": "1<|endoftext|>2", "c/code.go": "package c", "c/picture.png": "\x89PNG\x00", "c/latin": "\xe9",
		"empty.txt": "", "blank.md": "\n", ".git/config": "hidden", ".secret.txt": "hidden", "c/.x": "hidden", "c/d/e/f": "deep",
	} {
		writeFile(t, dir, name, text)
	}
	text, err := LoadText(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "a/z.md", "b.txt", "c/code.go", "c/d/e/f"}, text.Files)
	require.Equal(t, []string{"1", "2", "first", "second", "package c", "deep"}, text.Docs)
	require.Equal(t, []string{"blank.md", "c/latin", "c/picture.png", "empty.txt"}, text.Skipped)
	require.Equal(t, 1+1+5+6+9+4, text.Bytes())

	for name, bad := range map[string]string{"d.txt": "a\x00", "D.MD": "\xff"} {
		path := writeFile(t, dir, name, bad)
		_, err = LoadText(dir)
		require.ErrorContains(t, err, path+" is no text", "named as text, but none")
		require.NoError(t, os.Remove(path))
	}
}

func TestLoadFolderWithoutText(t *testing.T) {
	dir := t.TempDir()
	want := fmt.Sprintf("folder %s has no text in it: give a folder with .txt or .md files", dir)
	_, err := LoadText(dir)
	require.EqualError(t, err, want)
	writeFile(t, dir, "x.bin", "\x00")
	writeFile(t, dir, ".txt", "hidden")
	_, err = LoadText(dir)
	require.EqualError(t, err, want)
}

func TestLoadFolderWithLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir, other := t.TempDir(), t.TempDir()
	target := writeFile(t, other, "real.txt", "linked")
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "link.txt")))
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "loop")))
	text, err := LoadText(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"linked"}, text.Docs)
	hidden := filepath.Join(t.TempDir(), ".hidden")
	require.NoError(t, os.Symlink(other, hidden))
	text, err = LoadText(writeFile(t, hidden, "x.txt", "asked for by name"))
	require.NoError(t, err)
	require.Equal(t, []string{"asked for by name"}, text.Docs)
	folder := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.Symlink(other, folder))
	text, err = LoadText(folder)
	require.NoError(t, err)
	require.Equal(t, []string{"linked", "asked for by name"}, text.Docs)
	require.NoError(t, os.Remove(target))
	_, err = LoadText(dir)
	require.ErrorContains(t, err, "link.txt")
}

func TestSplitDocs(t *testing.T) {
	text := "Once upon a time.\nÉtienne's 12 dogs sat."
	docs := []string{"first one", text, "the last"}
	whole := strings.Join(docs, "")
	for percent := range 101 {
		train, val := SplitDocs(docs, float64(percent)/100)
		require.Equal(t, whole, strings.Join(append(append([]string(nil), train...), val...), ""))
		for _, part := range append(append([]string(nil), train...), val...) {
			require.NotEmpty(t, part)
			require.True(t, utf8.ValidString(part))
		}
		// The cut is the first possible one, so no more than a word too late.
		late := len(strings.Join(train, "")) - (len(whole) - share(len(whole), float64(percent)/100))
		require.True(t, late >= 0 && late <= len(" Étienne"), "%d%%: %q, %q", percent, train, val)
		var cut []string
		for _, doc := range append(append([]string(nil), train...), val...) {
			cut = append(cut, words(doc)...)
		}
		require.Equal(t, append(append(words(docs[0]), words(docs[1])...), words(docs[2])...), cut, "no word is parted")
	}
	require.Equal(t, []string{"first one", text, "the last"}, docs, "left alone")
	for _, none := range [][]string{nil, {}} {
		train, val := SplitDocs(none, 0.1)
		require.Empty(t, train)
		require.Empty(t, val)
	}
	train, val := SplitDocs([]string{"x"}, 0.1)
	require.Equal(t, []string{"x"}, train)
	require.Empty(t, val)
}
