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

var avx2 = kernels{
	max:         maxAVX2,
	expScaleSum: expScaleSumAVX2,
	scale:       scaleAVX2,
	axpy:        axpyAVX2,
	dot:         dotAVX2,
	logitGrad:   logitGradAVX2,
}

var active = choose()

func choose() kernels {
	if hasAVX2 {
		return avx2
	}
	return plain
}
