package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// serial is a pool of one worker.
type serial struct{}

func (serial) Workers() int { return 1 }

func (serial) For(n int, f func(worker, i int)) {
	for i := range n {
		f(0, i)
	}
}

// BenchmarkMul has cubes, and the products of a linear layer (tokens, in, out): its forward pass NT, dX NN and dW TN.
func BenchmarkMul(b *testing.B) {
	var shapes [][3]int
	for _, n := range []int{512, 1024, 2048} {
		shapes = append(shapes, [3]int{n, n, n})
	}
	shapes = append(shapes, [][3]int{
		{2048, 128, 128}, {2048, 128, 344}, {2048, 128, 256},
		{2048, 384, 384}, {2048, 384, 1024}, {2048, 1024, 384}, {2048, 384, 4096},
		{512, 768, 768}, {512, 768, 2048}, {512, 2048, 768}, {512, 768, 50304},
		{1, 384, 4096}, {4, 384, 4096}, {2048, 384, 1},
	}...)
	for _, s := range shapes {
		tokens, in, out := s[0], s[1], s[2]
		benchmark(b, "NT", tokens, out, in)
		benchmark(b, "NN", tokens, in, out)
		benchmark(b, "TN", out, in, tokens)
	}
}

func benchmark(b *testing.B, mode string, m, n, k int) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, pool := range []Pool{serial{}, testPool(2)} {
		b.Run(fmt.Sprintf("%s/%dx%dx%d/workers=%d", mode, m, n, k, pool.Workers()), func(b *testing.B) {
			x, y, c := random(r, m*k), random(r, k*n), make([]float32, m*n)
			g := New(m, n, k, operand(x, m, k, mode == "TN"), operand(y, k, n, mode == "NT"), c, n, nil, NewScratch(pool.Workers()))
			g.Run(pool)
			for b.Loop() {
				g.Run(pool)
			}
			b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
