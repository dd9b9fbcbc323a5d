package cpu

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsKnownWhereTheSystemSaysIt(t *testing.T) {
	memory := hostMemory()
	switch runtime.GOOS {
	case "linux", "darwin":
		require.Greater(t, memory, int64(64<<20))
	default:
		require.GreaterOrEqual(t, memory, int64(0))
	}
}
