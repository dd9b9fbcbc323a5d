//go:build unix

package checkpoint

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestWriteFileLeavesLinksAndPipesAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("target"), []byte("old"), 0o600))
	require.NoError(t, os.Symlink("target", in("link")))
	require.NoError(t, os.Symlink("later", in("dangling")))
	require.NoError(t, syscall.Mkfifo(in("pipe"), 0o600))
	for _, name := range []string{"link", "dangling", "pipe", "free"} {
		require.NoError(t, CheckWrite(in(name)))
	}
	require.NoFileExists(t, in("free"))
	require.NoFileExists(t, in("later"))

	require.NoError(t, WriteFile(in("link"), text("new")))
	require.NoError(t, WriteFile(in("dangling"), text("made")))
	read := make(chan string, 1)
	go func() {
		raw, err := os.ReadFile(in("pipe"))
		if err != nil {
			raw = []byte(err.Error())
		}
		read <- string(raw)
	}()
	require.NoError(t, WriteFile(in("pipe"), text("through")))
	require.Equal(t, "through", <-read)
	for name, want := range map[string]string{"target": "new", "link": "new", "later": "made", "dangling": "made"} {
		raw, err := os.ReadFile(in(name))
		require.NoError(t, err)
		require.Equal(t, want, string(raw), name)
	}
	for name, mode := range map[string]os.FileMode{"link": os.ModeSymlink, "dangling": os.ModeSymlink, "pipe": os.ModeNamedPipe, "target": 0} {
		info, err := os.Lstat(in(name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Type(), name)
	}
	info, err := os.Stat(in("target"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "private stays private")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 5)
}

func TestCheckWriteSaysWhatWriteFileWould(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	require.NoError(t, os.Mkdir(closed, 0o500))
	require.EqualError(t, CheckWrite(dir), dir+" can't be written: it is a folder: give a file")
	require.ErrorContains(t, WriteFile(dir, text("x")), "it is a folder")
	absent := filepath.Join(dir, "absent", "f")
	require.EqualError(t, CheckWrite(absent), absent+" can't be written: no such file or directory")
	if os.Getuid() != 0 { // whom nothing stops
		require.ErrorContains(t, CheckWrite(filepath.Join(closed, "f")), "permission denied")
	}
}
