//go:build !amd64 && !arm64

package simd

func tileRows() int { return 6 }

func tiles(rows, panels, k int, a []float32, row, step int, b []float32, ldb, gap int, c []float32, ldc int, accumulate bool) {
	oneByOne(tileGo, rows, panels, k, a, row, step, b, ldb, gap, c, ldc, accumulate)
}

const packs = false

func transposeF32(*float32, int, *float32, int, int, int) {}

func transposeBF16(*float32, int, *uint16, int, int, int) {}

func stridedF32(*float32, int, *float32, int, int, int) {}

func stridedBF16(*float32, int, *uint16, int, int, int) {}

func dots(rows, k int, a *float32, lda int, b *float32, ldb int, out *float32) {
	dotsGo(rows, k, a, lda, b, ldb, out)
}
