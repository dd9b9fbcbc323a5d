//go:build cgo

package cheap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInUseSeesAnAllocation(t *testing.T) {
	before, ok := InUse()
	if !ok {
		t.Skip("the C library does not tell")
	}
	const size = 3 << 20
	free := allocate(size)
	during, _ := InUse()
	require.GreaterOrEqual(t, during-before, size)
	free()
	after, _ := InUse()
	require.Less(t, after-before, size/2)
}
