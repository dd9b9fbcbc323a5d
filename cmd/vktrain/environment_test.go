package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every variable that the program reads is in the help topic, but for its own child's and those that only tests and tools read.
func TestEnvironmentIsDocumented(t *testing.T) {
	status, out, errs := vktrain("help", "environment")
	require.Zero(t, status, errs)
	others := []string{"VKTRAIN_PROBE", "VKTRAIN_CONFORMANCE_SEED", "VKTRAIN_NEWER_TOOLS"}
	words := regexp.MustCompile(`"(VKTRAIN_[A-Z_]+)"`)
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range words.FindAllSubmatch(raw, -1) {
			found[string(m[1])] = true
		}
		return err
	}))
	for _, name := range others {
		require.True(t, found[name], "%s is read nowhere", name)
		delete(found, name)
	}
	require.GreaterOrEqual(t, len(found), 3)
	for name := range found {
		require.Contains(t, out, "\n"+name+"\n")
	}
	for _, v := range environment {
		require.True(t, found[v.name] || !strings.HasPrefix(v.name, "VKTRAIN_"), "%s is read nowhere", v.name)
	}
}
