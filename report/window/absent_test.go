//go:build !(window && cgo)

package window

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A program without windows says what to do.
func TestAbsent(t *testing.T) {
	_, err := Open(Options{})
	require.Equal(t, Available(), err)
	require.ErrorContains(t, err, "go build -tags window ./cmd/vktrain")
	require.ErrorContains(t, err, "xorg-dev")
	require.Equal(t, 7, Main(func() int { return 7 }))
}
