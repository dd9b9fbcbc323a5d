package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pointwise emits the kernels of elementwise operators.
func pointwise() {
	swiGLU()
	swiGLUGrad()
	gelu()
	geluGrad()
	relu()
	reluGrad()
	softCap()
	softCapGrad()
	adamW()
	fromBF16()
	toBF16()
	fromF16()
	toF16()
}

// The predicates of VCMPPS that are used.
const (
	less        = 0x11 // false for a NaN
	lessOrEqual = 0x12
	unordered   = 0x03
	greater     = 0x1e
)

// compare gives a mask of the lanes where x is in the relation to y.
func compare(x reg.VecVirtual, relation uint8, y Op) reg.VecVirtual {
	m := YMM()
	VCMPPS(Imm(uint64(relation)), y, x, m)
	return m
}

// logistic emits parts of s = 1/(1+e^-x): s = q f and 1-s = c, where q and f are normal, so that a product with both rounds once. Below
// -173, where x s is 0 whatever it multiplies, q is 0.
func logistic(x reg.VecVirtual, complement bool) (q, f, c reg.VecVirtual) {
	t := YMM()
	VORPS(bits(1<<31), x, t) // -|x|
	tiny := compare(t, less, float(-173))
	a, b := expFactors(t, -173)
	VANDNPS(a, tiny, a)
	one, d := YMM(), YMM()
	VMOVUPS(float(1), one)
	VMOVAPS(one, d)
	VFMADD231PS(a, b, d)
	VDIVPS(d, one, d) // 1/(1+t)
	q, f = YMM(), YMM()
	if complement {
		c = YMM()
		VMULPS(a, b, c)
		VBLENDVPS(x, one, c, c) // by the sign of x
		VMULPS(d, c, c)
	}
	VBLENDVPS(x, a, one, q)
	VBLENDVPS(x, b, one, f)
	VMULPS(d, q, q)
	return q, f, c
}

func swiGLU() {
	TEXT("swiGLUAVX2", NOSPLIT, "func(y, gate, up []float32)")
	Doc("swiGLUAVX2 is SwiGLU with AVX2 and FMA.")
	y, gate, up, n := pointer("y"), pointer("gate"), pointer("up"), length("y")
	forLanes(n, 1, func(l lanes, _ int) {
		g := l.load(gate)
		q, f, _ := logistic(g, false)
		VMULPS(q, g, g)
		VMULPS(l.operand(up), g, g)
		VMULPS(f, g, g)
		l.store(g, y)
	})
	done()
}

func swiGLUGrad() {
	TEXT("swiGLUGradAVX2", NOSPLIT, "func(dgate, dup, dy, gate, up []float32)")
	Doc("swiGLUGradAVX2 is SwiGLUGrad with AVX2 and FMA.")
	dgate, dup, dy, gate, up := pointer("dgate"), pointer("dup"), pointer("dy"), pointer("gate"), pointer("up")
	n := length("dy")
	forLanes(n, 1, func(l lanes, _ int) {
		g := l.load(gate)
		q, f, c := logistic(g, true)
		d, u := l.load(dy), l.load(up)
		VFMADD213PS(float(1), g, c) // 1 + g (1-s)
		VMULPS(d, u, u)
		VMULPS(q, u, u)
		VMULPS(c, u, u)
		VMULPS(f, u, u)
		l.store(u, dgate)
		VMULPS(q, g, g)
		VMULPS(g, d, d)
		VMULPS(f, d, d)
		l.store(d, dup)
	})
	done()
}

// The coefficients of t, t², ... in e^(z²/2) Φ(-z), t = 1/(1+0.35 z), 0 <= z <= 15: interpolated at Chebyshev's nodes, within 4.1e-8 of it.
var tailCoefficients = []float32{0.1396186428706828, 0.13991480394834988, 0.11941703608895025, 0.10726277293945961, -0.027482889402813796,
	0.16580180131283223, -0.26171266903740237, 0.14695092208471597, -0.029770438978368417}

// The coefficients of 1, x², x⁴ ... in (Φ(x) - 1/2)/x, |x| < 1: interpolated at Chebyshev's nodes, within 1e-11 of it.
var middleCoefficients = []float32{0.39894228039727625, -0.0664903796593396, 0.009973550469798692, -0.001187288744027218, 0.00011532074568013567,
	-9.274401205573117e-06, 5.372642944117386e-07}

