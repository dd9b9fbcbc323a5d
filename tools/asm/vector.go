package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
)

// vector emits the kernels over vectors that attention and the row operators share.
func vector() {
	maxKernel()
	expScaleSum()
	scaleKernel()
	axpy()
	dot()
	logitGrad()
	expSum()
	expMul()
	sumKernel()
	addKernel()
	softmaxGrad()
}

func maxKernel() {
	TEXT("maxAVX2", NOSPLIT, "func(x []float32) float32")
	Doc("maxAVX2 is Max with AVX2.")
	x, n := pointer("x"), length("x")
	low := float(float32(math.Inf(-1)))
	acc := zeros(4)
	for _, y := range acc {
		VMOVUPS(low, y)
	}
	forLanes(n, 4, func(l lanes, u int) {
		v := l.load(x)
		if l.mask != nil {
			least := YMM()
			VMOVUPS(low, least)
			VBLENDVPS(l.mask, v, least, v)
		}
		VMAXPS(acc[u], v, acc[u]) // of a NaN and a number it gives the first operand
	})
	returnFold(acc, VMAXPS)
}

func expScaleSum() {
	TEXT("expScaleSumAVX2", NOSPLIT, "func(dst, x []float32, scale, shift float32) float32")
	Doc("expScaleSumAVX2 is ExpScaleSum with AVX2 and FMA.")
	dst, x, n := pointer("dst"), pointer("x"), length("x")
	scale, shift := broadcast("scale"), broadcast("shift")
	acc := zeros(2)
	forLanes(n, 2, func(l lanes, u int) {
		v := l.load(x)
		VFMSUB213PS(shift, scale, v)
		exp(v)
		l.store(v, dst)
		l.keep(v)
		VADDPS(v, acc[u], acc[u])
	})
	returnSum(acc)
}

func scaleKernel() {
	TEXT("scaleAVX2", NOSPLIT, "func(dst, x []float32, a float32)")
	Doc("scaleAVX2 is Scale with AVX2.")
	dst, x, n, a := pointer("dst"), pointer("x"), length("x"), broadcast("a")
	forLanes(n, 4, func(l lanes, _ int) {
		v := YMM()
		VMULPS(l.operand(x), a, v)
		l.store(v, dst)
	})
	done()
}

func axpy() {
	TEXT("axpyAVX2", NOSPLIT, "func(y []float32, a float32, x []float32)")
	Doc("axpyAVX2 is Axpy with AVX2 and FMA.")
	y, x, n, a := pointer("y"), pointer("x"), length("x"), broadcast("a")
	forLanes(n, 4, func(l lanes, _ int) {
		v := l.load(y)
		VFMADD231PS(l.operand(x), a, v)
		l.store(v, y)
	})
	done()
}

func dot() {
	TEXT("dotAVX2", NOSPLIT, "func(x, y []float32) float32")
	Doc("dotAVX2 is Dot with AVX2 and FMA.")
	x, y, n := pointer("x"), pointer("y"), length("x")
	acc := zeros(4)
	forLanes(n, 4, func(l lanes, u int) {
		v := l.load(x)
		VFMADD231PS(l.operand(y), v, acc[u])
	})
	returnSum(acc)
}

func logitGrad() {
	TEXT("logitGradAVX2", NOSPLIT, "func(x, g []float32, scale, lse, delta float32) float32")
	Doc("logitGradAVX2 is LogitGrad with AVX2 and FMA.")
	x, g, n := pointer("x"), pointer("g"), length("x")
	scale, lse, delta := broadcast("scale"), broadcast("lse"), broadcast("delta")
	acc := zeros(2)
	forLanes(n, 2, func(l lanes, u int) {
		v, p, d := l.load(x), YMM(), l.load(g)
		VMOVAPS(v, p)
		VFMSUB213PS(lse, scale, p)
		exp(p)
		l.store(p, x)
		VSUBPS(delta, d, d)
		VMULPS(p, d, d)
		l.keep(d)
		VFMADD231PS(v, d, acc[u])
		VMULPS(scale, d, d)
		l.store(d, g)
	})
	returnSum(acc)
}

func expSum() {
	TEXT("expSumAVX2", NOSPLIT, "func(x []float32, shift float32) float32")
	Doc("expSumAVX2 is ExpSum with AVX2 and FMA.")
	x, n, shift := pointer("x"), length("x"), broadcast("shift")
	acc := zeros(2)
	forLanes(n, 2, func(l lanes, u int) {
		v := l.load(x)
		VSUBPS(shift, v, v)
		exp(v)
		l.keep(v)
		VADDPS(v, acc[u], acc[u])
	})
	returnSum(acc)
}

func expMul() {
	TEXT("expMulAVX2", NOSPLIT, "func(dst, x []float32, shift, a float32)")
	Doc("expMulAVX2 is ExpMul with AVX2 and FMA.")
	dst, x, n := pointer("dst"), pointer("x"), length("x")
	shift, a := broadcast("shift"), broadcast("a")
	forLanes(n, 2, func(l lanes, u int) {
		v := l.load(x)
		VSUBPS(shift, v, v)
		exp(v)
		VMULPS(a, v, v)
		l.store(v, dst)
	})
	done()
}

func sumKernel() {
	TEXT("sumAVX2", NOSPLIT, "func(x []float32) float32")
	Doc("sumAVX2 is Sum with AVX2.")
	x, n := pointer("x"), length("x")
	acc := zeros(4)
	forLanes(n, 4, func(l lanes, u int) {
		VADDPS(l.operand(x), acc[u], acc[u])
	})
	returnSum(acc)
}

func addKernel() {
	TEXT("addAVX2", NOSPLIT, "func(dst, x, y []float32)")
	Doc("addAVX2 is Add with AVX2.")
	dst, x, y, n := pointer("dst"), pointer("x"), pointer("y"), length("x")
	forLanes(n, 4, func(l lanes, u int) {
		v := l.load(x)
		VADDPS(l.operand(y), v, v)
		l.store(v, dst)
	})
	done()
}

func softmaxGrad() {
	TEXT("softmaxGradAVX2", NOSPLIT, "func(dx, dy, y []float32, s float32)")
	Doc("softmaxGradAVX2 is SoftmaxGrad with AVX2.")
	dx, dy, y, n, s := pointer("dx"), pointer("dy"), pointer("y"), length("dx"), broadcast("s")
	forLanes(n, 2, func(l lanes, u int) {
		v := l.load(dy)
		VSUBPS(s, v, v)
		VMULPS(l.operand(y), v, v)
		l.store(v, dx)
	})
	done()
}
