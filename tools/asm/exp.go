package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The coefficients of r², r³ ... r⁶ in e^r - 1 - r, |r| <= ln2/2: interpolated at Chebyshev's nodes, within 1.1e-8 of e^r.
var expCoefficients = []float32{0.5, 0.16666576845993977, 0.04166655443768594, 0.008363202971575855, 0.0013926213466332444}

// exp emits x = e^x, 20 instructions, with its constants in memory and three registers besides x: x = k ln2 + r with ln2 in two
// parts (Cody and Waite), a polynomial in r, and 2^k in two factors, so that results round once, into subnormals too. The error is
// stated at simd.ExpScaleSum. inf and what overflows give inf, -inf and what is under half the smallest subnormal 0, NaN itself.
func exp(x reg.VecVirtual) {
	k, r, p := YMM(), YMM(), YMM()
	VMOVUPS(float(-104.5), p)
	VMAXPS(x, p, x) // of a NaN and a number these two give the first operand
	VMOVUPS(float(89), p)
	VMINPS(x, p, x)
	// Adding 1.5 2^23 rounds to an integer, and leaves it in the low bits.
	const shifter = 0x1.8p23
	VMOVUPS(float(0x1.715476p+0), k) // log2(e)
	VFMADD213PS(float(shifter), x, k)
	VSUBPS(float(shifter), k, r)
	VFNMADD231PS(float(0x1.62e4p-1), r, x)    // ln2 to 15 bits: the product is exact
	VFNMADD231PS(float(0x1.7f7d1cp-20), r, x) // the rest
	c := expCoefficients
	VMOVUPS(float(c[4]), p)
	for i := 3; i >= 0; i-- {
		VFMADD213PS(float(c[i]), x, p)
	}
	VFMADD213PS(float(1), x, p)
	VFMADD213PS(float(1), x, p)
	VPSRAD(Imm(1), k, r)
	VPSUBD(r, k, k)
	VPSLLD(Imm(23), r, r)
	VPSLLD(Imm(23), k, k)
	VPADDD(float(1), k, k)
	VPADDD(r, p, p)
	VMULPS(k, p, x)
}
