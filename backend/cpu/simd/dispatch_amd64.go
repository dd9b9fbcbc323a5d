package simd

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

var avx2 = kernels{
	max: maxAVX2, expScaleSum: expScaleSumAVX2, expSum: expSumAVX2, expMul: expMulAVX2, softmaxGrad: softmaxGradAVX2, scale: scaleAVX2,
	add: addAVX2, axpy: axpyAVX2, dot: dotAVX2, sum: sumAVX2, logitGrad: logitGradAVX2,
	centredSquares: centredSquaresAVX2, normalize: normalizeAVX2, normGradSums: normGradSumsAVX2, normGradApply: normGradApplyAVX2,
	rotate: rotateAVX2,
	swiGLU: swiGLUAVX2, swiGLUGrad: swiGLUGradAVX2, gelu: geluAVX2, geluGrad: geluGradAVX2, relu: reluAVX2, reluGrad: reluGradAVX2,
	softCap: softCapAVX2, softCapGrad: softCapGradAVX2, adamW: adamWAVX2,
	fromBF16: fromBF16AVX2, toBF16: toBF16AVX2, fromF16: fromF16F16C, toF16: toF16F16C,
}

var active = choose()

func choose() kernels {
	if !hasAVX2 {
		return plain
	}
	k := avx2
	if !cpu.X86.HasF16C {
		k.fromF16, k.toF16 = fromF16Go, toF16Go
	}
	return k
}
