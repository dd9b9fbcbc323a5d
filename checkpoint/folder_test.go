package checkpoint_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

func smallInfo() checkpoint.Info {
	c := model.Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF, c.SeqLen = 11, 8, 2, 2, 12, 5
	return checkpoint.Info{Model: c, Tokenizer: "bytes", Step: 7, Tokens: 1234, Seed: 1<<63 + 5, Metadata: map[string]string{"corpus": "stories"}}
}

// store has the model's parameters, with values that differ between elements and parameters, and one more variable.
func store(t *testing.T, c model.Config, fill bool) backend.Store {
	vars := []graph.Var{{Name: "adam.m.x", DType: graph.F32, Shape: graph.Shape{3}}}
	for _, p := range c.Params() {
		vars = append(vars, graph.Var{Name: p.Name, DType: graph.F32, Shape: p.Shape})
	}
	s, err := reference.NewBackend().NewStore(vars)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for i, v := range vars {
		if fill {
			require.NoError(t, s.Write(v.Name, values(v, i)))
		}
	}
	return s
}

func values(v graph.Var, seed int) []byte {
	raw := make([]byte, v.Bytes())
	for j := range v.Elems() {
		binary.LittleEndian.PutUint32(raw[4*j:], math.Float32bits(float32(seed)+float32(j)/1000))
	}
	return raw
}

func TestSaveThenRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	info := smallInfo()
	from, to := store(t, info.Model, true), store(t, info.Model, false)
	require.NoError(t, checkpoint.Save(dir, info, from))
	got, err := checkpoint.ReadInfo(dir)
	require.NoError(t, err)
	info.Format, info.Model = checkpoint.Format, info.Model.Normalize()
	require.Equal(t, info, got)
	require.NoError(t, checkpoint.ReadParams(t.Context(), dir, got, to))
	for i, v := range from.Vars() {
		raw := make([]byte, v.Bytes())
		require.NoError(t, to.Read(v.Name, raw))
		if i == 0 {
			require.Equal(t, make([]byte, 12), raw, "a variable that is no parameter was written")
			continue
		}
		require.Equal(t, values(v, i), raw, v.Name)
	}
	info.Step = 8
	require.NoError(t, checkpoint.Save(dir, info, from), "a later save replaces the first")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
}

// A store whose matrices are bf16 is saved as it is, and read into one of f32.
func TestSaveOfNarrowMatrices(t *testing.T) {
	dir, info := t.TempDir(), smallInfo()
	var vars []graph.Var
	for _, p := range info.Model.Params() {
		v := graph.Var{Name: p.Name, Shape: p.Shape}
		if p.Role.IsMatrix() {
			v.DType = graph.BF16
		}
		vars = append(vars, v)
	}
	from, err := reference.NewBackend().NewStore(vars)
	require.NoError(t, err)
	want := map[string][]byte{}
	for _, v := range vars {
		raw, wide := make([]byte, v.Bytes()), make([]byte, 4*v.Elems())
		for i := range v.Elems() {
			bits := uint32(0x3f80+i%100) << 16
			binary.LittleEndian.PutUint32(wide[4*i:], bits)
			if v.DType == graph.BF16 {
				binary.LittleEndian.PutUint16(raw[2*i:], uint16(bits>>16))
			} else {
				binary.LittleEndian.PutUint32(raw[4*i:], bits)
			}
		}
		require.NoError(t, from.Write(v.Name, raw))
		want[v.Name] = wide
	}
	require.NoError(t, checkpoint.Save(dir, info, from))
	to := store(t, info.Model, false)
	require.NoError(t, checkpoint.ReadParams(t.Context(), dir, info, to))
	for name, raw := range want {
		got := make([]byte, len(raw))
		require.NoError(t, to.Read(name, got))
		require.Equal(t, raw, got, name)
	}
}

func TestReadTakesOtherFloatFormats(t *testing.T) {
	dir := t.TempDir()
	info := smallInfo()
	to := store(t, info.Model, false)
	require.NoError(t, checkpoint.Save(dir, info, store(t, info.Model, true)))
	var tensors []checkpoint.TensorInfo
	for _, p := range info.Model.Params() {
		tensors = append(tensors, checkpoint.TensorInfo{Name: p.Name, DType: checkpoint.F16, Shape: p.Shape})
	}
	err := checkpoint.WriteSafetensors(filepath.Join(dir, checkpoint.ModelFile), tensors, nil, func(i int) ([]byte, error) {
		raw := make([]byte, 2*graph.Shape(tensors[i].Shape).Elems())
		for j := range len(raw) / 2 {
			binary.LittleEndian.PutUint16(raw[2*j:], 0xc000) // -2
		}
		return raw, nil
	})
	require.NoError(t, err)
	require.NoError(t, checkpoint.ReadParams(t.Context(), dir, info, to))
	raw := make([]byte, 4*8)
	require.NoError(t, to.Read("model.norm.weight", raw))
	require.Equal(t, float32(-2), math.Float32frombits(binary.LittleEndian.Uint32(raw[28:])))
}

