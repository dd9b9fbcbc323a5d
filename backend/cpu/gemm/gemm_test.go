package gemm

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestMul(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][3]int{{1, 1, 1}, {1, 17, 3}, {5, 16, 256}, {6, 1, 257}, {7, 33, 2}, {97, 31, 300}, {200, 2100, 13}, {13, 40, 700}} {
		m, n, k := s[0], s[1], s[2]
		for mode := range 3 {
			for addend := range 3 { // none, separate, in place
				a, b := random(r, m*k), random(r, k*n)
				c, add := random(r, m*n), random(r, m*n)
				am, bm := operand(a, m, k, mode == 2), operand(b, k, n, mode == 1)
				base := make([]float32, m*n)
				var from []float32
				switch addend {
				case 1:
					copy(base, add)
					from = add
				case 2:
					copy(base, c)
				}
				var first []float32
				for _, workers := range []int{1, 2, 3} {
					got := append([]float32{}, c...)
					if addend == 2 {
						from = got
					}
					New(m, n, k, am, bm, got, n, from, NewScratch(workers)).Run(testPool(workers))
					if first == nil {
						first = got
					}
					require.Equal(t, first, got, "the same bits for any number of workers")
				}
				for i := range m {
					for j := range n {
						sum, abs := float64(base[i*n+j]), math.Abs(float64(base[i*n+j]))
						for l := range k {
							p := float64(am.Data[i*am.Row+l*am.Col]) * float64(bm.Data[l*bm.Row+j*bm.Col])
							sum += p
							abs += math.Abs(p)
						}
						require.InDelta(t, sum, first[i*n+j], float64(k+2)*0x1p-24*abs+1e-30, "%v mode %d addend %d at %d,%d", s, mode, addend, i, j)
					}
				}
			}
		}
	}
}
