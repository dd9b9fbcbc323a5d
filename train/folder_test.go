package train

import (
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFolderIsNeverOverwrittenUnasked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := CreateFolder(dir, false)
	require.NoError(t, err)
	c, err := FromPreset("nano")
	require.NoError(t, err)
	require.NoError(t, f.WriteConfig(c.Resolve()))
	require.NoError(t, f.Append(Metrics{Step: 1, Loss: 2}))
	require.NoError(t, f.WritePlot("run", nil))
	path, err := f.WritePicture(12, image.NewGray(image.Rect(0, 0, 3, 2)))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "picture-000012.png"), path)
	require.NoError(t, f.Close())
	for _, name := range []string{MetricsFile, SettingsFile, LossPlotFile, "picture-000012.png"} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	all, err := ReadConfig(filepath.Join(dir, SettingsFile))
	require.NoError(t, err)
	got, err := Load(all)
	require.NoError(t, err)
	require.Equal(t, c.Resolve(), got)

	_, err = CreateFolder(dir, false)
	require.ErrorIs(t, err, ErrHasRun)
	require.ErrorContains(t, err, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "picture-book.png"), nil, 0o666))
	f, err = CreateFolder(dir, true)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the new metrics and what was never ours")
}

func TestFreshFoldersAreNumbered(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "runs")
	for _, want := range []string{"x-1", "x-2"} {
		f, err := FreshFolder(parent, "x")
		require.NoError(t, err)
		require.Equal(t, filepath.Join(parent, want), f.Dir)
		require.NoError(t, f.Close())
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	_, err := FreshFolder(file, "x")
	require.ErrorContains(t, err, "the run's folder can't be made")
	_, err = CreateFolder(file, false)
	require.ErrorContains(t, err, "the run's folder can't be made")
	require.ErrorContains(t, CheckFolder(file), "file is a file: give another folder")
	require.ErrorContains(t, CheckPlace(filepath.Join(file, "a", "b")), "file is a file: give another folder")
	require.NoError(t, CheckPlace(filepath.Join(parent, "a", "b")))
	require.NoDirExists(t, filepath.Join(parent, "a"), "looking leaves nothing")
}
