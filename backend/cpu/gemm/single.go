package gemm

// Single multiplies on the calling goroutine, with scratch memory of its own: for the many small products of attention.
type Single struct {
	s Scratch
	g Mul
}

// NewSingle makes a Single.
func NewSingle() *Single {
	s := &Single{}
	s.s.workers = make([]workerScratch, 1)
	s.s.workers[0].a = make([]float32, kc*mc)
	return s
}

// Mul computes c = a b, or c += a b.
func (s *Single) Mul(m, n, k int, a, b Matrix, c []float32, ldc int, accumulate bool) {
	if size := min(kc, k) * (min(nc, n) + 15) / 16 * 16; len(s.s.b) < size {
		s.s.b = make([]float32, size+kc*16)
	}
	g := &s.g
	g.m, g.n, g.k, g.a, g.b, g.c, g.ldc, g.addend, g.s, g.mb = m, n, k, a, b, c, ldc, nil, &s.s, mc
	if accumulate {
		g.addend = c
	}
	for g.jc = 0; g.jc < n; g.jc += nc {
		for g.pc = 0; g.pc < k; g.pc += kc {
			for i := range (min(nc, n-g.jc) + 15) / 16 {
				g.packPanelB(i)
			}
			for i := range (m + mc - 1) / mc {
				g.block(&s.s.workers[0], i)
			}
		}
	}
}
