package simd

import "golang.org/x/sys/cpu"

var hasAVX512 = hasAVX2 && cpu.X86.HasAVX512F

func tileRows() int {
	if hasAVX512 {
		return 12
	}
	return 6
}

func tiles(rows, panels, k int, a []float32, row, step int, b []float32, ldb, gap int, c []float32, ldc int, accumulate bool) {
	switch {
	case hasAVX512:
		for p := 0; p < panels; p += 2 {
			tileAVX512(rows, min(2, panels-p), k, &a[0], row, step, &b[p*gap], ldb, gap, &c[p*NR], ldc, accumulate)
		}
	case hasAVX2:
		oneByOne(tileAVX2, rows, panels, k, a, row, step, b, ldb, gap, c, ldc, accumulate)
	default:
		oneByOne(tileGo, rows, panels, k, a, row, step, b, ldb, gap, c, ldc, accumulate)
	}
}

// packs tells whether there are vector kernels that pack.
var packs = hasAVX2

func transposeF32(dst *float32, width int, src *float32, ld, rows, k int) {
	transposeF32AVX2(dst, width, src, ld, rows, k)
}

func transposeBF16(dst *float32, width int, src *uint16, ld, rows, k int) {
	transposeBF16AVX2(dst, width, src, ld, rows, k)
}

func stridedF32(dst *float32, width int, src *float32, ld, cols, k int) {
	stridedF32AVX2(dst, width, src, ld, cols, k)
}

func stridedBF16(dst *float32, width int, src *uint16, ld, cols, k int) {
	stridedBF16AVX2(dst, width, src, ld, cols, k)
}

func dots(rows, k int, a *float32, lda int, b *float32, ldb int, out *float32) {
	if hasAVX2 {
		dotsAVX2(rows, k, a, lda, b, ldb, out)
		return
	}
	dotsGo(rows, k, a, lda, b, ldb, out)
}
