package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readFile reads a regular file of at most limit bytes. Errors name the path and say what to do.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: check the path", path)
	case err != nil:
		return nil, unreadable(path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file: give the path of one", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes, over the limit of %d: give a smaller file", path, info.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return raw, nil
}

// unreadable says why without the path, which an *fs.PathError would repeat.
func unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s cannot be read (%w): check its permissions", path, err)
}
