package data

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func count(n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i)
	}
	return x
}

func TestBatchesAreShuffledWindows(t *testing.T) {
	const T, B = 5, 3
	b, err := NewBatches(count(101), T, B, 9)
	require.NoError(t, err)
	tokens, targets := make([]int32, B*T), make([]int32, B*T)
	seen := map[int32]int{}
	for range 6 { // 18 of an epoch's 19 or 20 windows
		b.Next(tokens, targets)
		for i, v := range tokens {
			require.Equal(t, v+1, targets[i])
			if i%T > 0 {
				require.Equal(t, tokens[i-1]+1, v)
			}
			seen[v]++
		}
	}
	for v, n := range seen {
		require.Equal(t, 1, n, "token %d twice in an epoch", v)
	}
	require.Len(t, seen, 90)
}

func TestBatchesGoOnFromAState(t *testing.T) {
	const T, B = 4, 2
	next := func(b *Batches) []int32 {
		tokens, targets := make([]int32, B*T), make([]int32, B*T)
		b.Next(tokens, targets)
		return append(tokens, targets...)
	}
	a, err := NewBatches(count(50), T, B, 1)
	require.NoError(t, err)
	for range 17 { // over several epochs
		next(a)
	}
	c, err := NewBatches(count(50), T, B, 1)
	require.NoError(t, err)
	require.NoError(t, c.Restore(a.State()))
	for range 20 {
		require.Equal(t, next(a), next(c))
	}
	require.Error(t, c.Restore(BatchState{Index: 1000}))
	other, err := NewBatches(count(50), T, B, 2)
	require.NoError(t, err)
	fresh, err := NewBatches(count(50), T, B, 1)
	require.NoError(t, err)
	require.NotEqual(t, next(fresh), next(other), "another seed is another order")
}

func TestWindowsCoverEachTargetOnce(t *testing.T) {
	for _, n := range []int{2, 5, 6, 7, 23, 64} {
		for _, context := range []int{0, 2} {
			const T, B = 5, 2
			w, err := NewWindows(count(n), T, B, context)
			require.NoError(t, err)
			seen := map[int32]bool{}
			tokens, targets := make([]int32, B*T), make([]int32, B*T)
			for kept := w.Next(tokens, targets); kept > 0; kept = w.Next(tokens, targets) {
				for i, v := range targets {
					if v == Ignored {
						continue
					}
					kept--
					require.Equal(t, tokens[i]+1, v)
					require.False(t, seen[v])
					seen[v] = true
				}
				require.Zero(t, kept)
			}
			require.Len(t, seen, n-1)
		}
	}
	_, err := NewWindows(count(1), 5, 2, 0)
	require.Error(t, err)
}

func TestBatchesOfVeryLittle(t *testing.T) {
	for _, n := range []int{0, 1, 4} {
		_, err := NewBatches(count(n), 4, 2, 1)
		require.ErrorContains(t, err, fmt.Sprintf("has %d tokens, but a sequence of 4 tokens and the token after it take 5", n))
	}
	// One window of one token, again and again.
	b, err := NewBatches([]int32{7, 8}, 1, 3, 1)
	require.NoError(t, err)
	tokens, targets := make([]int32, 3), make([]int32, 3)
	for range 3 {
		b.Next(tokens, targets)
		require.Equal(t, []int32{7, 7, 7}, tokens)
		require.Equal(t, []int32{8, 8, 8}, targets)
	}
	require.Equal(t, BatchState{Epoch: 8, Index: 1}, b.State())
}

// Over many epochs each token is dealt about equally often, but for the ends, and each offset occurs.
func TestEpochsDiffer(t *testing.T) {
	const n, T = 41, 4
	b, err := NewBatches(count(n), T, 1, 3)
	require.NoError(t, err)
	tokens, targets := make([]int32, T), make([]int32, T)
	offsets, orders := map[int32]bool{}, map[string]bool{}
	for b.State().Epoch < 50 {
		epoch, order := b.State().Epoch, ""
		for b.State().Epoch == epoch {
			b.Next(tokens, targets)
			if b.State().Epoch == epoch {
				offsets[tokens[0]%T] = true
				order += fmt.Sprint(tokens[0], " ")
			}
		}
		orders[order] = true
	}
	require.Len(t, offsets, T)
	require.Len(t, orders, 50)
}

func TestBatchStateSurvivesJSON(t *testing.T) {
	raw, err := json.Marshal(BatchState{Epoch: math.MaxUint64, Index: 3})
	require.NoError(t, err)
	require.JSONEq(t, `{"epoch": 18446744073709551615, "index": 3}`, string(raw))
	var s BatchState
	require.NoError(t, json.Unmarshal(raw, &s))
	require.Equal(t, BatchState{Epoch: math.MaxUint64, Index: 3}, s)
}

func TestAStateOfSomethingElseChangesNothing(t *testing.T) {
	b, err := NewBatches(count(50), 4, 2, 1)
	require.NoError(t, err)
	tokens, targets := make([]int32, 8), make([]int32, 8)
	b.Next(tokens, targets)
	was := b.State()
	for _, s := range []BatchState{{Index: -1}, {Epoch: 3, Index: 13}} {
		require.ErrorContains(t, b.Restore(s), "it is of another text, seq_len or seed")
		require.Equal(t, was, b.State())
	}
	other, err := NewBatches(count(50), 4, 2, 1)
	require.NoError(t, err)
	require.NoError(t, other.Restore(was))
	want := make([]int32, 8)
	other.Next(want, targets)
	b.Next(tokens, targets)
	require.Equal(t, want, tokens)
}

func TestWindowsPadTheEnd(t *testing.T) {
	w, err := NewWindows([]int32{5, 6, 7, 8, 9}, 3, 2, 1)
	require.NoError(t, err)
	tokens, targets := make([]int32, 6), make([]int32, 6)
	require.Equal(t, 4, w.Next(tokens, targets))
	require.Equal(t, []int32{5, 6, 7, 7, 8, 0}, tokens)
	require.Equal(t, []int32{6, 7, 8, Ignored, 9, Ignored}, targets)
	require.Zero(t, w.Next(tokens, targets))
	require.Equal(t, []int32{0, 0, 0, 0, 0, 0}, tokens)
}

func TestMisusePanics(t *testing.T) {
	b, err := NewBatches(count(20), 4, 2, 1)
	require.NoError(t, err)
	w, err := NewWindows(count(20), 4, 2, 0)
	require.NoError(t, err)
	for _, f := range []func(tokens, targets []int32){b.Next, func(x, y []int32) { w.Next(x, y) }} {
		require.PanicsWithValue(t, "data: tokens or targets are not of batch times sequence length", func() { f(make([]int32, 8), make([]int32, 7)) })
	}
	require.PanicsWithValue(t, "data: batch or sequence length under 1", func() { _, _ = NewBatches(count(9), 0, 1, 1) })
	require.PanicsWithValue(t, "data: batch or sequence length under 1", func() { _, _ = NewWindows(count(9), 1, 0, 0) })
	require.PanicsWithValue(t, "data: context outside of 0 to sequence length - 1", func() { _, _ = NewWindows(count(9), 4, 1, 4) })
	require.PanicsWithValue(t, "data: fraction outside of 0 to 1", func() { SplitDocs(nil, math.NaN()) })
}
