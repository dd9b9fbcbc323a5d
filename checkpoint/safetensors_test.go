package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file makes a safetensors file of a header and n bytes of data 0, 1, 2...
func file(header string, n int) []byte {
	raw := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	raw = append(raw, header...)
	for i := range n {
		raw = append(raw, byte(i))
	}
	return raw
}

func read(raw []byte) (*Safetensors, error) {
	return ReadSafetensors(bytes.NewReader(raw), int64(len(raw)))
}

func TestReadsTensorsInAnyOrderOfTheHeader(t *testing.T) {
	s, err := read(file(`{"b":{"dtype":"I32","shape":[2],"data_offsets":[8,16]},"__metadata__":{"k":"v"},`+
		`"a":{"data_offsets":[0,8],"shape":[1,1],"dtype":"F64"},"none":{"dtype":"F32","shape":[3,0],"data_offsets":[8,8]},`+
		`"scalar":{"dtype":"BF16","shape":[],"data_offsets":[16,18]}}   `, 18))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "v"}, s.Metadata())
	require.Equal(t, []TensorInfo{{"a", F64, []int{1, 1}}, {"none", F32, []int{3, 0}}, {"b", I32, []int{2}}, {"scalar", BF16, []int{}}}, s.Tensors())
	ints, err := s.Int64s("b")
	require.NoError(t, err)
	require.Equal(t, []int64{0x0b0a0908, 0x0f0e0d0c}, ints)
	floats, err := s.Float32s("scalar")
	require.NoError(t, err)
	require.Equal(t, []float32{math.Float32frombits(0x1110 << 16)}, floats)
	raw, err := s.Read("a")
	require.NoError(t, err)
	require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7}, raw)
	info, ok := s.Info("none")
	require.True(t, ok)
	require.Equal(t, []int{3, 0}, info.Shape)

	_, ok = s.Info("c")
	require.False(t, ok)
	_, err = s.Read("c")
	require.EqualError(t, err, `no tensor "c" in the file`)
	_, err = s.Float64s("b")
	require.EqualError(t, err, `tensor "b" has the format I32, which is not of the kind asked for`)
	_, err = s.Int64s("a")
	require.EqualError(t, err, `tensor "a" has the format F64, which is not of the kind asked for`)
}

func TestEmptyFileHasNoTensors(t *testing.T) {
	s, err := read(file("{}", 0))
	require.NoError(t, err)
	require.Empty(t, s.Tensors())
	require.Nil(t, s.Metadata())
}

