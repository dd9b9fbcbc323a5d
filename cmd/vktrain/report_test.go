package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, placement := range []string{"pre", "peri"} {
		status, _, stderr := vktrain(small("--out", placement, "--set", "model.placement="+placement)...)
		require.Zero(t, status, stderr)
	}
	status, stdout, stderr := vktrain("report", "pre", "peri", "--out", "both", "--title", "A & B")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "2 runs of 2 variants")
	require.Contains(t, stdout, filepath.Join("both", "report.html"))
	page, err := os.ReadFile(filepath.Join("both", "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "<h1>A &amp; B</h1>")
	require.FileExists(t, filepath.Join("both", "figures", "loss.svg"))

	status, stdout, stderr = vktrain("report", "pre")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "1 run of 1 variant")
	require.FileExists(t, filepath.Join("pre", "report.html"))

	for _, bad := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 2, "needs the FOLDER"}, {[]string{"pre", "peri"}, 2, "--out is missing"}, {[]string{"nowhere"}, 1, "nowhere can't be read"}, {[]string{"both"}, 1, "there is no run"},
	} {
		status, _, stderr := vktrain(append([]string{"report"}, bad.args...)...)
		require.Equal(t, bad.status, status)
		require.Contains(t, stderr, bad.says)
	}
}