// gaussian emits Φ(x), and e^(-x²/2). The square is taken in two parts: its rounding would show in the exponential. Near 0, where the tails'
// form doubles the error of t, Φ is its odd series.
func gaussian(x reg.VecVirtual) (cdf, density reg.VecVirtual) {
	z, s, low := YMM(), YMM(), YMM()
	VANDPS(bits(1<<31-1), x, z)
	VMOVUPS(float(15), s)
	VMINPS(z, s, z) // a NaN stays
	VMULPS(z, z, s)
	VMOVAPS(s, low)
	VFNMADD231PS(z, z, low)
	VMULPS(float(0.5), low, low) // (rounded square - square) / 2
	VMULPS(float(-0.5), s, s)
	exp(s)
	VFMADD231PS(low, s, s)
	t, one, p := YMM(), YMM(), YMM()
	VMOVUPS(float(1), one)
	VMOVUPS(float(0.35), t)
	VFMADD213PS(one, z, t)
	VDIVPS(t, one, t)
	horner(p, t, tailCoefficients)
	VMULPS(t, p, p)
	VMULPS(s, p, p) // Φ(-|x|)
	VSUBPS(p, one, one)
	VBLENDVPS(x, p, one, p)
	middle := compare(z, less, float(1))
	VMULPS(z, z, z)
	horner(t, z, middleCoefficients)
	VFMADD213PS(float(0.5), x, t)
	VBLENDVPS(middle, t, p, p)
	return p, s
}

func gelu() {
	TEXT("geluAVX2", NOSPLIT, "func(y, x []float32)")
	Doc("geluAVX2 is GELU with AVX2 and FMA.")
	y, x, n := pointer("y"), pointer("x"), length("y")
	forLanes(n, 1, func(l lanes, _ int) {
		v := l.load(x)
		cdf, _ := gaussian(v)
		VMULPS(cdf, v, v)
		l.store(v, y)
	})
	done()
}

func geluGrad() {
	TEXT("geluGradAVX2", NOSPLIT, "func(dx, dy, x []float32)")
	Doc("geluGradAVX2 is GELUGrad with AVX2 and FMA.")
	dx, dy, x, n := pointer("dx"), pointer("dy"), pointer("x"), length("dx")
	forLanes(n, 1, func(l lanes, _ int) {
		v := l.load(x)
		cdf, density := gaussian(v)
		VMULPS(float(0.3989422804014327), density, density) // 1/sqrt(2 pi)
		VFMADD231PS(density, v, cdf)
		VMULPS(l.operand(dy), cdf, cdf)
		l.store(cdf, dx)
	})
	done()
}

func relu() {
	TEXT("reluAVX2", NOSPLIT, "func(y, x []float32)")
	Doc("reluAVX2 is ReLU with AVX2.")
	y, x, n := pointer("y"), pointer("x"), length("y")
	zero := zeros(1)[0]
	forLanes(n, 2, func(l lanes, _ int) {
		v := l.load(x)
		VANDNPS(v, compare(v, lessOrEqual, zero), v)
		l.store(v, y)
	})
	done()
}

func reluGrad() {
	TEXT("reluGradAVX2", NOSPLIT, "func(dx, dy, x []float32)")
	Doc("reluGradAVX2 is ReLUGrad with AVX2.")
	dx, dy, x, n := pointer("dx"), pointer("dy"), pointer("x"), length("dx")
	zero := zeros(1)[0]
	forLanes(n, 2, func(l lanes, _ int) {
		v := l.load(x)
		positive, nan := compare(v, greater, zero), compare(v, unordered, v)
		VANDPS(v, nan, nan)
		VANDPS(l.operand(dy), positive, positive)
		VORPS(nan, positive, positive)
		l.store(positive, dx)
	})
	done()
}

// The coefficients of z, z² ... in tanh(x)/x - 1, z = x², |x| < 0.625, from the Cephes library's tanhf.
var tanhCoefficients = []float32{0, -3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3}

func softCap() {
	TEXT("softCapAVX2", NOSPLIT, "func(y, x []float32, limit float32)")
	Doc("softCapAVX2 is SoftCap with AVX2 and FMA.")
	y, x, n, limit := pointer("y"), pointer("x"), length("y"), broadcast("limit")
	forLanes(n, 1, func(l lanes, _ int) {
		v := l.load(x)
		VDIVPS(limit, v, v)
		z, small := YMM(), YMM()
		VMULPS(v, v, z)
		horner(small, z, tanhCoefficients)
		VFMADD213PS(v, v, small)
		t, one, d, m := YMM(), YMM(), YMM(), YMM()
		VANDPS(bits(1<<31-1), v, m)
		VMULPS(float(-2), m, t)
		exp(t)
		VMOVUPS(float(1), one)
		VADDPS(t, one, d)
		VSUBPS(t, one, t)
		VDIVPS(d, t, t) // tanh(|x|)
		VANDPS(bits(1<<31), v, v)
		VORPS(v, t, t)
		VBLENDVPS(compare(m, less, float(0.625)), small, t, t)
		VMULPS(limit, t, t)
		l.store(t, y)
	})
	done()
}

func softCapGrad() {
	TEXT("softCapGradAVX2", NOSPLIT, "func(dx, dy, y []float32, limit float32)")
	Doc("softCapGradAVX2 is SoftCapGrad with AVX2 and FMA.")
	dx, dy, y, n, limit := pointer("dx"), pointer("dy"), pointer("y"), length("dx"), broadcast("limit")
	one := YMM()
	VMOVUPS(float(1), one)
	forLanes(n, 1, func(l lanes, _ int) {
		t, d := l.load(y), YMM()
		VDIVPS(limit, t, t)
		VMOVAPS(one, d)
		VFNMADD231PS(t, t, d)
		VMULPS(l.operand(dy), d, d)
		l.store(d, dx)
	})
	done()
}

