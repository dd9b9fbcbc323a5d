package simd

// FMALanes is how many sums FMALoop works on.
const FMALanes = 192

// FMALoop measures what the processor can do at most: n times acc[i] += acc[i] * x for each of the FMALanes sums, which is 2*FMALanes*n operations on
// registers alone.
func FMALoop(n int, acc *[FMALanes]float32, x float32) { fmaLoop(max(n, 0), acc, x) }

// fmaLoopGo is the plain twin: 8 sums at a time, which stay in registers.
func fmaLoopGo(n int, acc *[FMALanes]float32, x float32) {
	for i := 0; i < FMALanes; i += 8 {
		a := acc[i : i+8 : i+8]
		a0, a1, a2, a3, a4, a5, a6, a7 := a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
		for range n {
			a0, a1, a2, a3 = a0+a0*x, a1+a1*x, a2+a2*x, a3+a3*x
			a4, a5, a6, a7 = a4+a4*x, a5+a5*x, a6+a6*x, a7+a7*x
		}
		a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7] = a0, a1, a2, a3, a4, a5, a6, a7
	}
}

// triadBlock is how many elements triadAVX2 takes at a time.
const triadBlock = 32

// Triad measures what memory can do: a[i] = b[i] + c[i]*s, for slices of one length (McCalpin's STREAM).
func Triad(a, b, c []float32, s float32) {
	b, c = b[:len(a)], c[:len(a)]
	triad(a, b, c, s)
}

func triadGo(a, b, c []float32, s float32) {
	for i := range a {
		a[i] = b[i] + c[i]*s
	}
}
