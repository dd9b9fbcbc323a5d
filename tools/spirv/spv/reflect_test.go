package spv_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/shaders/manifest"
	"github.com/vktrain/vktrain/tools/spirv/spv"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../../shaders/spv/" + name + ".spv")
	require.NoError(t, err)
	return data
}

// By hand from the source, norm.comp.
func TestReflect(t *testing.T) {
	k, err := spv.Reflect(read(t, "norm"))
	require.NoError(t, err)
	require.Equal(t, 4, k.Bindings)
	require.Equal(t, []string{"r", "r", "r", "w"}, k.Access)
	require.Equal(t, [3]uint32{256, 1, 1}, k.LocalSize)
	require.Equal(t, 2*256*8, k.SharedBytes, "two arrays of 256 vec2")
	require.Equal(t, 16, k.PushBytes)
	require.Equal(t, []manifest.Field{
		{Name: "row_count", Type: "uint", Offset: 0, Size: 4}, {Name: "n", Type: "uint", Offset: 4, Size: 4},
		{Name: "inv_n", Type: "float", Offset: 8, Size: 4}, {Name: "eps", Type: "float", Offset: 12, Size: 4},
	}, k.Push)
	require.Equal(t, []manifest.SpecConst{
		{ID: 0, Name: "LANES", Type: "uint", Default: 256}, {ID: 1, Name: "CENTERED", Type: "bool"},
		{ID: 2, Name: "HAS_GAIN", Type: "bool"}, {ID: 3, Name: "HAS_ADDEND", Type: "bool"},
	}, k.Spec)
	require.Equal(t, []string{"Shader"}, k.Capabilities)
	require.Equal(t, "1.3", k.Version)
	require.False(t, k.FloatAtomics)
}

func TestReflectVectorsAndReadWrite(t *testing.T) {
	k, err := spv.Reflect(read(t, "qk_norm_rope"))
	require.NoError(t, err)
	require.Equal(t, manifest.Field{Name: "power6", Type: "uvec2", Offset: 48, Size: 8}, k.Push[3])
	k, err = spv.Reflect(read(t, "adamw"))
	require.NoError(t, err)
	require.Equal(t, []string{"rw", "rw", "rw", "r", "r", "r"}, k.Access)
}

func TestReflectRejects(t *testing.T) {
	good := read(t, "add")
	_, err := spv.Reflect(nil)
	require.ErrorContains(t, err, "no SPIR-V binary")
	_, err = spv.Reflect(good[:24])
	require.ErrorContains(t, err, "beyond the end")
	_, err = spv.Reflect(append([]byte{0, 0, 0, 0}, good[4:]...))
	require.ErrorContains(t, err, "the first word")

	withOp := func(words ...uint32) []byte { // before the module's end, where order does not matter to the reader
		out := append([]byte{}, good...)
		for i, w := range words {
			if i == 0 {
				w |= uint32(len(words)) << 16
			}
			out = binary.LittleEndian.AppendUint32(out, w)
		}
		return out
	}
	k, err := spv.Reflect(withOp(6035, 1, 2, 3, 4, 5, 6)) // OpAtomicFAddEXT
	require.NoError(t, err)
	require.True(t, k.FloatAtomics)
	k, err = spv.Reflect(withOp(17, 9)) // OpCapability Float16
	require.NoError(t, err)
	require.Equal(t, []string{"Float16", "Shader"}, k.Capabilities)
	_, err = spv.Reflect(withOp(15, 5, 1, 0x6e69616d, 0)) // a second OpEntryPoint
	require.ErrorContains(t, err, "entry point")
	_, err = spv.Reflect(withOp(43, 1)) // OpConstant cut short
	require.ErrorContains(t, err, "operands")
	_, err = spv.Reflect(withOp(29, 99999, 99999)) // OpTypeRuntimeArray of itself
	require.ErrorContains(t, err, "not defined")
}

// No damage to a binary makes the reader panic.
func FuzzReflect(f *testing.F) {
	f.Add([]byte{}, 0, uint32(0))
	f.Add([]byte{3, 2, 35, 7}, 7, uint32(1<<16|59))
	for _, at := range []int{5, 40, 100, 200} {
		f.Add([]byte(nil), at, uint32(0x00050032))
	}
	good, err := os.ReadFile("../../../shaders/spv/norm.spv")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte, at int, word uint32) {
		if len(data) == 0 {
			data = append([]byte{}, good...)
			if n := len(data) / 4; at >= 0 {
				binary.LittleEndian.PutUint32(data[at%n*4:], word)
			}
		}
		_, _ = spv.Reflect(data)
	})
}
