package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// Names of the files in a checkpoint folder.
const (
	ModelFile     = "model.safetensors"
	ConfigFile    = "config.json"
	TokenizerFile = "tokenizer.json"
)

// Format is the version of the folder that this package writes and reads.
const Format = 1

// maxConfigFile is far above any ConfigFile's size in bytes.
const maxConfigFile = 1 << 20

// Info is config.json: what is known of a checkpoint besides its tensors.
type Info struct {
	Format    int               `json:"format"`
	Model     model.Config      `json:"model"`
	Tokenizer string            `json:"tokenizer"` // its kind
	Step      int               `json:"step"`      // steps taken
	Tokens    int64             `json:"tokens"`    // tokens trained on
	Seed      uint64            `json:"seed"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// stepKey is the step in the safetensors file's metadata, to tell that both files are of one save.
const stepKey = "step"

// dtypes are the formats of variables in files.
var dtypes = map[graph.DType]DType{graph.F32: F32, graph.BF16: BF16, graph.F16: F16, graph.I32: I32}

// Save writes the parameters of a store and config.json to dir, which is made if need be. info.Format is set here.
func Save(dir string, info Info, store backend.Store) error {
	if err := info.Model.Validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	info.Format, info.Model = Format, info.Model.Normalize()
	vars := storeVars(store)
	params := info.Model.Params()
	tensors := make([]TensorInfo, len(params))
	for i, p := range params {
		v, ok := vars[p.Name]
		if !ok {
			return fmt.Errorf("checkpoint: the store has no parameter %q", p.Name)
		}
		tensors[i] = TensorInfo{Name: p.Name, DType: dtypes[v.DType], Shape: v.Shape}
	}
	// Hugging Face's loader wants to know the framework.
	metadata := map[string]string{"format": "pt", stepKey: strconv.Itoa(info.Step)}
	err := WriteSafetensors(filepath.Join(dir, ModelFile), tensors, metadata, func(i int) ([]byte, error) {
		raw := make([]byte, vars[tensors[i].Name].Bytes())
		return raw, store.Read(tensors[i].Name, raw)
	})
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, ConfigFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(info)
	})
}

func storeVars(store backend.Store) map[string]graph.Var {
	vars := map[string]graph.Var{}
	for _, v := range store.Vars() {
		vars[v.Name] = v
	}
	return vars
}

// jsonError says what is wrong with a file in words of JSON, not of Go.
func jsonError(err error) error {
	var is *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is damaged or cut short (%w): copy it again, or give another run", err)
	case !errors.As(err, &is):
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	case is.Field == "":
		return fmt.Errorf("it should be an object, and is: %s", is.Value)
	}
	want := "text"
	switch is.Type.Kind() {
	case reflect.Bool:
		want = "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		want = "a whole number"
	case reflect.Float64:
		want = "a number"
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	return fmt.Errorf("%s should be %s, and is: %s", is.Field, want, is.Value)
}

// ReadInfo reads dir's config.json and checks it.
func ReadInfo(dir string) (Info, error) {
	path := filepath.Join(dir, ConfigFile)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, fmt.Errorf("%s does not exist: give the folder of a run", dir)
	case err == nil && !info.IsDir():
		return Info{}, fmt.Errorf("%s is a file: give the folder of a run", dir)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, fmt.Errorf("%s is not a checkpoint folder: it has no %s", dir, ConfigFile)
	}
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1))
	if err != nil {
		return Info{}, err
	}
	if len(raw) > maxConfigFile {
		return Info{}, fmt.Errorf("%s has over %d bytes: it is no checkpoint's", path, maxConfigFile)
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return Info{}, fmt.Errorf("%s: %w", path, jsonError(err))
	}
	if version.Format != Format {
		return Info{}, fmt.Errorf("%s: the checkpoint's format is %d, this program reads %d", path, version.Format, Format)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var info Info
	if err := d.Decode(&info); err != nil {
		return Info{}, fmt.Errorf("%s: %w", path, jsonError(err))
	}
	if err := info.Model.Validate(); err != nil {
		return Info{}, fmt.Errorf("%s: %w", path, err)
	}
	return info, nil
}

// CheckParams returns an error if dir's file has not exactly the parameters of info.Model, in their shapes, or is not of the same save as info.
// It reads the header alone: what config.json asks for is not to be trusted, nor memory for it taken, before the file is seen to have it.
func CheckParams(dir string, info Info) error {
	f, err := openParams(dir, info)
	if err != nil {
		return err
	}
	return f.Close()
}

func openParams(dir string, info Info) (*Safetensors, error) {
	path := filepath.Join(dir, ModelFile)
	f, err := OpenSafetensors(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a whole checkpoint folder: it has no %s", dir, ModelFile)
	}
	if err != nil {
		return nil, err
	}
	if err := checkParams(f, info); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, nil
}

// ReadParams is CheckParams, and writes the parameters to a store that has a variable for each. Where a variable is f32 any floating-point
// format in the file will do. It gives up when ctx is done.
func ReadParams(ctx context.Context, dir string, info Info, store backend.Store) (err error) {
	f, err := openParams(dir, info)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	vars := storeVars(store)
	for _, t := range f.Tensors() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, ok := vars[t.Name]
		if !ok {
			return fmt.Errorf("checkpoint: the store has no parameter %q", t.Name)
		}
		raw, err := readAs(f, t, v.DType)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, ModelFile), err)
		}
		if err := store.Write(t.Name, raw); err != nil {
			return err
		}
	}
	return nil
}

// checkParams compares the tensors of a file with the parameters of its config.
func checkParams(f *Safetensors, info Info) error {
	if step, ok := f.Metadata()[stepKey]; ok && step != strconv.Itoa(info.Step) {
		return fmt.Errorf("it is of step %s and %s of step %d: saving was interrupted between the two", step, ConfigFile, info.Step)
	}
	want := map[string]bool{}
	for _, p := range info.Model.Params() {
		want[p.Name] = true
		t, ok := f.Info(p.Name)
		if !ok {
			return fmt.Errorf("the parameter %q is missing", p.Name)
		}
		if !slices.Equal(t.Shape, p.Shape) {
			return fmt.Errorf("the parameter %q has the shape %v, the config's is %v", p.Name, t.Shape, p.Shape)
		}
	}
	for _, t := range f.Tensors() {
		if !want[t.Name] {
			return fmt.Errorf("the tensor %.100q is no parameter of the config", t.Name)
		}
	}
	return nil
}

// readAs gives a tensor's bytes in the format of a variable.
func readAs(f *Safetensors, t TensorInfo, d graph.DType) ([]byte, error) {
	if t.DType == dtypes[d] {
		return f.Read(t.Name)
	}
	if d != graph.F32 {
		return nil, fmt.Errorf("tensor %q is %s, the variable %s", t.Name, t.DType, d)
	}
	x, err := f.Float32s(t.Name)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 4*len(x))
	for i, x := range x {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return raw, nil
}
