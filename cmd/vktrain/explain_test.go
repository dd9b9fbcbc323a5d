package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/report"
)

func TestExplain(t *testing.T) {
	status, stdout, stderr := vktrain("explain", "--depth", "4", "--gain", "0.5")
	require.Zero(t, status, stderr)
	rows := map[string][]string{}
	for line := range strings.Lines(stdout) {
		if f := strings.Fields(line); len(f) > 0 {
			rows[f[0]] = f[1:]
		}
	}
	require.Equal(t, []string{"1", "5.0625", "5"}, rows["4"])
	require.Equal(t, []string{"0", "2.25", "0.44721"}, rows["d√v_L"][2:])
	require.Contains(t, stdout, report.ScalarCaveats[0])

	page := filepath.Join(t.TempDir(), "page.html")
	status, stdout, stderr = vktrain("explain", "--json", "--html", page)
	require.Zero(t, status, stderr)
	var curves []report.ScalarCurve
	require.NoError(t, json.Unmarshal([]byte(stdout), &curves))
	require.Len(t, curves[2].Variance, 25)
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(written), "</html>")

	for flag, bad := range map[string]string{"--depth": "0", "--gain": "-1"} {
		status, _, stderr = vktrain("explain", flag, bad)
		require.Equal(t, 2, status)
		require.Contains(t, stderr, flag+": "+bad+" is not possible")
	}
	status, _, stderr = vktrain("explain", "--gain", "1e300")
	require.Equal(t, 2, status)
	require.Equal(t, "vktrain: --gain: 1e+300 takes the variance of pre beyond any number in 24 layers: use fewer layers or a smaller gain\n", stderr)
}
