package simd

import "unsafe"

// The largest tile of c that Tile computes.
const (
	MR = 6
	NR = 16
)

// Tile multiplies rows <= 6 rows of a by 16 columns of b:
//
//	c[i*ldc+j] (+)= sum over l < k of a[i*row+l*step] * b[l*ldb+j], i < rows, j < 16
//
// k >= 1. The terms of an element are summed in the order of l, apart from c, which is added last.
func Tile(rows, k int, a []float32, row, step int, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	if uint(rows-1) >= MR || row < 0 || step < 0 || ldb < 0 || ldc < 0 {
		panic("simd: bad tile")
	}
	_, _, _ = a[(rows-1)*row+(k-1)*step], b[(k-1)*ldb+NR-1], c[(rows-1)*ldc+NR-1]
	tile(rows, k, &a[0], row, step, &b[0], ldb, &c[0], ldc, accumulate)
}

// Gemm6x16 is Tile with both operands packed: a[l*6+i] and b[l*16+j].
func Gemm6x16(k int, a, b, c []float32, ldc int, accumulate bool) {
	Tile(MR, k, a, 1, MR, b, NR, c, ldc, accumulate)
}

// tileGo is the plain twin: a whole tile of sums is too much for most register files, so it takes one row by 8 columns at a time.
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
