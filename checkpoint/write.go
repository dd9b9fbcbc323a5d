package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteSafetensors writes a file, atomically. data gives the bytes of tensor i; it is called once for each, in their order, so
// that only one tensor need be in memory.
func WriteSafetensors(path string, tensors []TensorInfo, metadata map[string]string, data func(i int) ([]byte, error)) error {
	header, sizes, err := encodeHeader(tensors, metadata)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return WriteFile(path, func(w io.Writer) error {
		if err := binary.Write(w, binary.LittleEndian, uint64(len(header))); err != nil {
			return err
		}
		if _, err := w.Write(header); err != nil {
			return err
		}
		for i, t := range tensors {
			raw, err := data(i)
			if err != nil {
				return fmt.Errorf("tensor %q: %w", t.Name, err)
			}
			if int64(len(raw)) != sizes[i] {
				return fmt.Errorf("tensor %q of %s%v takes %d bytes, got %d", t.Name, t.DType, t.Shape, sizes[i], len(raw))
			}
			if _, err := w.Write(raw); err != nil {
				return err
			}
		}
		return nil
	})
}

// encodeHeader gives the header, padded with spaces to a multiple of 8 bytes, and the tensors' sizes.
func encodeHeader(tensors []TensorInfo, metadata map[string]string) ([]byte, []int64, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	member := func(key string, value any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		return err
	}
	if len(metadata) > 0 {
		if err := member(metadataKey, metadata); err != nil {
			return nil, nil, err
		}
	}
	sizes := make([]int64, len(tensors))
	seen := map[string]bool{metadataKey: true}
	at := int64(0)
	for i, t := range tensors {
		if seen[t.Name] {
			return nil, nil, fmt.Errorf("the tensor name %q is taken", t.Name)
		}
		seen[t.Name] = true
		var err error
		if sizes[i], err = t.Bytes(); err != nil {
			return nil, nil, err
		}
		err = member(t.Name, struct {
			DType   DType    `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, append([]int{}, t.Shape...), [2]int64{at, at + sizes[i]}})
		if err != nil {
			return nil, nil, err
		}
		at += sizes[i]
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > maxHeader {
		return nil, nil, fmt.Errorf("a header of %d bytes is over the format's %d", b.Len(), maxHeader)
	}
	return b.Bytes(), sizes, nil
}

// WriteFile replaces a file atomically with what write writes: it goes to another file of the same folder, which takes the name and the
// permissions once it is on the disk. After an error the old file is as it was. A link stays, and its target is replaced; what is no
// regular file, such as a pipe or a device, is written to as it is.
func WriteFile(path string, write func(w io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	target, old, err := writeTarget(path)
	if err != nil {
		return err
	}
	if target == "" {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return err
		}
		return errors.Join(writeBuffered(f, write), f.Close())
	}
	f, err := createBeside(target)
	if err != nil {
		return err
	}
	err = writeBuffered(f, write)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	syncDir(filepath.Dir(target))
	return nil
}

// CheckWrite returns an error if WriteFile could not write to path, and leaves everything as it is.
func CheckWrite(path string) error {
	target, _, err := writeTarget(path)
	if err == nil && target != "" {
		var f *os.File
		if f, err = createBeside(target); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("%s can't be written: %w", path, withoutPath(err))
	}
	return nil
}

// writeTarget gives the regular file, or the free name, that a path stands for, and what is there: nil for a free name. No target is for what must
// be written in place.
func writeTarget(path string) (target string, old fs.FileInfo, err error) {
	old, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linkErr := os.Lstat(path); linkErr == nil { // to a file that is not there yet
			return "", nil, nil
		}
		return path, nil, nil
	}
	switch {
	case err != nil:
		return "", nil, err
	case old.IsDir():
		return "", nil, errors.New("it is a folder: give a file")
	case !old.Mode().IsRegular():
		return "", nil, nil
	}
	target, err = filepath.EvalSymlinks(path)
	return target, old, err
}

func createBeside(path string) (*os.File, error) {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:8])
	return os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func writeBuffered(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// withoutPath is the reason of an error alone, for messages that have the path.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// syncDir makes a rename in the folder last through a power cut, where the system can: an error only means that it cannot.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
