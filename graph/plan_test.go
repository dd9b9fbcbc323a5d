package graph

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/rng"
)

// TestSpansOverlapAsTheirPieces holds the ordered lists against a look at each piece.
func TestSpansOverlapAsTheirPieces(t *testing.T) {
	r := rng.New(1, "spans")
	bases := []*Value{{id: 0}, {id: 1}}
	draw := func() span {
		from := r.IntN(60)
		return span{bases[r.IntN(2)], from, from + 1 + r.IntN(8)}
	}
	for range 200 {
		set, pieces := spans{}, []span(nil)
		for range r.IntN(12) {
			s := draw()
			set.add(s)
			pieces = append(pieces, s)
		}
		for range 30 {
			s := draw()
			require.Equal(t, slices.ContainsFunc(pieces, s.overlaps), set.overlap(s), "%v in %v", s, pieces)
		}
		for _, list := range set {
			for i := range list[1:] {
				require.LessOrEqual(t, list[i].to, list[i+1].from)
			}
		}
	}
}
