package simd

// Every arm64 processor that Go runs on has NEON.

// tileNEON is tile with NEON.
//
//go:noescape
func tileNEON(rows, k int, a *float32, row, step int, b *float32, ldb int, c *float32, ldc int, accumulate bool)

// transposeF32NEON writes dst[l*width+i] = src[i*ld+l] for i < 8 and l < k, k a multiple of 8; rows >= rows repeat the last.
//
//go:noescape
func transposeF32NEON(dst *float32, width int, src *float32, ld, rows, k int)

// transposeBF16NEON is transposeF32NEON for bfloat16.
//
//go:noescape
func transposeBF16NEON(dst *float32, width int, src *uint16, ld, rows, k int)

// stridedF32NEON writes dst[l*width+i] = src[l*ld+i] for i < cols and l < k; cols is 8 or 16, and k >= 1.
//
//go:noescape
func stridedF32NEON(dst *float32, width int, src *float32, ld, cols, k int)

// stridedBF16NEON is stridedF32NEON for bfloat16.
//
//go:noescape
func stridedBF16NEON(dst *float32, width int, src *uint16, ld, cols, k int)

func tileRows() int { return 6 }

func tiles(rows, panels, k int, a []float32, row, step int, b []float32, ldb, gap int, c []float32, ldc int, accumulate bool) {
	oneByOne(tileNEON, rows, panels, k, a, row, step, b, ldb, gap, c, ldc, accumulate)
}

// packs tells whether there are vector kernels that pack.
const packs = true

func transposeF32(dst *float32, width int, src *float32, ld, rows, k int) {
	transposeF32NEON(dst, width, src, ld, rows, k)
}

func transposeBF16(dst *float32, width int, src *uint16, ld, rows, k int) {
	transposeBF16NEON(dst, width, src, ld, rows, k)
}

func stridedF32(dst *float32, width int, src *float32, ld, cols, k int) {
	stridedF32NEON(dst, width, src, ld, cols, k)
}

func stridedBF16(dst *float32, width int, src *uint16, ld, cols, k int) {
	stridedBF16NEON(dst, width, src, ld, cols, k)
}

// dotsNEON is dots with NEON.
//
//go:noescape
func dotsNEON(rows, k int, a *float32, lda int, b *float32, ldb int, out *float32)

func dots(rows, k int, a *float32, lda int, b *float32, ldb int, out *float32) {
	dotsNEON(rows, k, a, lda, b, ldb, out)
}
