package gemm

// Single multiplies on the calling goroutine, with scratch memory of its own: for the many small products of attention.
type Single struct {
	g Mul
}

// NewSingle makes a Single.
func NewSingle() *Single {
	s := &Single{}
	s.g.init(NewScratch(1))
	return s
}

// Mul computes c = a b, or c += a b.
func (s *Single) Mul(m, n, k int, a, b Matrix, c []float32, ldc int, accumulate bool) {
	var addend []float32
	if accumulate {
		addend = c
	}
	s.g.set(m, n, k, a, b, c, ldc, addend)
	s.g.run()
}