func adamW() {
	TEXT("adamWAVX2", NOSPLIT, "func(p, m, v, g []float32, clip, beta1, new1, beta2, new2, rate, r2, eps, keep float32)")
	Doc("adamWAVX2 is AdamW with AVX2 and FMA.")
	p, m, v, g, n := pointer("p"), pointer("m"), pointer("v"), pointer("g"), length("p")
	clip, beta1, new1, beta2, new2 := broadcast("clip"), broadcast("beta1"), broadcast("new1"), broadcast("beta2"), broadcast("new2")
	rate, r2, eps, keep := broadcast("rate"), broadcast("r2"), broadcast("eps"), broadcast("keep")
	forLanes(n, 1, func(l lanes, _ int) {
		d, mi, vi := l.load(g), l.load(m), l.load(v)
		VMULPS(clip, d, d)
		VMULPS(beta1, mi, mi)
		VFMADD231PS(d, new1, mi)
		l.store(mi, m)
		VMULPS(beta2, vi, vi)
		u := YMM()
		VMULPS(new2, d, u)
		VFMADD231PS(u, d, vi)
		l.store(vi, v)
		VMULPS(r2, vi, vi)
		VSQRTPS(vi, vi)
		VADDPS(eps, vi, vi)
		VMULPS(rate, mi, mi)
		VDIVPS(vi, mi, mi)
		VMULPS(l.operand(p), keep, vi)
		VSUBPS(mi, vi, vi)
		l.store(vi, p)
	})
	done()
}

// forEights runs body for 8 elements at a time of n, a multiple of 8, with the address of those in operands of 2 and 4 bytes.
func forEights(n reg.Register, body func(at func(p reg.Register, bytes uint8) Mem)) {
	i := GP64()
	XORQ(i, i)
	JMP(LabelRef("next"))
	Label("loop")
	body(func(p reg.Register, bytes uint8) Mem { return Mem{Base: p, Index: i, Scale: bytes} })
	ADDQ(Imm(8), i)
	Label("next")
	CMPQ(i, n)
	JLT(LabelRef("loop"))
	done()
}

func fromBF16() {
	TEXT("fromBF16AVX2", NOSPLIT, "func(y []float32, x []uint16)")
	Doc("fromBF16AVX2 is FromBF16 with AVX2, of 8 n elements.")
	y, x, n := pointer("y"), pointer("x"), length("y")
	forEights(n, func(at func(reg.Register, uint8) Mem) {
		v := YMM()
		VPMOVZXWD(at(x, 2), v)
		VPSLLD(Imm(16), v, v)
		VMOVUPS(v, at(y, 4))
	})
}

func toBF16() {
	TEXT("toBF16AVX2", NOSPLIT, "func(y []uint16, x []float32)")
	Doc("toBF16AVX2 is ToBF16 with AVX2, of 8 n elements.")
	y, x, n := pointer("y"), pointer("x"), length("y")
	forEights(n, func(at func(reg.Register, uint8) Mem) {
		v, r := YMM(), YMM()
		VMOVUPS(at(x, 4), v)
		nan := compare(v, unordered, v)
		VPSRLD(Imm(16), v, r)
		VPAND(bits(1), r, r)
		VPADDD(bits(0x7fff), r, r)
		VPADDD(v, r, r)
		VPOR(bits(0x400000), v, v) // quiet
		VBLENDVPS(nan, v, r, r)
		VPSRLD(Imm(16), r, r)
		high := XMM()
		VEXTRACTI128(Imm(1), r, high)
		VPACKUSDW(high, r.AsX(), high)
		VMOVDQU(high, at(y, 2))
	})
}

func fromF16() {
	TEXT("fromF16F16C", NOSPLIT, "func(y []float32, x []uint16)")
	Doc("fromF16F16C is FromF16 with F16C, of 8 n elements.")
	y, x, n := pointer("y"), pointer("x"), length("y")
	forEights(n, func(at func(reg.Register, uint8) Mem) {
		v := YMM()
		VCVTPH2PS(at(x, 2), v)
		VMOVUPS(v, at(y, 4))
	})
}

func toF16() {
	TEXT("toF16F16C", NOSPLIT, "func(y []uint16, x []float32)")
	Doc("toF16F16C is ToF16 with F16C, of 8 n elements.")
	y, x, n := pointer("y"), pointer("x"), length("y")
	forEights(n, func(at func(reg.Register, uint8) Mem) {
		v := YMM()
		VMOVUPS(at(x, 4), v)
		VCVTPS2PH(Imm(0), v, at(y, 2)) // to nearest, ties to even
	})
}
