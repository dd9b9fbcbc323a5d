package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
)

func exp(x float32) float32 { return simd.Exp(x) }

// The sums below have four accumulators in float64.

func dot(x, y []float32) float64 {
	y = y[:len(x)]
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		u, v := x[i:i+4:i+4], y[i:i+4:i+4]
		a += float64(u[0]) * float64(v[0])
		b += float64(u[1]) * float64(v[1])
		c += float64(u[2]) * float64(v[2])
		d += float64(u[3]) * float64(v[3])
	}
	for ; i < len(x); i++ {
		a += float64(x[i]) * float64(y[i])
	}
	return (a + b) + (c + d)
}

func total(x []float32) float64 {
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		u := x[i : i+4 : i+4]
		a += float64(u[0])
		b += float64(u[1])
		c += float64(u[2])
		d += float64(u[3])
	}
	for ; i < len(x); i++ {
		a += float64(x[i])
	}
	return (a + b) + (c + d)
}

// largest ignores NaNs, which come out of the exponentials anyway.
func largest(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// finite tells whether no element is an inf or a NaN: 0 times either is a NaN, and times anything else a zero.
func finite(x []float32) bool {
	var s float32
	for _, v := range x {
		s += v * 0
	}
	return s == 0
}
