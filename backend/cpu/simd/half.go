package simd

import "math"

// eights runs f on as many elements as vectors of 8 hold, and g on the rest.
func eights[Y, X any](y []Y, x []X, f, g func([]Y, []X)) {
	x = x[:len(y)]
	n := len(y) &^ 7
	f(y[:n], x[:n])
	g(y[n:], x[n:])
}

// FromBF16 writes the bfloat16 numbers x to y.
func FromBF16(y []float32, x []uint16) { eights(y, x, active.fromBF16, fromBF16Go) }

// ToBF16 rounds to nearest, ties to even. A NaN stays one: its quiet bit is set.
func ToBF16(y []uint16, x []float32) { eights(y, x, active.toBF16, toBF16Go) }

// FromF16 writes the float16 numbers x to y.
func FromF16(y []float32, x []uint16) { eights(y, x, active.fromF16, fromF16Go) }

// ToF16 rounds to nearest, ties to even; 65520 and more is inf.
func ToF16(y []uint16, x []float32) { eights(y, x, active.toF16, toF16Go) }

func fromBF16Go(y []float32, x []uint16) {
	for i, h := range x {
		y[i] = math.Float32frombits(uint32(h) << 16)
	}
}

func toBF16Go(y []uint16, x []float32) {
	for i, v := range x {
		y[i] = toBF16One(v)
	}
}

func fromF16Go(y []float32, x []uint16) {
	for i, h := range x {
		y[i] = fromF16One(h)
	}
}

func toF16Go(y []uint16, x []float32) {
	for i, v := range x {
		y[i] = toF16One(v)
	}
}

// toBF16One rounds to nearest, ties to even. A NaN stays one: its quiet bit is set.
func toBF16One(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// toF16One rounds to nearest, ties to even; 65520 and more is inf.
func toF16One(x float32) uint16 {
	b := math.Float32bits(x)
	sign, a := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case a > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(a>>13)&0x1ff
	case a >= 0x477ff000:
		return sign | 0x7c00
	case a >= 0x38800000: // normal; a carry goes into the exponent, as it should
		a -= 0x38000000
		return sign | uint16((a+0xfff+a>>13&1)>>13)
	case a < 0x33000000: // under half the smallest
		return sign
	}
	drop := 126 - a>>23 // bits between the float32's last and 2^-24
	m := a&0x7fffff | 0x800000
	return sign | uint16((m+1<<(drop-1)-1+m>>drop&1)>>drop)
}

func fromF16One(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10)&31, uint32(h)&0x3ff
	switch e {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	case 0: // subnormal: m 2^-24, exact in float32
		f := float32(m) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
