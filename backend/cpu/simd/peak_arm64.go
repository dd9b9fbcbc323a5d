package simd

// Instructions names the vector instructions that the kernels use.
func Instructions() string { return "NEON" }

func fmaLoop(n int, acc *[FMALanes]float32, x float32) {
	fmaLoopNEON(n, &acc[0], x)
	fmaLoopNEON(n, &acc[FMALanes/2], x)
}

// fmaLoopNEON is half of fmaLoop, 24 vectors, which hide a latency of up to 6 cycles on four pipes.
//
//go:noescape
func fmaLoopNEON(n int, acc *float32, x float32)

func triad(a, b, c []float32, s float32) { triadGo(a, b, c, s) }
