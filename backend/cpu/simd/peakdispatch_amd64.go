package simd

// FMAKernel names what FMALoop runs on.
func FMAKernel() string {
	if hasAVX2 {
		return "AVX2"
	}
	return "plain Go"
}

func fmaLoop(n int, acc *[FMALanes]float32, x float32) {
	if hasAVX2 {
		fmaLoopAVX2(n, &acc[0], x)
		return
	}
	fmaLoopGo(n, acc, x)
}

func triad(a, b, c []float32, s float32) {
	i := 0
	if blocks := len(a) / triadBlock; hasAVX2 && blocks > 0 {
		triadAVX2(blocks, &a[0], &b[0], &c[0], s)
		i = blocks * triadBlock
	}
	triadGo(a[i:], b[i:], c[i:], s)
}
