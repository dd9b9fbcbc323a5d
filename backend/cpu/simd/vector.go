package simd

import "math"

// kernels is a set of implementations: one for each kind of processor, and the plain one that they are tested against.
type kernels struct {
	max         func(x []float32) float32
	expScaleSum func(dst, x []float32, scale, shift float32) float32
	expSum      func(x []float32, shift float32) float32
	expMul      func(dst, x []float32, shift, a float32)
	softmaxGrad func(dx, dy, y []float32, s float32)
	scale       func(dst, x []float32, a float32)
	add         func(dst, x, y []float32)
	axpy        func(y []float32, a float32, x []float32)
	dot         func(x, y []float32) float32
	sum         func(x []float32) float32
	logitGrad   func(x, g []float32, scale, lse, delta float32) float32

	centredSquares func(x []float32, mean float32) float32
	normalize      func(y, x, gain, addend []float32, mean, r float32)
	normGradSums   func(sums, dy, x, gain []float32, mean, r float32) (su, sux float32)
	normGradApply  func(dx, dy, x, gain, addend []float32, mean, r, su, sux float32)
	rotate         func(y, x, gain, table []float32, mean, r, sign float32)

	swiGLU      func(y, gate, up []float32)
	swiGLUGrad  func(dgate, dup, dy, gate, up []float32)
	gelu        func(y, x []float32)
	geluGrad    func(dx, dy, x []float32)
	relu        func(y, x []float32)
	reluGrad    func(dx, dy, x []float32)
	softCap     func(y, x []float32, limit float32)
	softCapGrad func(dx, dy, y []float32, limit float32)
	adamW       func(p, m, v, g []float32, clip, beta1, new1, beta2, new2, rate, r2, eps, keep float32)

	// Of a multiple of 8 elements.
	fromBF16 func(y []float32, x []uint16)
	toBF16   func(y []uint16, x []float32)
	fromF16  func(y []float32, x []uint16)
	toF16    func(y []uint16, x []float32)
}

var plain = kernels{
	max: maxGo, expScaleSum: expScaleSumGo, expSum: expSumGo, expMul: expMulGo, softmaxGrad: softmaxGradGo, scale: scaleGo, add: addGo,
	axpy: axpyGo, dot: dotGo, sum: sumGo, logitGrad: logitGradGo,
	centredSquares: centredSquaresGo, normalize: normalizeGo, normGradSums: normGradSumsGo, normGradApply: normGradApplyGo, rotate: rotateGo,
	swiGLU: swiGLUGo, swiGLUGrad: swiGLUGradGo, gelu: geluGo, geluGrad: geluGradGo, relu: reluGo, reluGrad: reluGradGo,
	softCap: softCapGo, softCapGrad: softCapGradGo, adamW: adamWGo,
	fromBF16: fromBF16Go, toBF16: toBF16Go, fromF16: fromF16Go, toF16: toF16Go,
}

// Max is the largest element, NaNs left out; -inf if there is none.
func Max(x []float32) float32 { return active.max(x) }

// ExpScaleSum writes dst[i] = exp(x[i]*scale - shift), one rounding before the exponential, and returns the sum of dst. dst may be
// x. The exponential is within 1 ulp of float32, subnormal results too; what overflows is inf.
func ExpScaleSum(dst, x []float32, scale, shift float32) float32 {
	return active.expScaleSum(dst[:len(x)], x, scale, shift)
}

// ExpSum is the sum of exp(x[i] - shift).
func ExpSum(x []float32, shift float32) float32 { return active.expSum(x, shift) }

// ExpMul writes dst[i] = a exp(x[i] - shift). dst may be x.
func ExpMul(dst, x []float32, shift, a float32) { active.expMul(dst[:len(x)], x, shift, a) }

// SoftmaxGrad writes dx[i] = y[i] (dy[i] - s). dx may be either.
func SoftmaxGrad(dx, dy, y []float32, s float32) {
	active.softmaxGrad(dx, dy[:len(dx)], y[:len(dx)], s)
}

// Add writes dst = x + y. dst may be either.
func Add(dst, x, y []float32) { active.add(dst[:len(x)], x, y[:len(x)]) }

// Sum adds in float32 lanes.
func Sum(x []float32) float32 { return active.sum(x) }

// Scale writes dst = a x. dst may be x.
func Scale(dst, x []float32, a float32) { active.scale(dst[:len(x)], x, a) }

// Axpy adds a x to y.
func Axpy(y []float32, a float32, x []float32) { active.axpy(y[:len(x)], a, x) }

// Dot is the sum of x[i] y[i], in float32 lanes.
func Dot(x, y []float32) float32 { return active.dot(x, y[:len(x)]) }

// LogitGrad is the gradient of a softmax's row in attention: with p = exp(x*scale - lse) and ds = p (g - delta), it writes x = p and
// g = ds*scale, and returns the sum of ds x over the old x.
func LogitGrad(x, g []float32, scale, lse, delta float32) float32 {
	return active.logitGrad(x, g[:len(x)], scale, lse, delta)
}

func maxGo(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// fma rounds x*y + z once.
func fma(x, y, z float32) float32 { return float32(float64(x)*float64(y) + float64(z)) }

func expScaleSumGo(dst, x []float32, scale, shift float32) float32 {
	s := 0.0
	for i, v := range x {
		e := Exp(fma(v, scale, -shift))
		dst[i] = e
		s += float64(e)
	}
	return float32(s)
}

func expSumGo(x []float32, shift float32) float32 {
	s := 0.0
	for _, v := range x {
		s += float64(Exp(v - shift))
	}
	return float32(s)
}

func expMulGo(dst, x []float32, shift, a float32) {
	for i, v := range x {
		dst[i] = Exp(v-shift) * a
	}
}

func softmaxGradGo(dx, dy, y []float32, s float32) {
	for i, v := range y {
		dx[i] = v * (dy[i] - s)
	}
}

func addGo(dst, x, y []float32) {
	for i, v := range x {
		dst[i] = v + y[i]
	}
}

func sumGo(x []float32) float32 {
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return float32(s)
}

func scaleGo(dst, x []float32, a float32) {
	for i, v := range x {
		dst[i] = a * v
	}
}

func axpyGo(y []float32, a float32, x []float32) {
	for i, v := range x {
		y[i] += a * v
	}
}

func dotGo(x, y []float32) float32 {
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
	return float32((a + b) + (c + d))
}

func logitGradGo(x, g []float32, scale, lse, delta float32) float32 {
	sum := 0.0
	for i, v := range x {
		p := Exp(fma(v, scale, -lse))
		d := p * (g[i] - delta)
		sum += float64(d) * float64(v)
		x[i], g[i] = p, d*scale
	}
	return float32(sum)
}

// Exp is e^x within 0.63 ulp of float32: e^x = 2^k e^r with |r| <= ln2/2, a Taylor polynomial of degree 7 in float64 (truncation
// under 8e-9 of it). inf, 0 and NaN come out where they should.
func Exp(x float32) float32 {
	switch {
	case x > 89:
		return float32(math.Inf(1))
	case x < -105:
		return 0
	case x != x:
		return x
	}
	y := float64(x)
	k := math.Floor(y*math.Log2E + 0.5)
	r := y - k*math.Ln2
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720+r*(1./5040)))))))
	return float32(p * math.Float64frombits(uint64(int64(k)+1023)<<52))
}
