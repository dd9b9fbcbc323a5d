package tasks

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxBytes bounds what a file holds, unpacked: the largest of the usual tasks has 11 MB.
const maxBytes = 256 << 20

// Load reads files and keeps the first limit documents of each; 0: all. Every line is checked all the same. Two files of one name are an error.
func Load(files []string, limit int) ([]Task, error) {
	var all []Task
	names := map[string]string{}
	for _, path := range files {
		t, err := Read(path)
		if err != nil {
			return nil, err
		}
		if other, ok := names[t.Name]; ok {
			return nil, fmt.Errorf("%s and %s are both the task %s: leave one out, or give it another file name", other, path, t.Name)
		}
		names[t.Name] = path
		if limit > 0 && limit < len(t.Documents) {
			t.Documents = t.Documents[:limit]
		}
		all = append(all, t)
	}
	return all, nil
}

// Read reads a file whole. Errors name it and the line, and say what to do.
func Read(path string) (Task, error) {
	lines, err := readLines(path)
	if err != nil {
		return Task{}, err
	}
	t := Task{Name: NameOf(path), File: path}
	first := firstLine(lines)
	if first < 0 {
		return t, fmt.Errorf("%s has no document: it is empty", path)
	}
	if strings.HasPrefix(strings.TrimSpace(lines[first]), "{") {
		err = t.readJSON(lines)
	} else {
		err = t.readHellaSwag(lines)
	}
	if standardNorm[t.Name] {
		t.Metric, t.Norm = AccNorm, true
	}
	return t, err
}

// bad is an error of a line, which counts from 1.
func (t *Task) bad(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", t.File, line, fmt.Sprintf(format, args...))
}

// add takes a document that is right.
func (t *Task) add(d Document) error {
	if err := d.check(); err != nil {
		return t.bad(d.Line, "%v", err)
	}
	t.Documents = append(t.Documents, d)
	return nil
}

// readLines unpacks a file, if it is packed, and gives its lines without their ends.
func readLines(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return nil, errors.New("a task's path is empty: leave it out")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: give the path of a task's file", path)
	case err != nil:
		return nil, fmt.Errorf("a task can't be read: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file: give the path of a task's file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("a task can't be read: %w", err)
	}
	defer f.Close()
	r, packed, err := unpack(f)
	if err != nil {
		return nil, fmt.Errorf("%s:1: the %s data can't be read: %w: copy the file anew", path, packed, err)
	}
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	text := bufio.NewReader(limited)
	var lines []string
	for {
		line, err := text.ReadString('\n')
		if limited.N == 0 {
			return nil, fmt.Errorf("%s has over %d bytes of text: give a smaller file", path, maxBytes)
		}
		if err != nil && err != io.EOF {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("it is cut off")
			}
			return nil, fmt.Errorf("%s:%d: the %s data can't be read: %w: copy the file anew", path, len(lines)+1, packed, err)
		}
		if !utf8.ValidString(line) {
			return nil, fmt.Errorf("%s:%d: the line is not UTF-8: convert the file to UTF-8", path, len(lines)+1)
		}
		if len(lines) == 0 {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		if line != "" {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
		if err == io.EOF {
			return lines, nil
		}
	}
}

// unpack looks at the first bytes of a file for how it is packed.
func unpack(f io.Reader) (r io.Reader, packed string, err error) {
	b := bufio.NewReader(f)
	magic, _ := b.Peek(3) // a file may be shorter
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(b)
		return r, "gzip", err
	case bytes.Equal(magic, []byte("BZh")):
		return bzip2.NewReader(b), "bzip2", nil
	}
	return b, "plain", nil
}

func firstLine(lines []string) int {
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			return i
		}
	}
	return -1
}

// NameOf is the name of the task in a file: its own without its endings and the part of the data set: piqa_val.jsonl is piqa.
func NameOf(path string) string {
	name := strings.ToLower(filepath.Base(path))
	for _, end := range []string{".gz", ".bz2", ".jsonl", ".json", ".txt"} {
		name = strings.TrimSuffix(name, end)
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	for _, part := range []string{"_test", "_val", "_valid", "_validation", "_dev"} {
		name = strings.TrimSuffix(name, part)
	}
	switch name {
	case "socialiqa", "social_iqa", "social_i_qa":
		return "siqa"
	case "":
		return "task"
	}
	return name
}
