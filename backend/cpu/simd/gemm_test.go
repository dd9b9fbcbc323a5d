package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGemm6x16(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 31, 64, 257} {
		for _, ldc := range []int{NR, NR + 1, 40} {
			for _, accumulate := range []bool{false, true} {
				a, b := make([]float32, k*MR), make([]float32, k*NR)
				for i := range a {
					a[i] = r.Float32() - 0.5
				}
				for i := range b {
					b[i] = r.Float32() - 0.5
				}
				c := make([]float32, (MR-1)*ldc+NR)
				for i := range c {
					c[i] = r.Float32()
				}
				old := append([]float32{}, c...)
				twin := append([]float32{}, c...)
				Gemm6x16(k, a, b, c, ldc, accumulate)
				gemm6x16Go(k, &a[0], &b[0], &twin[0], ldc, accumulate)
				for i := range MR {
					for j := range ldc {
						if i*ldc+j >= len(c) {
							break
						}
						if j >= NR {
							require.Equal(t, old[i*ldc+j], c[i*ldc+j], "written outside the tile")
							continue
						}
						sum, abs := 0.0, 0.0
						if accumulate {
							sum = float64(old[i*ldc+j])
						}
						for l := range k {
							p := float64(a[l*MR+i]) * float64(b[l*NR+j])
							sum += p
							abs += math.Abs(p)
						}
						bound := float64(k+2) * 0x1p-24 * (abs + math.Abs(sum))
						require.InDelta(t, sum, c[i*ldc+j], bound)
						require.InDelta(t, sum, twin[i*ldc+j], bound)
					}
				}
			}
		}
	}
}

func BenchmarkGemm6x16(b *testing.B) {
	const k = 256
	x, y, c := make([]float32, k*MR), make([]float32, k*NR), make([]float32, MR*NR)
	for b.Loop() {
		Gemm6x16(k, x, y, c, NR, true)
	}
	b.ReportMetric(2*k*MR*NR*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
