package simd

// Instructions names the vector instructions that the kernels use.
func Instructions() string {
	switch {
	case hasAVX512:
		return "AVX-512"
	case hasAVX2:
		return "AVX2"
	}
	return "plain Go"
}

func fmaLoop(n int, acc *[FMALanes]float32, x float32) {
	switch {
	case hasAVX512:
		fmaLoopAVX512(n, &acc[0], x)
	case hasAVX2:
		fmaLoopAVX2(n, &acc[0], x)
		fmaLoopAVX2(n, &acc[FMALanes/2], x)
	default:
		fmaLoopGo(n, acc, x)
	}
}

func triad(a, b, c []float32, s float32) {
	i := 0
	if blocks := len(a) / triadBlock; hasAVX2 && blocks > 0 {
		triadAVX2(blocks, &a[0], &b[0], &c[0], s)
		i = blocks * triadBlock
	}
	triadGo(a[i:], b[i:], c[i:], s)
}
