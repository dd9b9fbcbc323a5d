//go:build !(window && cgo)

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWindowThatIsNotThere(t *testing.T) {
	for _, args := range [][]string{{"train", "--window"}, {"train", "--window", "--window-ends-run", "--device", "cpu"}} {
		status, _, errs := vktrain(args...)
		require.Equal(t, statusUsage, status)
		require.Contains(t, errs, "--window: ")
		require.Contains(t, errs, "go build -tags window ./cmd/vktrain")
		require.Contains(t, errs, "xorg-dev")
	}
	status, _, errs := vktrain("train", "--window-ends-run")
	require.Equal(t, statusUsage, status)
	require.Contains(t, errs, "give --window too")
}
