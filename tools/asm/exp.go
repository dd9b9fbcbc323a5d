package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The coefficients of r², r³ ... r⁶ in e^r - 1 - r, |r| <= ln2/2: interpolated at Chebyshev's nodes, within 1.1e-8 of e^r.
var expCoefficients = []float32{0.5, 0.16666576845993977, 0.04166655443768594, 0.008363202971575855, 0.0013926213466332444}

// exp emits x = e^x with its constants in memory and three registers besides x. The error is stated at simd.ExpScaleSum. inf and what
// overflows give inf, -inf and what is under half the smallest subnormal 0, NaN itself.
func exp(x reg.VecVirtual) {
	a, b := expFactors(x, -104.5)
	VMULPS(b, a, x)
}

// expFactors emits normal a and b with a b = e^x, for x no less than least, which replaces what is below it, and at most 89: x is k ln2
// + r with ln2 in two parts (Cody and Waite), a a polynomial in r times a half of 2^k, b the other half, so that a product with both
// rounds once, into subnormals too. It spoils x.
func expFactors(x reg.VecVirtual, least float32) (a, b reg.VecVirtual) {
	k, r, p := YMM(), YMM(), YMM()
	VMOVUPS(float(least), p)
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
	horner(p, x, append([]float32{1, 1}, expCoefficients...))
	VPSRAD(Imm(1), k, r)
	VPSUBD(r, k, k)
	VPSLLD(Imm(23), r, r)
	VPSLLD(Imm(23), k, k)
	VPADDD(float(1), k, k)
	VPADDD(float(1), r, r)
	VMULPS(r, p, p) // not an addition of exponents, which makes numbers of NaNs
	return p, k
}

// horner emits p = c[0] + c[1] x + c[2] x² ...
func horner(p, x reg.VecVirtual, c []float32) {
	VMOVUPS(float(c[len(c)-1]), p)
	for i := len(c) - 2; i >= 0; i-- {
		VFMADD213PS(float(c[i]), x, p)
	}
}
