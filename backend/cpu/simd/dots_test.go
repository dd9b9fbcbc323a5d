package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDots(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 2))
	for _, k := range []int{1, 2, 7, 8, 9, 15, 16, 17, 64, 257} {
		for rows := 1; rows <= DotRows; rows++ {
			for cols := 1; cols <= DotCols; cols++ {
				lda, ldb, row, col := k+r.IntN(3), k+r.IntN(3), cols+1, 1
				if r.IntN(2) == 0 {
					row, col = 1, rows+1
				}
				a, b := uniform(r, (rows-1)*lda+k, 1), uniform(r, (cols-1)*ldb+k, 1)
				c := filled(30)
				accumulate := r.IntN(2) == 0
				Dots(rows, cols, k, a, lda, b, ldb, c, row, col, accumulate)
				want, bound := filled(30), make([]float64, 30)
				for i := range rows {
					for j := range cols {
						sum := 0.0
						if accumulate {
							sum = float64(untouched)
						}
						abs := math.Abs(sum)
						for l := range k {
							p := float64(a[i*lda+l]) * float64(b[j*ldb+l])
							sum += p
							abs += math.Abs(p)
						}
						want[i*row+j*col] = float32(sum)
						bound[i*row+j*col] = float64(k+3) * 0x1p-24 * abs
					}
				}
				for i := range c {
					require.InDelta(t, want[i], c[i], bound[i], "%d rows, %d columns, k %d, element %d", rows, cols, k, i)
				}
			}
		}
	}
}

func TestDotsTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 3))
	for _, k := range []int{0, 8, 16, 104} {
		for rows := 1; rows <= DotRows; rows++ {
			lda, ldb := k+1+r.IntN(3), k+1+r.IntN(3)
			a, b := uniform(r, rows*lda, 1), uniform(r, DotCols*ldb, 1)
			got, want := filled(rows*32+8), filled(rows*32+8)
			dots(rows, k, &a[0], lda, &b[0], ldb, &got[0])
			dotsGo(rows, k, &a[0], lda, &b[0], ldb, &want[0])
			require.InDeltaSlice(t, want, got, float64(k)*0x1p-23, "%d rows, k %d", rows, k)
			require.Equal(t, untouched, got[rows*32], "written behind the end")
		}
	}
}
