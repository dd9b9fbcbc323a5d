package simd

import "unsafe"

// The size of the tile of c that gemm6x16 computes.
const (
	MR = 6
	NR = 16
)

// Gemm6x16 multiplies a packed panel of a by one of b:
//
//	c[i*ldc+j] (+)= sum over l < k of a[l*6+i] * b[l*16+j], i < 6, j < 16
//
// k >= 1; c has 5*ldc+16 elements.
func Gemm6x16(k int, a, b, c []float32, ldc int, accumulate bool) {
	_, _, _ = a[k*MR-1], b[k*NR-1], c[(MR-1)*ldc+NR-1]
	gemm6x16(k, &a[0], &b[0], &c[0], ldc, accumulate)
}

// gemm6x16Go is the plain twin: one row of the tile at a time, 16 sums in locals are too many for most register files, so 4 by 4.
func gemm6x16Go(k int, ap, bp, cp *float32, ldc int, accumulate bool) {
	a, b := unsafe.Slice(ap, k*MR), unsafe.Slice(bp, k*NR)
	c := unsafe.Slice(cp, (MR-1)*ldc+NR)
	for i := 0; i < MR; i += 2 {
		for j := 0; j < NR; j += 4 {
			var s00, s01, s02, s03, s10, s11, s12, s13 float32
			ai, bj := a[i:], b[j:]
			for l := 0; l < k; l++ {
				x, y := ai[l*MR], ai[l*MR+1]
				v := bj[l*NR : l*NR+4 : l*NR+4]
				s00 += x * v[0]
				s01 += x * v[1]
				s02 += x * v[2]
				s03 += x * v[3]
				s10 += y * v[0]
				s11 += y * v[1]
				s12 += y * v[2]
				s13 += y * v[3]
			}
			r0, r1 := c[i*ldc+j:i*ldc+j+4], c[(i+1)*ldc+j:(i+1)*ldc+j+4]
			if accumulate {
				s00, s01, s02, s03 = s00+r0[0], s01+r0[1], s02+r0[2], s03+r0[3]
				s10, s11, s12, s13 = s10+r1[0], s11+r1[1], s12+r1[2], s13+r1[3]
			}
			r0[0], r0[1], r0[2], r0[3] = s00, s01, s02, s03
			r1[0], r1[1], r1[2], r1[3] = s10, s11, s12, s13
		}
	}
}
