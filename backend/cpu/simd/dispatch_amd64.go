package simd

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

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
