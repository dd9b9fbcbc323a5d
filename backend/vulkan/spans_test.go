package vulkan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpansFillAndComeBack(t *testing.T) {
	s := newSpans(1000)
	require.True(t, s.empty())
	a, ok := s.take(400)
	require.True(t, ok)
	b, ok := s.take(600)
	require.True(t, ok)
	require.Equal(t, []uint64{0, 400}, []uint64{a, b})
	_, ok = s.take(1)
	require.False(t, ok)
	s.give(a, 400)
	_, ok = s.take(401)
	require.False(t, ok)
	s.give(b, 600)
	require.True(t, s.empty(), "neighbours join")
}

func TestSpansTakeTheTightestFit(t *testing.T) {
	s := newSpans(1000)
	for _, size := range []uint64{300, 100, 200, 100, 300} {
		_, ok := s.take(size)
		require.True(t, ok)
	}
	s.give(0, 300)
	s.give(400, 200)
	at, ok := s.take(150)
	require.True(t, ok)
	require.EqualValues(t, 400, at)
}

func TestSpansRefuseWhatIsFree(t *testing.T) {
	s := newSpans(1000)
	_, _ = s.take(500)
	s.give(100, 100)
	for _, wrong := range [][2]uint64{{100, 100}, {50, 100}, {150, 100}, {50, 300}, {600, 100}, {900, 200}} {
		require.Panics(t, func() { s.give(wrong[0], wrong[1]) }, "%v", wrong)
	}
}

// Against a plain map of which unit is taken by whom.
func TestSpansAgainstAMap(t *testing.T) {
	const units = 64
	r := rand.New(rand.NewPCG(1, 2))
	s := newSpans(units)
	var owner [units]int
	sizes := map[int][2]uint64{}
	for id := 1; id <= 5000; id++ {
		if size := uint64(1 + r.IntN(9)); r.IntN(2) == 0 {
			if at, ok := s.take(size); ok {
				for i := at; i < at+size; i++ {
					require.Zero(t, owner[i], "unit %d is taken twice", i)
					owner[i] = id
				}
				sizes[id] = [2]uint64{at, size}
			}
			continue
		}
		for old, place := range sizes { // any one
			s.give(place[0], place[1])
			clear(owner[place[0] : place[0]+place[1]])
			delete(sizes, old)
			break
		}
	}
	for _, place := range sizes {
		s.give(place[0], place[1])
	}
	require.True(t, s.empty())
}
