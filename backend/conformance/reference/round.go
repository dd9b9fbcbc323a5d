package reference

import "math"

// ToBF16 rounds to the nearest bfloat16, ties to even: 8 bits of precision, the smallest step 2⁻¹³³.
func ToBF16(x float64) float64 { return roundTo(x, 8, -133, 0x1.FEp127) }

// ToF16 rounds to the nearest binary16, ties to even: 11 bits of precision, the smallest step 2⁻²⁴, infinite above 65504.
func ToF16(x float64) float64 { return roundTo(x, 11, -24, 65504) }

// ToF32 rounds to the nearest binary32, ties to even.
func ToF32(x float64) float64 { return float64(float32(x)) }

func roundTo(x float64, precision, minExp int, largest float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	_, e := math.Frexp(x)
	step := math.Ldexp(1, max(e-precision, minExp))
	r := math.RoundToEven(x/step) * step
	if math.Abs(r) > largest {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return r
}
