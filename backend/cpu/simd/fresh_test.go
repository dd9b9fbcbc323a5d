package simd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed assembly is what the generator writes.
func TestGeneratedFilesAreFresh(t *testing.T) {
	for _, family := range []string{"gemm", "gemm512", "vector", "norm", "pointwise", "peak"} {
		dir := t.TempDir()
		asm, stubs := filepath.Join(dir, family+"_amd64.s"), filepath.Join(dir, family+"_amd64.go")
		out, err := exec.Command("go", "run", "../../../tools/asm", "-family", family, "-out", asm, "-stubs", stubs, "-pkg", "simd").CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, f := range []string{asm, stubs} {
			want, err := os.ReadFile(f)
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Base(f))
			require.NoError(t, err)
			// The first line repeats the command's arguments.
			require.Equal(t, afterFirstLine(string(want)), afterFirstLine(string(got)), "run go generate ./backend/cpu/simd")
		}
	}
}

func afterFirstLine(s string) string {
	for i := range s {
		if s[i] == '\n' {
			return s[i:]
		}
	}
	return s
}
