package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// norm emits the kernels of a normalised row, and of the rotation of a head.
func norm() {
	centredSquares()
	normalize()
	normGradSums()
	normGradApply()
	rotate()
}

func centredSquares() {
	TEXT("centredSquaresAVX2", NOSPLIT, "func(x []float32, mean float32) float32")
	Doc("centredSquaresAVX2 is CentredSquares with AVX2 and FMA.")
	x, n, mean := pointer("x"), length("x"), broadcast("mean")
	acc := zeros(4)
	forLanes(n, 4, func(l lanes, u int) {
		v := l.load(x)
		VSUBPS(mean, v, v)
		l.keep(v)
		VFMADD231PS(v, v, acc[u])
	})
	returnSum(acc)
}

func normalize() {
	TEXT("normalizeAVX2", NOSPLIT, "func(y, x, gain, addend []float32, mean, r float32)")
	Doc("normalizeAVX2 is Normalize with AVX2 and FMA.")
	y, x, gain, addend, n := pointer("y"), pointer("x"), pointer("gain"), pointer("addend"), length("y")
	mean, r := broadcast("mean"), broadcast("r")
	forLanes(n, 2, func(l lanes, _ int) {
		v, a := l.load(x), l.load(addend)
		VSUBPS(mean, v, v)
		VMULPS(r, v, v)
		VFMADD231PS(l.operand(gain), v, a)
		l.store(a, y)
	})
	done()
}

func normGradSums() {
	TEXT("normGradSumsAVX2", NOSPLIT, "func(sums, dy, x, gain []float32, mean, r float32) (su, sux float32)")
	Doc("normGradSumsAVX2 is NormGradSums with AVX2 and FMA.")
	sums, dy, x, gain, n := pointer("sums"), pointer("dy"), pointer("x"), pointer("gain"), length("sums")
	mean, r := broadcast("mean"), broadcast("r")
	su, sux := zeros(2), zeros(2)
	forLanes(n, 2, func(l lanes, u int) {
		h, d, s := l.load(x), l.load(dy), l.load(sums)
		VSUBPS(mean, h, h)
		VMULPS(r, h, h)
		VFMADD231PS(h, d, s)
		l.store(s, sums)
		VMULPS(l.operand(gain), d, d)
		VADDPS(d, su[u], su[u])
		l.keep(h)
		VFMADD231PS(h, d, sux[u])
	})
	VMOVSS(fold(su, VADDPS).AsX(), place(ReturnIndex(0)))
	VMOVSS(fold(sux, VADDPS).AsX(), place(ReturnIndex(1)))
	done()
}

func normGradApply() {
	TEXT("normGradApplyAVX2", NOSPLIT, "func(dx, dy, x, gain, addend []float32, mean, r, su, sux float32)")
	Doc("normGradApplyAVX2 is NormGradApply with AVX2 and FMA.")
	dx, dy, x, gain, addend, n := pointer("dx"), pointer("dy"), pointer("x"), pointer("gain"), pointer("addend"), length("dx")
	mean, r, su, sux := broadcast("mean"), broadcast("r"), broadcast("su"), broadcast("sux")
	forLanes(n, 2, func(l lanes, _ int) {
		h, d, a := l.load(x), l.load(dy), l.load(addend)
		VSUBPS(mean, h, h)
		VMULPS(r, h, h)
		VFMSUB132PS(l.operand(gain), su, d)
		VFNMADD231PS(h, sux, d)
		VFMADD231PS(d, r, a)
		l.store(a, dx)
	})
	done()
}

func rotate() {
	TEXT("rotateAVX2", NOSPLIT, "func(y, x, gain, table []float32, mean, r, sign float32)")
	Doc("rotateAVX2 is Rotate with AVX2 and FMA.")
	y, x, gain, table, n := pointer("y"), pointer("x"), pointer("gain"), pointer("table"), length("y")
	mean, r, sign := broadcast("mean"), broadcast("r"), broadcast("sign")
	SHRQ(Imm(1), n)
	y2, x2, gain2, table2 := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: y, Index: n, Scale: 4}, y2)
	LEAQ(Mem{Base: x, Index: n, Scale: 4}, x2)
	LEAQ(Mem{Base: gain, Index: n, Scale: 4}, gain2)
	LEAQ(Mem{Base: table, Index: n, Scale: 4}, table2)
	forLanes(n, 1, func(l lanes, _ int) {
		a, b, cos, sin := l.load(x), l.load(x2), l.load(table), l.load(table2)
		VSUBPS(mean, a, a)
		VSUBPS(mean, b, b)
		VMULPS(r, a, a)
		VMULPS(r, b, b)
		VMULPS(l.operand(gain), a, a)
		VMULPS(l.operand(gain2), b, b)
		VMULPS(sign, sin, sin)
		low, high := YMM(), YMM()
		VMULPS(b, sin, low)
		VFMSUB231PS(a, cos, low)
		VMULPS(a, sin, high)
		VFMADD231PS(b, cos, high)
		l.store(low, y)
		l.store(high, y2)
	})
	done()
}
