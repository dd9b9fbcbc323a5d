package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vktrain/vktrain/backend/cpu/simd"
)

// testPool runs on goroutines of its own.
type testPool int

func (p testPool) Workers() int { return int(p) }

func (p testPool) For(n int, f func(worker, i int)) {
	var wg sync.WaitGroup
	for w := range int(p) {
		wg.Go(func() {
			for i := w * n / int(p); i < (w+1)*n/int(p); i++ {
				f(w, i)
			}
		})
	}
	wg.Wait()
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x
}

func operand(data []float32, rows, cols int, trans bool) Matrix {
	if trans {
		return Matrix{Data: data, Row: 1, Col: rows}
	}
	return Matrix{Data: data, Row: cols, Col: 1}
}

// asBF16 is a matrix's numbers cut to bfloat16: as they are stored, and the same as float32.
func asBF16(x Matrix) (half, same Matrix) {
	half, same = Matrix{Row: x.Row, Col: x.Col}, Matrix{Row: x.Row, Col: x.Col}
	for _, v := range x.Data {
		half.BF16 = append(half.BF16, uint16(math.Float32bits(v)>>16))
		same.Data = append(same.Data, simd.BF16(half.BF16[len(half.BF16)-1]))
	}
	return half, same
}

// sizes (m, n, k) lie on both sides of tiles, blocks and tasks; some are one row, one column, or few.
var sizes = [][3]int{
	{1, 1, 1}, {1, 17, 3}, {1, 300, 100}, {2, 33, 129}, {3, 64, 8}, {4, 31, 77}, {5, 16, 256}, {12, 48, 9}, {300, 1, 65}, {131, 2, 40}, {65, 3, 9}, {64, 4, 33},
	{6, 1, 257}, {7, 33, 2}, {8, 8, 8}, {13, 40, 700}, {97, 31, 300}, {200, 2100, 13}, {250, 70, 790},
	{3, 4200, 300}, {150, 16, 1}, {3, 17, 70001},
}

func TestMul(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 4))
	for _, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		for mode, name := range []string{"NN", "NT", "TN", "TT"} {
			a, b := operand(random(r, m*k), m, k, mode >= 2), operand(random(r, k*n), k, n, mode%2 == 1)
			testMul(t, r, fmt.Sprintf("%s %v", name, s), m, n, k, a, b, a, b)
			half, same := asBF16(b)
			testMul(t, r, fmt.Sprintf("%s %v, b bfloat16", name, s), m, n, k, a, half, a, same)
			halfA, sameA := asBF16(a)
			testMul(t, r, fmt.Sprintf("%s %v, bfloat16", name, s), m, n, k, halfA, half, sameA, same)
		}
	}
}

// testMul multiplies a by b, with each kind of addend and numbers of workers, and checks against the same matrices as float32.
func testMul(t *testing.T, r *rand.Rand, name string, m, n, k int, a, b, a32, b32 Matrix) {
	t.Helper()
	const untouched = -12345
	ldc := n + r.IntN(3)
	c, add := random(r, m*ldc), random(r, m*ldc)
	for i := range c {
		if i%ldc >= n {
			c[i] = untouched
		}
	}
	addend := r.IntN(3) // none, separate, in place
	base := [][]float32{make([]float32, m*ldc), add, c}[addend]
	var first []float32
	for _, workers := range []int{1, 2, 3, 0} {
		got := append([]float32{}, c...)
		switch {
		case workers == 0 && addend != 1:
			NewSingle().Mul(m, n, k, a, b, got, ldc, addend == 2)
		case workers == 0:
			continue
		default:
			from := [][]float32{nil, add, got}[addend]
			New(m, n, k, a, b, got, ldc, from, NewScratch(workers)).Run(testPool(workers))
		}
		if first == nil {
			first = got
		}
		require.Equal(t, first, got, "%s: the same bits for any number of workers", name)
	}
	row, abs := make([]float64, n), make([]float64, n)
	for i := range m {
		for j := range row {
			row[j] = float64(base[i*ldc+j])
			abs[j] = math.Abs(row[j])
		}
		for l := range k {
			x := float64(a32.Data[i*a32.Row+l*a32.Col])
			for j := range row {
				p := x * float64(b32.Data[l*b32.Row+j*b32.Col])
				row[j] += p
				abs[j] += math.Abs(p)
			}
		}
		for j := range ldc {
			got := first[i*ldc+j]
			if j >= n {
				require.Equal(t, float32(untouched), got, "%s: written outside", name)
			} else if e := math.Abs(row[j] - float64(got)); !(e <= float64(k+2)*0x1p-24*abs[j]+1e-30) {
				t.Fatalf("%s, addend %d: %v at %d,%d, want %v", name, addend, got, i, j, row[j])
			}
		}
	}
}

// An infinity or NaN of an operand comes out in its row or column, and nowhere else.
func TestMulSpecial(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 8))
	for _, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		for mode := range 4 {
			a, b := operand(random(r, m*k), m, k, mode >= 2), operand(random(r, k*n), k, n, mode%2 == 1)
			i, j, c := r.IntN(m), r.IntN(n), make([]float32, m*n)
			a.Data[i*a.Row+r.IntN(k)*a.Col] = float32(math.Inf(1))
			b.Data[r.IntN(k)*b.Row+j*b.Col] = float32(math.NaN())
			New(m, n, k, a, b, c, n, nil, NewScratch(2)).Run(testPool(2))
			for at, x := range c {
				switch {
				case at%n == j:
					require.True(t, x != x, "%v mode %d", s, mode)
				case at/n == i:
					require.True(t, math.IsInf(float64(x), 0) || x != x, "%v mode %d", s, mode)
				case math.IsInf(float64(x), 0) || x != x:
					t.Fatalf("%v mode %d: %v at %d", s, mode, x, at)
				}
			}
		}
	}
}

// A Mul or Single that has run once needs no more memory.
func TestNoAllocations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		for mode := range 4 {
			a, b := operand(random(r, m*k), m, k, mode >= 2), operand(random(r, k*n), k, n, mode%2 == 1)
			c, single := make([]float32, m*n), NewSingle()
			g := New(m, n, k, a, b, c, n, nil, NewScratch(1))
			require.Zero(t, testing.AllocsPerRun(1, func() { g.Run(serial{}) }), "%v mode %d", s, mode)
			require.Zero(t, testing.AllocsPerRun(1, func() { single.Mul(m, n, k, a, b, c, n, false) }), "%v mode %d", s, mode)
		}
	}
}
