//go:build !amd64 && !arm64

package simd

// Instructions names the vector instructions that the kernels use.
func Instructions() string { return "plain Go" }

func fmaLoop(n int, acc *[FMALanes]float32, x float32) { fmaLoopGo(n, acc, x) }

func triad(a, b, c []float32, s float32) { triadGo(a, b, c, s) }
