package simd

func tile(rows, k int, a *float32, row, step int, b *float32, ldb int, c *float32, ldc int, accumulate bool) {
	if hasAVX2 {
		tileAVX2(rows, k, a, row, step, b, ldb, c, ldc, accumulate)
		return
	}
	tileGo(rows, k, a, row, step, b, ldb, c, ldc, accumulate)
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
