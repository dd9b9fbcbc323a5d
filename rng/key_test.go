package rng

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyTellsTheStream(t *testing.T) {
	s := State{Seed: 0x0123456789abcdef, Stream: 0xfedcba9876543210}
	require.Equal(t, [4]uint32{0x89abcdef, 0x01234567, 0x76543210, 0xfedcba98}, s.Key())
	require.Equal(t, s, OfKey(s.Key()))
}
