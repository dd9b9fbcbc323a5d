package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// goldenVariable names a folder of golden models beside those that come with the kit.
const goldenVariable = "VKTRAIN_GOLDEN"

// goldenFolders are the kit's own models, and a folder named by the environment or where it stands beside the checkout.
func goldenFolders(t *testing.T) []string {
	folders := []string{""}
	if folder := os.Getenv(goldenVariable); folder != "" {
		return append(folders, folder)
	}
	beside := "../../../shared/golden"
	if _, err := os.Stat(filepath.Join(beside, "index.json")); err == nil {
		return append(folders, beside)
	}
	t.Logf("only the models that come with the kit: %s names no others", goldenVariable)
	return folders
}

// The interpreter, the model and the gradients agree with another implementation to what float64 can give.
func TestGoldenModelsInFloat64(t *testing.T) {
	for _, folder := range goldenFolders(t) {
		files, err := goldenFiles(folder)
		require.NoError(t, err)
		names, err := goldenNames(files)
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.NoError(t, checkGoldenExact(files, name), name)
		}
	}
}

func TestGoldenFoldersThatAreNone(t *testing.T) {
	_, err := goldenCases(t.TempDir())
	require.ErrorContains(t, err, "index.json")
	for _, index := range []string{"[]", "null", "{}", `"a"`, "[1]", "", "["} {
		_, err := goldenNames(fstest.MapFS{"index.json": {Data: []byte(index)}})
		require.EqualError(t, err, `index.json is no list of names: it must hold at least one, as in ["a", "b"]`, index)
	}
	good, err := goldenFiles("")
	require.NoError(t, err)
	model, err := fs.ReadFile(good, "peri_rms_odd.json")
	require.NoError(t, err)
	tensors, err := fs.ReadFile(good, "pre_rms_tied.safetensors")
	require.NoError(t, err)
	files := fstest.MapFS{
		"zero.json": {Data: []byte(`{"batch": 0}`)}, "text.json": {Data: []byte("xxx")}, "alone.json": {Data: model},
		"short.json": {Data: model}, "short.safetensors": {Data: []byte("xxx")},
		"other.json": {Data: model}, "other.safetensors": {Data: tensors},
	}
	for name, want := range map[string]string{"zero": "zero.json: batch 0", "text": "text.json", "none": "none.json", "alone": "alone.safetensors",
		"short": "short.safetensors: not a safetensors file", "other": "other.safetensors: it has no tensor"} {
		_, err := openGolden(files, name)
		require.ErrorContains(t, err, want)
	}
}
