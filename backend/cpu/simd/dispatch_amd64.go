package simd

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

func gemm6x16(k int, a, b, c *float32, ldc int, accumulate bool) {
	if hasAVX2 {
		gemm6x16AVX2(k, a, b, c, ldc, accumulate)
		return
	}
	gemm6x16Go(k, a, b, c, ldc, accumulate)
}
