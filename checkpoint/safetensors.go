package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// DType is a format of elements by its name in a header.
type DType string

// Formats that are read and written. Those of floating-point numbers are IEEE 754's, but for BF16, the upper half of an F32; integers are signed.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
)

// Size is an element's size in bytes, 0 for a format that this package does not read.
func (d DType) Size() int {
	switch d {
	case F64, I64:
		return 8
	case F32, I32:
		return 4
	case F16, BF16:
		return 2
	}
	return 0
}

// TensorInfo describes a tensor. A shape without dimensions is a scalar.
type TensorInfo struct {
	Name  string
	DType DType
	Shape []int
}

// Bytes is the size of the tensor's data, or an error if the format is unknown, a dimension negative or the size over 2^63.
func (t TensorInfo) Bytes() (int64, error) {
	size := int64(t.DType.Size())
	if size == 0 {
		return 0, fmt.Errorf("tensor %.100q has the format %.20q: F64, F32, F16, BF16, I64 and I32 are read", t.Name, string(t.DType))
	}
	n := size
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %.100q has a dimension of %d", t.Name, d)
		}
		if d > 0 && n > math.MaxInt64/int64(d) {
			return 0, fmt.Errorf("tensor %.100q has too many elements", t.Name)
		}
		n *= int64(d)
	}
	return n, nil
}

// Safetensors is a file that is open for reading. Tensors are read one at a time. Several goroutines may read at once.
type Safetensors struct {
	r        io.ReaderAt
	closer   io.Closer
	data     int64 // where the tensors' bytes begin
	entries  []entry
	byName   map[string]int
	metadata map[string]string
}

// OpenSafetensors opens a file and checks its header.
func OpenSafetensors(path string) (*Safetensors, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s, err := ReadSafetensors(f, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	s.closer = f
	return s, nil
}

// maxHeader is the format's limit of a header's length.
const maxHeader = 100_000_000

// ReadSafetensors checks the header of a file of size bytes and reads tensors from r later.
func ReadSafetensors(r io.ReaderAt, size int64) (*Safetensors, error) {
	var head [8]byte
	if size < int64(len(head)) {
		return nil, fmt.Errorf("not a safetensors file: it has %d bytes", size)
	}
	if err := readFull(r, head[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("not a safetensors file, or one cut short: a header of %d bytes in a file of %d", n, size)
	}
	raw := make([]byte, n)
	if err := readFull(r, raw, 8); err != nil {
		return nil, err
	}
	s := &Safetensors{r: r, data: 8 + int64(n), byName: map[string]int{}}
	var err error
	if s.entries, s.metadata, err = parseHeader(raw, size-s.data); err != nil {
		return nil, fmt.Errorf("safetensors header: %w", err)
	}
	for i, e := range s.entries {
		s.byName[e.Name] = i
	}
	return s, nil
}

// readFull fills dst; a file that ends before is an error.
func readFull(r io.ReaderAt, dst []byte, at int64) error {
	n, err := r.ReadAt(dst, at)
	if n == len(dst) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Close closes the file that OpenSafetensors opened.
func (s *Safetensors) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// Tensors lists the tensors in the order of their bytes.
func (s *Safetensors) Tensors() []TensorInfo {
	list := make([]TensorInfo, len(s.entries))
	for i, e := range s.entries {
		list[i] = e.TensorInfo
	}
	return list
}

// Metadata is the file's map of strings; nil if it has none.
func (s *Safetensors) Metadata() map[string]string { return s.metadata }

// Info describes a tensor; ok is false if there is none of that name.
func (s *Safetensors) Info(name string) (info TensorInfo, ok bool) {
	i, ok := s.byName[name]
	if !ok {
		return TensorInfo{}, false
	}
	return s.entries[i].TensorInfo, true
}

// Read gives a tensor's bytes.
func (s *Safetensors) Read(name string) ([]byte, error) {
	i, ok := s.byName[name]
	if !ok {
		return nil, fmt.Errorf("no tensor %.100q in the file", name)
	}
	e := s.entries[i]
	raw := make([]byte, e.end-e.begin)
	if err := readFull(s.r, raw, s.data+e.begin); err != nil {
		return nil, fmt.Errorf("tensor %.100q: %w", name, err)
	}
	return raw, nil
}

// Float64s gives the elements of a tensor of floating-point numbers.
func (s *Safetensors) Float64s(name string) ([]float64, error) {
	return elements[float64](s, name, floatDecoder)
}

// Float32s is Float64s rounded to float32; formats of 16 and 32 bits keep their values.
func (s *Safetensors) Float32s(name string) ([]float32, error) {
	return elements[float32](s, name, floatDecoder)
}

// Int64s gives the elements of a tensor of integers.
func (s *Safetensors) Int64s(name string) ([]int64, error) {
	return elements[int64](s, name, intDecoder)
}

// elements decodes a tensor with the decoder of its format.
func elements[T float32 | float64 | int64, U float64 | int64](s *Safetensors, name string, decoder func(DType) func([]byte) U) ([]T, error) {
	raw, err := s.Read(name)
	if err != nil {
		return nil, err
	}
	d := s.entries[s.byName[name]].DType
	decode := decoder(d)
	if decode == nil {
		return nil, fmt.Errorf("tensor %.100q has the format %s, which is not of the kind asked for", name, d)
	}
	size := d.Size()
	out := make([]T, len(raw)/size)
	for i := range out {
		out[i] = T(decode(raw[i*size:]))
	}
	return out, nil
}

func floatDecoder(d DType) func([]byte) float64 {
	le := binary.LittleEndian
	switch d {
	case F64:
		return func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }
	case F32:
		return func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case BF16:
		return func(b []byte) float64 { return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)) }
	case F16:
		return func(b []byte) float64 { return fromF16(le.Uint16(b)) }
	}
	return nil
}

func intDecoder(d DType) func([]byte) int64 {
	switch d {
	case I64:
		return func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }
	case I32:
		return func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) }
	}
	return nil
}

// fromF16 gives the value of an IEEE 754 binary16.
func fromF16(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1+frac/1024, exp-15)
	switch exp {
	case 0:
		x = math.Ldexp(frac, -24)
	case 31:
		if x = math.Inf(1); frac != 0 {
			x = math.NaN()
		}
	}
	if h>>15 != 0 {
		x = -x
	}
	return x
}
