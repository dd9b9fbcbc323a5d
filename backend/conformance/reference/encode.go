package reference

import (
	"encoding/binary"
	"math"

	"github.com/vktrain/vktrain/graph"
)

// Decode reads little-endian elements of a format. NaNs keep the payload that fits.
func Decode(dst []float64, src []byte, d graph.DType) {
	for i := range dst {
		switch d {
		case graph.F32:
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		case graph.BF16:
			dst[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16))
		case graph.F16:
			dst[i] = fromF16(binary.LittleEndian.Uint16(src[2*i:]))
		case graph.I32:
			dst[i] = float64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	}
}

// Encode writes elements in a format, rounding to nearest even. NaNs keep the payload that fits.
func Encode(dst []byte, src []float64, d graph.DType) {
	for i, x := range src {
		switch d {
		case graph.F32:
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(float32(x)))
		case graph.BF16:
			binary.LittleEndian.PutUint16(dst[2*i:], toBF16Bits(x))
		case graph.F16:
			binary.LittleEndian.PutUint16(dst[2*i:], toF16Bits(x))
		case graph.I32:
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(int32(x)))
		}
	}
}

// Round gives the nearest number of a format, ties to even.
func Round(x float64, d graph.DType) float64 {
	switch d {
	case graph.F32:
		return ToF32(x)
	case graph.BF16:
		return ToBF16(x)
	case graph.F16:
		return ToF16(x)
	}
	return x
}

const quietNaN = 0x7FF8 << 48

func toBF16Bits(x float64) uint16 {
	if math.IsNaN(x) {
		return uint16(math.Float32bits(float32(x))>>16) | 0x40
	}
	return uint16(math.Float32bits(float32(ToBF16(x))) >> 16)
}

func fromF16(h uint16) float64 {
	sign := uint64(h&0x8000) << 48
	exp, frac := int(h>>10&31), uint64(h&0x3FF)
	switch exp {
	case 0:
		return math.Copysign(math.Ldexp(float64(frac), -24), math.Float64frombits(sign))
	case 31:
		if frac == 0 {
			return math.Inf(1 - int(h>>15)*2)
		}
		return math.Float64frombits(sign | quietNaN | frac<<42)
	}
	return math.Float64frombits(sign | uint64(exp-15+1023)<<52 | frac<<42)
}

func toF16Bits(x float64) uint16 {
	bits := math.Float64bits(x)
	sign := uint16(bits >> 48 & 0x8000)
	switch r := math.Abs(ToF16(x)); {
	case math.IsNaN(r):
		return sign | 0x7E00 | uint16(bits>>42&0x1FF)
	case math.IsInf(r, 0):
		return sign | 0x7C00
	case r < 0x1p-14:
		return sign | uint16(r*0x1p24)
	default:
		rb := math.Float64bits(r)
		return sign | uint16((rb>>52)-1023+15)<<10 | uint16(rb>>42&0x3FF)
	}
}
