package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// untouched is what the words around an output hold.
const untouched = float32(-12345.5)

// uniform draws n numbers from -scale to scale.
func uniform(r *rand.Rand, n int, scale float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = (2*r.Float32() - 1) * scale
	}
	return x
}

func filled(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = untouched
	}
	return x
}

func TestTile(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 2))
	for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 31, 64, 257} {
		for rows := 1; rows <= MR; rows++ {
			for panels := 1; panels <= 3; panels++ {
				for _, packed := range []bool{false, true} {
					row, step, ldb := 1, rows, NR
					gap := k * NR
					if !packed {
						row, step, ldb, gap = k+r.IntN(3), 1, panels*NR+r.IntN(5), NR
						if r.IntN(2) == 0 {
							row, step = 1, rows+r.IntN(9)
						}
					}
					ldc := panels*NR + []int{0, 1, 24}[r.IntN(3)]
					scale := []float32{1, 1e18, 1e-18}[r.IntN(3)]
					a, b := uniform(r, (rows-1)*row+(k-1)*step+1, scale), uniform(r, (panels-1)*gap+(k-1)*ldb+NR, scale)
					old := uniform(r, (rows-1)*ldc+panels*NR, 1)
					testTile(t, rows, panels, k, a, row, step, b, ldb, gap, old, ldc, r.IntN(2) == 0)
				}
			}
		}
	}
}

func testTile(t *testing.T, rows, panels, k int, a []float32, row, step int, b []float32, ldb, gap int, old []float32, ldc int, accumulate bool) {
	t.Helper()
	c, twin := append(append([]float32{}, old...), filled(NR)...), append([]float32{}, old...)
	Tile(rows, panels, k, a, row, step, b, ldb, gap, c[:len(old)], ldc, accumulate)
	oneByOne(tileGo, rows, panels, k, a, row, step, b, ldb, gap, twin, ldc, accumulate)
	require.Equal(t, filled(NR), c[len(old):], "written behind the tile")
	for at := range old {
		i, j := at/ldc, at%ldc
		if j >= panels*NR {
			require.Equal(t, old[at], c[at], "written outside the tile")
			continue
		}
		sum := 0.0
		if accumulate {
			sum = float64(old[at])
		}
		abs := math.Abs(sum)
		for l := range k {
			p := float64(a[i*row+l*step]) * float64(b[j/NR*gap+l*ldb+j%NR])
			sum += p
			abs += math.Abs(p)
		}
		bound := float64(k+2) * (0x1p-24*abs + 0x1p-149)
		require.InDelta(t, sum, c[at], bound)
		require.InDelta(t, sum, twin[at], bound)
	}
}

// Infinities and NaN come out, in their rows and columns alone.
func TestTileSpecial(t *testing.T) {
	const k, panels, n = 9, 2, 2 * NR
	inf := float32(math.Inf(1))
	a, b := uniform(rand.New(rand.NewPCG(1, 2)), k*MR, 1), uniform(rand.New(rand.NewPCG(3, 4)), k*n, 1)
	a[4*MR+2], b[8*n+5], b[8*n+21] = inf, float32(math.NaN()), float32(math.NaN())
	c := make([]float32, MR*n)
	Tile(MR, panels, k, a, 1, MR, b, n, NR, c, n, false)
	for at, x := range c {
		switch i, j := at/n, at%n; {
		case j%NR == 5:
			require.True(t, x != x, "row %d column %d", i, j)
		case i == 2:
			require.True(t, math.IsInf(float64(x), 0), "row %d column %d", i, j)
		default:
			require.False(t, math.IsInf(float64(x), 0) || x != x, "row %d column %d", i, j)
		}
	}
}

func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 6))
	for _, k := range []int{1, 2, 7, 8, 9, 16, 31, 200} {
		for _, width := range []int{1, 4, 5, 6, 8, 16, 17} {
			for n := 1; n <= 8; n++ { // rows
				ld := k + r.IntN(5)
				x := uniform(r, (n-1)*ld+k, 1)
				packsAs(t, x, width, 8, k, func(l, i int) int { return min(i, n-1)*ld + l },
					func(dst []float32, src []float32) { Transpose(dst, width, src, ld, n, k) },
					func(dst []float32, src []uint16) { Transpose(dst, width, src, ld, n, k) })
			}
			for _, cols := range []int{8, 16} {
				ld := cols + r.IntN(9)
				x := uniform(r, (k-1)*ld+cols, 1)
				packsAs(t, x, width, cols, k, func(l, i int) int { return l*ld + i },
					func(dst []float32, src []float32) { Strided(dst, width, src, ld, cols, k) },
					func(dst []float32, src []uint16) { Strided(dst, width, src, ld, cols, k) })
			}
		}
	}
}

// packsAs checks a packing of x, and of its upper halves as bfloat16.
func packsAs(t *testing.T, x []float32, width, cols, k int, from func(l, i int) int, f32 func(dst, src []float32), bf16 func([]float32, []uint16)) {
	t.Helper()
	size := (k-1)*width + cols
	half := make([]uint16, len(x))
	for i, v := range x {
		half[i] = uint16(math.Float32bits(v) >> 16)
	}
	got, got16, want, want16 := filled(size+8), filled(size+8), filled(size+8), filled(size+8)
	f32(got[:size], x)
	bf16(got16[:size], half)
	for l := range k {
		for i := range cols {
			want[l*width+i] = x[from(l, i)]
			want16[l*width+i] = BF16(half[from(l, i)])
		}
	}
	require.Equal(t, want, got, "width %d k %d", width, k)
	require.Equal(t, want16, got16, "bfloat16, width %d k %d", width, k)
}

func BenchmarkTile(b *testing.B) {
	const k, panels = 256, 2
	x, y, c := make([]float32, k*MR), make([]float32, k*panels*NR), make([]float32, MR*panels*NR)
	for b.Loop() {
		Tile(MR, panels, k, x, 1, MR, y, NR, k*NR, c, panels*NR, true)
	}
	b.ReportMetric(float64(2*k*MR*panels*NR*b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