func TestReadParamsRefusesAnotherModel(t *testing.T) {
	dir := t.TempDir()
	info := smallInfo()
	s := store(t, info.Model, true)
	require.NoError(t, checkpoint.Save(dir, info, s))
	for _, x := range []struct {
		change func(i *checkpoint.Info)
		want   string
	}{
		{func(i *checkpoint.Info) { i.Step = 8 }, "it is of step 7 and config.json of step 8: saving was interrupted between the two"},
		{func(i *checkpoint.Info) { i.Model.NLayers = 3 }, `the parameter "model.layers.2.input_layernorm.weight" is missing`},
		{func(i *checkpoint.Info) { i.Model.VocabSize = 12 }, `the parameter "model.embed_tokens.weight" has the shape [11 8], the config's is [12 8]`},
		{func(i *checkpoint.Info) { i.Model.Tied = true }, `the tensor "lm_head.weight" is no parameter of the config`},
	} {
		other := info
		x.change(&other)
		err := checkpoint.ReadParams(t.Context(), dir, other, s)
		require.ErrorContains(t, err, x.want)
		require.ErrorContains(t, err, checkpoint.ModelFile)
	}
	bigger := info.Model
	bigger.NLayers = 3
	require.ErrorContains(t, checkpoint.Save(dir, checkpoint.Info{Model: bigger}, s), `the store has no parameter "model.layers.2`)
	require.NoError(t, os.Truncate(filepath.Join(dir, checkpoint.ModelFile), 3000))
	require.ErrorContains(t, checkpoint.ReadParams(t.Context(), dir, info, s), "cut short")
	require.NoError(t, os.Remove(filepath.Join(dir, checkpoint.ModelFile)))
	require.ErrorContains(t, checkpoint.ReadParams(t.Context(), dir, info, s), "is not a whole checkpoint folder: it has no model.safetensors")
}

func TestReadInfoRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := checkpoint.ReadInfo(dir)
	require.EqualError(t, err, dir+" is not a checkpoint folder: it has no config.json")
	info := smallInfo()
	require.NoError(t, checkpoint.Save(dir, info, store(t, info.Model, true)))
	path := filepath.Join(dir, checkpoint.ConfigFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for old, x := range map[string]struct{ text, want string }{
		`"format": 1`:          {`"format": 2`, "the checkpoint's format is 2, this program reads 1"},
		`"step"`:               {`"steps"`, `unknown field "steps"`},
		`"n_layers": 2`:        {`"n_layers": 0`, "n_layers: 0 is too small"},
		`"tokenizer": "bytes"`: {`"tokenizer": 3`, "tokenizer should be text, and is: number"},
		`{`:                    {`[`, "invalid character"},
	} {
		require.Contains(t, string(good), old)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(good), old, x.text, 1)), 0o666))
		_, err := checkpoint.ReadInfo(dir)
		require.ErrorContains(t, err, x.want)
		require.ErrorContains(t, err, path)
	}
	for text, want := range map[string]string{
		"[]": "it should be an object, and is: array", `"a"`: "it should be an object, and is: string",
		`{"format": "1"}`: "format should be a whole number, and is: string", `{"format": 1, "model": []}`: "model should be an object, and is: array",
		`{"format": 1, "model": {"tied": 1}}`: "model.tied should be true or false, and is: number", "": "it is damaged or cut short (unexpected end of JSON input): copy it again, or give another run",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, err := checkpoint.ReadInfo(dir)
		require.EqualError(t, err, path+": "+want)
	}
	require.NoError(t, os.Truncate(path, 1<<40))
	_, err = checkpoint.ReadInfo(dir)
	require.ErrorContains(t, err, "config.json has over 1048576 bytes: it is no checkpoint's")
	_, err = checkpoint.ReadInfo(path)
	require.EqualError(t, err, path+" is a file: give the folder of a run")
	_, err = checkpoint.ReadInfo(filepath.Join(dir, "absent"))
	require.ErrorContains(t, err, "absent does not exist: give the folder of a run")
}
