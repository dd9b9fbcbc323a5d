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

// A large temporary begins in the place of another that has ended, for the price of a barrier; small ones run side by side.
func TestLargeTemporariesTakeTurns(t *testing.T) {
	barriers := func(elems int) (n int, arena int) {
		b := NewBuilder()
		x, sums := b.Input("x", F32, elems), b.Var("sums", F32, 3, SumSquaresParts)
		for i := range 3 {
			b.SumSquares(b.ReLU(x), b.View(sums, i*SumSquaresParts, SumSquaresParts))
		}
		pl := NewPlan(b.Build("p"))
		for i := range pl.Program().Nodes() {
			if pl.Barrier(i) {
				n++
			}
		}
		return n, pl.ArenaBytes()
	}
	n, arena := barriers(largeBytes / 4)
	require.Equal(t, []int{5, largeBytes}, []int{n, arena})
	n, arena = barriers(1024)
	require.Equal(t, []int{3, 8192}, []int{n, arena}, "a sum and the next ReLU are one group")
}

// An arena in pieces has no temporary in two of them.
func TestPiecesOfAnArena(t *testing.T) {
	b := NewBuilder()
	x := b.Input("x", F32, 100)
	var sum *Value
	for range 9 {
		y := b.Add(x, x, nil)
		if sum = b.Add(y, x, nil); len(b.Nodes())%4 == 0 {
			b.Output(y.Name(), y)
		}
		x = sum
	}
	b.Output("sum", sum)
	p := b.Build("p")
	for _, segment := range []int{512, 768, 1280} {
		pl := NewPlanWith(p, PlanOptions{Segment: segment})
		for _, v := range p.Values() {
			if v.Kind() == KindTemp {
				at := pl.Offset(v)
				require.Equal(t, at/segment, (at+v.Bytes()-1)/segment, "%q at %d", v.Name(), at)
			}
		}
		require.GreaterOrEqual(t, pl.ArenaBytes(), NewPlan(p).ArenaBytes())
	}
}
