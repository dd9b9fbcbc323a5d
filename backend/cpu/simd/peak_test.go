package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFMALoop(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for _, n := range []int{-1, 0, 1, 2, 3, 17} {
		var got struct {
			before [8]float32
			acc    [FMALanes]float32
			after  [8]float32
		}
		for i := range got.acc {
			got.acc[i] = float32(r.NormFloat64())
		}
		got.acc[5], got.acc[FMALanes-1] = float32(math.Inf(1)), float32(math.NaN())
		start, twin := got.acc, got.acc
		x := r.Float32() - 0.5
		FMALoop(n, &got.acc, x)
		fmaLoopGo(n, &twin, x)
		require.Zero(t, got.before)
		require.Zero(t, got.after)
		for i, s := range start {
			want, abs := float64(s), math.Abs(float64(s))
			for range n {
				want += want * float64(x)
				abs += abs * math.Abs(float64(x))
			}
			for _, g := range []float32{got.acc[i], twin[i]} {
				if math.IsInf(want, 0) || math.IsNaN(want) {
					require.Equal(t, math.IsNaN(want), math.IsNaN(float64(g)))
					require.Equal(t, math.IsInf(want, 0), math.IsInf(float64(g), 0))
					continue
				}
				// Two roundings a step in the twin.
				require.InDelta(t, want, g, float64(2*max(n, 0))*0x1p-24*abs)
			}
		}
	}
}

func TestTriad(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for _, n := range []int{0, 1, 31, 32, 33, 67, 128} {
		const guard = 8
		make3 := func() (x [3][]float32) {
			for j := range x {
				x[j] = make([]float32, n+guard)
				for i := range x[j] {
					x[j][i] = float32(r.NormFloat64())
				}
			}
			return x
		}
		x := make3()
		if n > 2 {
			x[1][0], x[2][1], x[1][n-1] = float32(math.Inf(-1)), float32(math.NaN()), 1e30
		}
		start, s := append([]float32{}, x[0]...), r.Float32()
		Triad(x[0][:n], x[1], x[2], s)
		for i := range start {
			if i >= n {
				require.Equal(t, start[i], x[0][i], "written past the end")
				continue
			}
			want := float64(x[1][i]) + float64(x[2][i])*float64(s)
			if math.IsNaN(want) || math.IsInf(want, 0) {
				require.Equal(t, math.IsNaN(want), math.IsNaN(float64(x[0][i])))
				require.Equal(t, math.IsInf(want, -1), math.IsInf(float64(x[0][i]), -1))
				continue
			}
			require.InDelta(t, want, x[0][i], 2*0x1p-24*(math.Abs(float64(x[1][i]))+math.Abs(float64(x[2][i]))))
		}
	}
}

func BenchmarkFMALoop(b *testing.B) {
	acc := [FMALanes]float32{1, 2, 3}
	const n = 10000
	for b.Loop() {
		FMALoop(n, &acc, -0x1p-20)
	}
	b.ReportMetric(2*n*FMALanes*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
