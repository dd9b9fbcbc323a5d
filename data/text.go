package data

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxTextFile bounds a file, for text is held in memory, and its tokens too.
const maxTextFile = 8 << 30

// Text is what [LoadText] read.
type Text struct {
	Docs    []string // the documents, in order; none is empty
	Files   []string // they came from; below the folder, if it was one, with slashes
	Skipped []string // files of the folder that are empty or no text
}

// Bytes is the length of all documents together.
func (t Text) Bytes() int {
	n := 0
	for _, d := range t.Docs {
		n += len(d)
	}
	return n
}

// LoadText reads a text file, or every text file in a folder and in the folders below it, in the order of their paths.
//
// Text is UTF-8 without zero bytes. A byte order mark at the start is dropped, and the line ends CR LF and CR become LF; nothing else is
// changed. A file is one document, or several with <|endoftext|> between them, which goes away together with one line end before and
// one after it. Documents of nothing but white space are dropped.
//
// In a folder, files and folders whose names begin with a dot are passed over, links to folders are not followed, and files that are
// empty or no text are skipped, except that a file named .txt or .md which is no text is an error. A folder without any text, and
// a file that is empty or no text when it is asked for by name, are errors too.
func LoadText(path string) (Text, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Text{}, fmt.Errorf("text %s does not exist: check the path", path)
	case err != nil:
		return Text{}, unreadable(path, err)
	case info.IsDir():
		return loadFolder(path)
	}
	docs, err := loadFile(path)
	if err != nil {
		return Text{}, err
	}
	if len(docs) == 0 {
		return Text{}, fmt.Errorf("text %s is empty: give a file with text in it", path)
	}
	return Text{Docs: docs, Files: []string{filepath.Base(path)}}, nil
}

func loadFolder(dir string) (Text, error) {
	files, err := textFiles(dir)
	if err != nil {
		return Text{}, err
	}
	var t Text
	for _, name := range files {
		docs, err := loadFile(filepath.Join(dir, filepath.FromSlash(name)))
		var notText *notTextError
		if err != nil && (!errors.As(err, &notText) || namedText(name)) {
			return Text{}, err
		}
		if len(docs) == 0 {
			t.Skipped = append(t.Skipped, name)
			continue
		}
		t.Docs = append(t.Docs, docs...)
		t.Files = append(t.Files, name)
	}
	if len(t.Docs) == 0 {
		return Text{}, fmt.Errorf("folder %s has no text in it: give a folder with .txt or .md files", dir)
	}
	return t, nil
}

// textFiles lists the regular files below dir that are not hidden, with slashes, sorted.
func textFiles(dir string) ([]string, error) {
	root, err := filepath.EvalSymlinks(dir) // for WalkDir does not follow a link that it begins with
	if err != nil {
		return nil, unreadable(dir, err)
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(path, err)
		}
		if path != root && strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		mode := entry.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			if err != nil {
				return unreadable(path, err)
			}
			mode = info.Mode()
		}
		if mode.IsRegular() {
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

// namedText tells the names that promise text.
func namedText(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".txt", ".md":
		return true
	}
	return false
}

// notTextError is a file that is no text.
type notTextError struct{ path, reason string }

func (e *notTextError) Error() string {
	return fmt.Sprintf("%s is no text: %s", e.path, e.reason)
}

func loadFile(path string) ([]string, error) {
	raw, err := readFile(path, maxTextFile)
	if err != nil {
		return nil, err
	}
	if reason := notText(raw); reason != "" {
		return nil, &notTextError{path, reason}
	}
	raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
	if bytes.IndexByte(raw, '\r') >= 0 {
		raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
		raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
	}
	return documents(string(raw)), nil
}

// notText says why bytes are no text, and what to do.
func notText(raw []byte) string {
	if bytes.HasPrefix(raw, []byte{0xFF, 0xFE}) || bytes.HasPrefix(raw, []byte{0xFE, 0xFF}) {
		return "it is UTF-16: save it as UTF-8"
	}
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		return fmt.Sprintf("byte %d is zero, as in a binary file: give a UTF-8 text file", i)
	}
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Sprintf("byte %d (0x%02x) is not UTF-8: convert it to UTF-8", i, raw[i])
		}
		i += n
	}
	return ""
}

// documents parts a text at the markers.
func documents(text string) []string {
	var docs []string
	parts := strings.Split(text, EndOfTextMarker)
	for i, doc := range parts {
		if i > 0 {
			doc = strings.TrimPrefix(doc, "\n")
		}
		if i < len(parts)-1 {
			doc = strings.TrimSuffix(doc, "\n")
		}
		if strings.TrimSpace(doc) != "" {
			docs = append(docs, doc)
		}
	}
	return docs
}
