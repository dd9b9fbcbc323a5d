package rng

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var _ rand.Source = (*Rand)(nil)

// The known answers that the authors of Philox publish with their library.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = math.MaxUint32
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		require.Equal(t, c.want, philox4x32(c.ctr, c.key))
	}
}

// The documented layout of the counter.
func TestWordIsAFunctionOfSeedStreamAndPosition(t *testing.T) {
	r := Restore(State{Seed: 0x0123456789abcdef, Stream: 0xfedcba9876543210, Word: 4<<32 + 6})
	block := philox4x32([4]uint32{1, 1, 0x76543210, 0xfedcba98}, [2]uint32{0x89abcdef, 0x01234567})
	require.Equal(t, block[2], r.Uint32())
	require.Equal(t, block[3], r.Uint32())
	require.Equal(t, uint64(4<<32+8), r.State().Word)
}

func TestSeekIsTheSameAsDrawing(t *testing.T) {
	words := make([]uint32, 41)
	r := New(7, "seek")
	for i := range words {
		words[i] = r.Uint32()
	}
	for i := len(words) - 1; i >= 0; i-- {
		r.Seek(uint64(i))
		require.Equal(t, words[i], r.Uint32(), "word %d", i)
	}
}

func TestStateSurvivesJSON(t *testing.T) {
	r := New(math.MaxUint64, "state")
	for i := range 13 {
		raw, err := json.Marshal(r.State())
		require.NoError(t, err)
		var s State
		require.NoError(t, json.Unmarshal(raw, &s))
		copied := Restore(s)
		switch i % 3 {
		case 0:
			require.Equal(t, r.Uint32(), copied.Uint32())
		case 1:
			require.Equal(t, r.NormFloat64(), copied.NormFloat64())
		case 2:
			require.Equal(t, r.Perm(9), copied.Perm(9))
		}
		require.Equal(t, r.State(), copied.State())
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64][]string{}
	for _, names := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a"}, {"1"}, {Num(2)}, {Num(-2)}} {
		word := New(1, names...).Uint64()
		require.NotContains(t, seen, word, "%q", names)
		seen[word] = names
	}
	require.NotEqual(t, New(1, "a").Uint64(), New(2, "a").Uint64())
	require.Equal(t, "18446744073709551615", Num(uint64(math.MaxUint64)))
	require.Equal(t, "-9223372036854775808", Num(int64(math.MinInt64)))
}

// A normal number starts on a block of its own, so that element i of a parameter can be drawn by any worker.
func TestNormalsAreAddressable(t *testing.T) {
	all, one := New(3, "normals"), New(3, "normals")
	for i := range 100 {
		one.Seek(uint64(4 * i))
		require.Equal(t, all.NormFloat64(), one.NormFloat64())
	}
	one.Seek(401)
	want := one.State()
	want.Word = 408
	one.NormFloat64()
	require.Equal(t, want, one.State())
}

func TestNormalsFillInParts(t *testing.T) {
	whole := make([]float32, 27)
	r := New(3, "fill")
	r.Uint32()
	r.Normals(whole)
	require.Equal(t, uint64(4+28), r.State().Word)
	for from := 0; from < len(whole); from += 4 {
		part := make([]float32, min(4, len(whole)-from))
		r.Seek(uint64(4 + from))
		r.Normals(part)
		require.Equal(t, whole[from:from+len(part)], part)
	}
	r.Normals(nil)
}

// Each mean of n draws lies within five standard errors.
func TestMoments(t *testing.T) {
	const n = 200_000
	r := New(11, "moments")
	near := func(name string, sum, mean, variance float64) {
		require.InDelta(t, mean, sum/n, 5*math.Sqrt(variance/n), name)
	}
	var u, u2, z, z2, z3, z4 float64
	for range n {
		x := r.Float64()
		require.True(t, x >= 0 && x < 1)
		u += x
		u2 += x * x
		x = r.NormFloat64()
		z += x
		z2 += x * x
		z3 += x * x * x
		z4 += x * x * x * x
	}
	fill := make([]float32, n)
	r.Normals(fill)
	var f, f2, f4, pair float64
	for i, x := range fill {
		x := float64(x)
		f += x
		f2 += x * x
		f4 += x * x * x * x
		pair += x * float64(fill[i^1])
	}
	near("filled", f, 0, 1)
	near("filled squared", f2, 1, 2)
	near("filled to the fourth", f4, 3, 105-9)
	near("halves of a pair", pair, 0, 2) // each product counts twice
	near("uniform", u, 0.5, 1./12)
	near("uniform squared", u2, 1./3, 1./5-1./9)
	near("normal", z, 0, 1)
	near("normal squared", z2, 1, 2)
	near("normal cubed", z3, 0, 15)
	near("normal to the fourth", z4, 3, 105-9)
}

func TestIntNIsUniform(t *testing.T) {
	const n, draws = 7, 70_000
	r, counts := New(5, "ints"), [n]int{}
	for range draws {
		counts[r.IntN(n)]++
	}
	for i, c := range counts {
		require.InDelta(t, draws/n, c, 5*math.Sqrt(draws/n), "%d", i)
	}
	require.Zero(t, r.IntN(1))
	// A bound for which a biased method is plainly biased.
	const bound = math.MaxInt / 4 * 3
	low := 0
	for range draws {
		if r.IntN(bound) < bound/3 {
			low++
		}
	}
	require.InDelta(t, draws/3, low, 5*math.Sqrt(draws/3))
	require.PanicsWithValue(t, "rng: IntN of a bound under 1", func() { r.IntN(0) })
}

func TestPerm(t *testing.T) {
	require.Empty(t, New(1).Perm(0))
	counts := map[[3]int]int{}
	r := New(1, "perm")
	for range 6000 {
		counts[[3]int(r.Perm(3))]++
	}
	require.Len(t, counts, 6)
	for p, c := range counts {
		require.InDelta(t, 1000, c, 5*math.Sqrt(1000), "%v", p)
	}
}

func BenchmarkUint32(b *testing.B) {
	for r := New(1); b.Loop(); {
		r.Uint32()
	}
}

func BenchmarkNormFloat64(b *testing.B) {
	for r := New(1); b.Loop(); {
		r.NormFloat64()
	}
}

func BenchmarkNormals(b *testing.B) {
	dst := make([]float32, 1024)
	b.SetBytes(4 * 1024)
	for r := New(1); b.Loop(); {
		r.Normals(dst)
	}
}
