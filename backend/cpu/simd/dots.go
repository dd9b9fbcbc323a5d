package simd

import "unsafe"

// The most rows of a and of b that Dots takes.
const (
	DotRows = 3
	DotCols = 4
)

// Dots multiplies a few rows by a few rows:
//
//	c[i*row+j*col] (+)= sum over l < k of a[i*lda+l] * b[j*ldb+l], i < rows <= 3, j < cols <= 4
//
// The terms of an element are summed in 8 lanes, those in pairs, then the last k mod 8 terms.
func Dots(rows, cols, k int, a []float32, lda int, b []float32, ldb int, c []float32, row, col int, accumulate bool) {
	if uint(rows-1) >= DotRows || uint(cols-1) >= DotCols || k < 1 || lda < 0 || ldb < 0 {
		panic("simd: bad dots")
	}
	_, _ = a[(rows-1)*lda+k-1], b[(cols-1)*ldb+k-1]
	var s [DotRows * DotCols * 8]float32
	whole := k &^ 7
	if cols == DotCols {
		dots(rows, whole, &a[0], lda, &b[0], ldb, &s[0])
	} else {
		for j := range cols { // the same row of b four times; the first counts
			var t [DotRows * DotCols * 8]float32
			dots(rows, whole, &a[0], lda, &b[j*ldb], 0, &t[0])
			for i := range rows {
				copy(s[(i*DotCols+j)*8:(i*DotCols+j)*8+8], t[i*DotCols*8:])
			}
		}
	}
	for i := range rows {
		for j := range cols {
			v := (*[8]float32)(s[(i*DotCols+j)*8:])
			sum := ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
			for l := whole; l < k; l++ {
				sum += a[i*lda+l] * b[j*ldb+l]
			}
			if d := &c[i*row+j*col]; accumulate {
				*d += sum
			} else {
				*d = sum
			}
		}
	}
}

// dotsGo is the plain twin: out[(i*4+j)*8+x] is the sum over l = x mod 8, and k a multiple of 8.
func dotsGo(rows, k int, ap *float32, lda int, bp *float32, ldb int, outp *float32) {
	a, b := unsafe.Slice(ap, (rows-1)*lda+k), unsafe.Slice(bp, (DotCols-1)*ldb+k)
	out := unsafe.Slice(outp, rows*DotCols*8)
	for i := range rows {
		for j := range DotCols {
			x, y := a[i*lda:i*lda+k], b[j*ldb:j*ldb+k]
			var s [8]float32
			for l := 0; l+8 <= len(x) && l+8 <= len(y); l += 8 {
				u, v := (*[8]float32)(x[l:]), (*[8]float32)(y[l:])
				s[0] += u[0] * v[0]
				s[1] += u[1] * v[1]
				s[2] += u[2] * v[2]
				s[3] += u[3] * v[3]
				s[4] += u[4] * v[4]
				s[5] += u[5] * v[5]
				s[6] += u[6] * v[6]
				s[7] += u[7] * v[7]
			}
			copy(out[(i*DotCols+j)*8:], s[:])
		}
	}
}