func TestRefusesHeadersThatDoNotDescribeTheirFile(t *testing.T) {
	tensor := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":"%s","shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	for _, x := range []struct {
		header string
		data   int
		want   string
	}{
		{``, 0, "it does not begin with {"},
		{` {}`, 0, "it does not begin with {"},
		{`[]`, 0, "it does not begin with {"},
		{`{`, 0, "unexpected EOF"},
		{`{}x`, 0, "something follows its closing brace"},
		{`{}{}`, 0, "something follows its closing brace"},
		{"{\"\xff\":1}", 0, "it is not UTF-8"},
		{`{"a":1}`, 0, `tensor "a": a number where an object or a list should be`},
		{`{"a":null}`, 0, `tensor "a": null where an object or a list should be`},
		{`{"a":[]}`, 0, `tensor "a": "[" where "{" should be`},
		{`{"a":{}}`, 0, `tensor "a": it needs dtype, shape and data_offsets`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4, `tensor "a": the key "x" is unknown`},
		{`{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4, `the name "dtype" stands there twice`},
		{tensor("F32", "[1]", "[0,4,8]"), 4, "it has 3 data_offsets, not 2"},
		{tensor("F32", "[1]", "[0]"), 4, "it has 1 data_offsets, not 2"},
		{tensor("F32", "[1.0]", "[0,4]"), 4, `"1.0" is not a size or an offset`},
		{tensor("F32", "[1e0]", "[0,4]"), 4, `"1e0" is not a size or an offset`},
		{tensor("F32", "[-1]", "[0,4]"), 4, `"-1" is not a size or an offset`},
		{tensor("F32", "[1]", "[-4,0]"), 4, `"-4" is not a size or an offset`},
		{tensor("F32", "[1]", "[0,18446744073709551620]"), 4, `"18446744073709551620" is not a size or an offset`},
		{tensor("F32", `["1"]`, "[0,4]"), 4, "text where a number should be"},
		{tensor("F32", "[4294967296,4294967296]", "[0,4]"), 4, `tensor "a" has too many elements`},
		{tensor("F64", "[1152921504606846976]", "[0,8]"), 8, `tensor "a" has too many elements`},
		{tensor("F8_E4M3", "[1]", "[0,1]"), 1, `tensor "a" has the format "F8_E4M3": F64, F32, F16, BF16, I64 and I32 are read`},
		{tensor("f32", "[1]", "[0,4]"), 4, `tensor "a" has the format "f32"`},
		{tensor("F32", "[1]", "[4,0]"), 4, `tensor "a" of F32[1] takes 4 bytes, not those from 4 to 0`},
		{tensor("F32", "[2]", "[0,4]"), 4, `tensor "a" of F32[2] takes 8 bytes, not those from 0 to 4`},
		{tensor("F32", "[2]", "[0,8]"), 4, "ends at byte 8 of the data, and the file has 4: it may be cut short"},
		{tensor("F32", "[1]", "[4,8]"), 8, "bytes 0 to 4 of the data belong to no tensor"},
		{tensor("F32", "[1]", "[0,4]"), 5, "bytes 4 to 5 of the data belong to no tensor"},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8, `the name "a" stands there twice`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8, `the name "a" stands there twice`},
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8, `tensor "b" overlaps another one at byte 4`},
		{`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4, `tensor "b" overlaps another one at byte 0`},
		{`{"__metadata__":{"a":1}}`, 0, "__metadata__: a number where text should be"},
		{`{"__metadata__":{"a":[1]}}`, 0, `__metadata__: "[" where text should be`},
		{`{"__metadata__":{"a":null}}`, 0, "__metadata__: null where text should be"},
		{`{"__metadata__":{"a":true}}`, 0, "__metadata__: true or false where text should be"},
		{`{"__metadata__":{},"__metadata__":{}}`, 0, `the name "__metadata__" stands there twice`},
		{`{"a":` + strings.Repeat("[", 20000), 0, `"[" where "{" should be`},
	} {
		_, err := read(file(x.header, x.data))
		require.ErrorContains(t, err, x.want, "%.200s", x.header)
		require.ErrorContains(t, err, "safetensors header: ")
	}
}

func TestRefusesFilesThatAreTooShortForTheirHeader(t *testing.T) {
	for _, raw := range [][]byte{{}, make([]byte, 7), file("{}", 0)[:9], append(bytes.Repeat([]byte{255}, 8), "{}"...)} {
		_, err := read(raw)
		require.ErrorContains(t, err, "not a safetensors file", "%v", raw)
	}
	huge := make([]byte, 8)
	binary.LittleEndian.PutUint64(huge, maxHeader+1)
	_, err := ReadSafetensors(bytes.NewReader(huge), 1<<40)
	require.ErrorContains(t, err, "a header of 100000001 bytes")
	binary.LittleEndian.PutUint64(huge, 100)
	_, err = ReadSafetensors(bytes.NewReader(huge), 1<<40) // the file is shorter than it is said to be
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWriteThenRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	tensors := []TensorInfo{{"z", F32, []int{2, 1}}, {"a<b>\"\n", I64, []int{1}}, {"half", F16, []int{3}}, {"scalar", F64, nil}}
	data := [][]byte{make([]byte, 8), make([]byte, 8), make([]byte, 6), make([]byte, 8)}
	for i, d := range data {
		for j := range d {
			d[j] = byte(16*i + j)
		}
	}
	write := func() error {
		return WriteSafetensors(path, tensors, map[string]string{"k": "v"}, func(i int) ([]byte, error) { return data[i], nil })
	}
	require.NoError(t, write())
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Zero(t, binary.LittleEndian.Uint64(first)%8, "the data is not aligned to 8 bytes")
	require.NoError(t, write(), "an old file is replaced")
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first, second)

	s, err := OpenSafetensors(path)
	require.NoError(t, err)
	require.Equal(t, "v", s.Metadata()["k"])
	for i, want := range tensors {
		got := s.Tensors()[i]
		require.Equal(t, want.Name, got.Name)
		require.Equal(t, want.DType, got.DType)
		require.Equal(t, append([]int{}, want.Shape...), got.Shape)
		raw, err := s.Read(want.Name)
		require.NoError(t, err)
		require.Equal(t, data[i], raw)
	}
	require.NoError(t, s.Close())
}

func TestWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	zeros := func(n int) func(int) ([]byte, error) {
		return func(int) ([]byte, error) { return make([]byte, n), nil }
	}
	one := []TensorInfo{{"a", F32, []int{1}}}
	require.ErrorContains(t, WriteSafetensors(path, append(one, one...), nil, zeros(4)), `the tensor name "a" is taken`)
	require.ErrorContains(t, WriteSafetensors(path, []TensorInfo{{"__metadata__", F32, nil}}, nil, zeros(4)), `"__metadata__" is taken`)
	require.ErrorContains(t, WriteSafetensors(path, []TensorInfo{{"a", "U8", nil}}, nil, zeros(1)), `the format "U8"`)
	require.ErrorContains(t, WriteSafetensors(path, []TensorInfo{{"a", F32, []int{-1}}}, nil, zeros(4)), "a dimension of -1")
	require.ErrorContains(t, WriteSafetensors(path, one, nil, zeros(5)), `tensor "a" of F32[1] takes 4 bytes, got 5`)
	require.ErrorContains(t, WriteSafetensors(path, one, nil, func(int) ([]byte, error) { return nil, errors.New("lost device") }), "lost device")
	noFileIn(t, filepath.Dir(path))
}

func noFileIn(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestAnInterruptedWriteLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "old")
		return err
	}))
	err := WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 4<<20))
		require.NoError(t, err)
		return errors.New("disk full")
	})
	require.ErrorContains(t, err, "disk full")
	require.ErrorContains(t, err, path)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(raw))
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestHalfPrecision(t *testing.T) {
	for h, want := range map[uint16]float64{
		0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14, 0x3555: 0.333251953125,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		require.Equal(t, want, fromF16(h), "%04x", h)
	}
	require.True(t, math.IsNaN(fromF16(0x7e00)))
	require.True(t, math.Signbit(fromF16(0x8000)))
}

// FuzzHeader feeds the reader arbitrary files. Whatever it accepts must be consistent: every tensor can be read, their bytes are all of the
// data, and the file written from them reads the same.
func FuzzHeader(f *testing.F) {
	f.Add(file(`{}`, 0))
	f.Add(file(`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, 8))
	f.Add(file(`{"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"I64","shape":[0],"data_offsets":[2,2]}}  `, 2))
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8))
	f.Add(file(`{"a":{"dtype":"F64","shape":[9223372036854775807,2],"data_offsets":[0,9223372036854775807]}}`, 3))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 127, '{', '}'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := read(raw)
		if err != nil {
			return
		}
		tensors, sum := s.Tensors(), int64(0)
		data := make([][]byte, len(tensors))
		for i, info := range tensors {
			data[i], err = s.Read(info.Name)
			require.NoError(t, err)
			size, err := info.Bytes()
			require.NoError(t, err)
			require.Len(t, data[i], int(size))
			sum += size
		}
		require.Equal(t, int64(len(raw))-s.data, sum)
		header, _, err := encodeHeader(tensors, s.Metadata())
		require.NoError(t, err)
		again, err := read(append(file(string(header), 0), bytes.Join(data, nil)...))
		require.NoError(t, err)
		require.ElementsMatch(t, tensors, again.Tensors())
	})
}
