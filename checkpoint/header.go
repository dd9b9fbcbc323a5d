package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// metadataKey is the header's one key that is no tensor.
const metadataKey = "__metadata__"

// entry is a tensor and where its bytes are, counted from the header's end.
type entry struct {
	TensorInfo
	begin, end int64
}

// parseHeader reads a header for dataSize bytes of tensors, and gives them in the order of their bytes. It goes token by token, because decoding into a map would
// take the last of two tensors of one name.
func parseHeader(raw []byte, dataSize int64) ([]entry, map[string]string, error) {
	if !utf8.Valid(raw) {
		return nil, nil, errors.New("it is not UTF-8")
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil, errors.New("it does not begin with {")
	}
	p := headerParser{json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	var entries []entry
	var metadata map[string]string
	err := p.object(func(key string) (err error) {
		if key == metadataKey {
			metadata, err = p.metadata()
			return err
		}
		e, err := p.tensor(key)
		if err != nil {
			return fmt.Errorf("tensor %.100q: %w", key, err)
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("something follows its closing brace")
	}
	return entries, metadata, checkLayout(entries, dataSize)
}

// checkLayout sorts the tensors by their bytes and checks that they cover the data exactly.
func checkLayout(entries []entry, dataSize int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	at := int64(0)
	for _, e := range entries {
		size, err := e.Bytes()
		switch {
		case err != nil:
			return err
		case e.end < e.begin || e.end-e.begin != size:
			return fmt.Errorf("tensor %.100q of %s%v takes %d bytes, not those from %d to %d", e.Name, e.DType, e.Shape, size, e.begin, e.end)
		case e.end > dataSize:
			return fmt.Errorf("tensor %.100q ends at byte %d of the data, and the file has %d: it may be cut short", e.Name, e.end, dataSize)
		case e.begin < at:
			return fmt.Errorf("tensor %.100q overlaps another one at byte %d of the data", e.Name, e.begin)
		case e.begin > at:
			return fmt.Errorf("bytes %d to %d of the data belong to no tensor", at, e.begin)
		}
		at = e.end
	}
	if at != dataSize {
		return fmt.Errorf("bytes %d to %d of the data belong to no tensor", at, dataSize)
	}
	return nil
}

type headerParser struct{ dec *json.Decoder }

// token gives the next token if it is a T.
func token[T any](p headerParser) (T, error) {
	var zero T
	t, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return zero, err
	}
	v, ok := t.(T)
	if !ok {
		return zero, fmt.Errorf("%s where %s should be", tokenName(t), tokenName(zero))
	}
	return v, nil
}

// tokenName says what a token is.
func tokenName(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		if t == 0 {
			return "an object or a list"
		}
		return strconv.Quote(t.String())
	case string:
		return "text"
	case json.Number:
		return "a number"
	case nil:
		return "null"
	}
	return "true or false"
}

func (p headerParser) delim(want json.Delim) error {
	d, err := token[json.Delim](p)
	if err == nil && d != want {
		err = fmt.Errorf("%q where %q should be", d.String(), want.String())
	}
	return err
}

// object calls each for every key, which must read the key's value.
func (p headerParser) object(each func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := token[string](p)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("the name %.100q stands there twice", key)
		}
		seen[key] = true
		if err := each(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p headerParser) metadata() (map[string]string, error) {
	m := map[string]string{}
	err := p.object(func(key string) (err error) {
		m[key], err = token[string](p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metadataKey, err)
	}
	return m, nil
}

func (p headerParser) tensor(name string) (entry, error) {
	e := entry{TensorInfo: TensorInfo{Name: name}}
	var offsets []int
	keys := 0
	err := p.object(func(key string) (err error) {
		keys++
		switch key {
		case "dtype":
			var s string
			s, err = token[string](p)
			e.DType = DType(s)
		case "shape":
			e.Shape, err = p.ints()
		case "data_offsets":
			offsets, err = p.ints()
		default:
			err = fmt.Errorf("the key %.100q is unknown", key)
		}
		return err
	})
	switch {
	case err != nil:
		return e, err
	case keys != 3:
		return e, errors.New("it needs dtype, shape and data_offsets")
	case len(offsets) != 2:
		return e, fmt.Errorf("it has %d data_offsets, not 2", len(offsets))
	}
	e.begin, e.end = int64(offsets[0]), int64(offsets[1])
	return e, nil
}

// ints reads an array of integers from 0.
func (p headerParser) ints() ([]int, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	list := []int{}
	for p.dec.More() {
		s, err := token[json.Number](p)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(s.String())
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%.30q is not a size or an offset", s.String())
		}
		list = append(list, n)
	}
	return list, p.delim(']')
}
