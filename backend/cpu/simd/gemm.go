package simd

import "unsafe"

// NR is the width of a panel of b, and MaxMR the most that MR is on any processor.
const (
	NR    = 16
	MaxMR = 12
)

// MR is how many rows Tile takes at once: 12 with AVX-512, else 6.
var MR = tileRows()

// Tile multiplies up to MR rows of a by panels of 16 columns of b, which are gap elements apart:
//
//	c[i*ldc+16*p+j] (+)= sum over l < k of a[i*row+l*step] * b[p*gap+l*ldb+j], i < rows, p < panels, j < 16
//
// k >= 1. The terms of an element are summed in the order of l, apart from c, which is added last.
func Tile(rows, panels, k int, a []float32, row, step int, b []float32, ldb, gap int, c []float32, ldc int, accumulate bool) {
	if uint(rows-1) >= uint(MR) || panels < 1 || row < 0 || step < 0 || ldb < 0 || gap < 0 || ldc < 0 {
		panic("simd: bad tile")
	}
	_, _, _ = a[(rows-1)*row+(k-1)*step], b[(panels-1)*gap+(k-1)*ldb+NR-1], c[(rows-1)*ldc+panels*NR-1]
	tiles(rows, panels, k, a, row, step, b, ldb, gap, c, ldc, accumulate)
}

// oneByOne is tiles for a kernel of one panel.
func oneByOne(kernel func(rows, k int, a *float32, row, step int, b *float32, ldb int, c *float32, ldc int, accumulate bool),
	rows, panels, k int, a []float32, row, step int, b []float32, ldb, gap int, c []float32, ldc int, accumulate bool,
) {
	for p := range panels {
		kernel(rows, k, &a[0], row, step, &b[p*gap], ldb, &c[p*NR], ldc, accumulate)
	}
}

// tileGo is the plain twin, of one panel: a whole tile of sums is too much for most register files, so it takes one row by 8 columns at a time.
func tileGo(rows, k int, ap *float32, row, step int, bp *float32, ldb int, cp *float32, ldc int, accumulate bool) {
	a, b := unsafe.Slice(ap, (rows-1)*row+(k-1)*step+1), unsafe.Slice(bp, (k-1)*ldb+NR)
	c := unsafe.Slice(cp, (rows-1)*ldc+NR)
	for i := range rows {
		for j := 0; j < NR; j += 8 {
			var s0, s1, s2, s3, s4, s5, s6, s7 float32
			for l, x, y := 0, i*row, j; l < k; l, x, y = l+1, x+step, y+ldb {
				f := a[x]
				v := b[y : y+8 : y+8]
				s0 += f * v[0]
				s1 += f * v[1]
				s2 += f * v[2]
				s3 += f * v[3]
				s4 += f * v[4]
				s5 += f * v[5]
				s6 += f * v[6]
				s7 += f * v[7]
			}
			d := c[i*ldc+j : i*ldc+j+8 : i*ldc+j+8]
			if accumulate {
				s0, s1, s2, s3 = s0+d[0], s1+d[1], s2+d[2], s3+d[3]
				s4, s5, s6, s7 = s4+d[4], s5+d[5], s6+d[6], s7+d[7]
			}
			d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = s0, s1, s2, s3, s4, s5, s6, s7
		}
	}
}
