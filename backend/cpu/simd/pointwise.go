package simd

import "math"

// SwiGLU writes y = gate s up, s = 1/(1 + e^-gate).
func SwiGLU(y, gate, up []float32) { active.swiGLU(y, gate[:len(y)], up[:len(y)]) }

// SwiGLUGrad writes dgate = dy up s (1 + gate (1-s)) and dup = dy gate s. The outputs may be the inputs.
func SwiGLUGrad(dgate, dup, dy, gate, up []float32) {
	n := len(dy)
	active.swiGLUGrad(dgate[:n], dup[:n], dy, gate[:n], up[:n])
}

// GELU writes y = x Φ(x), Φ the distribution function of N(0, 1).
func GELU(y, x []float32) { active.gelu(y, x[:len(y)]) }

// GELUGrad writes dx = dy (Φ(x) + x Φ'(x)).
func GELUGrad(dx, dy, x []float32) { active.geluGrad(dx, dy[:len(dx)], x[:len(dx)]) }

// ReLU writes y = x where x > 0, 0 where not; a NaN stays.
func ReLU(y, x []float32) { active.relu(y, x[:len(y)]) }

// ReLUGrad writes dx = dy where x > 0, 0 where not, NaN where x is one.
func ReLUGrad(dx, dy, x []float32) { active.reluGrad(dx, dy[:len(dx)], x[:len(dx)]) }

// SoftCap writes y = limit tanh(x/limit).
func SoftCap(y, x []float32, limit float32) { active.softCap(y, x[:len(y)], limit) }

// SoftCapGrad writes dx = dy (1 - (y/limit)²).
func SoftCapGrad(dx, dy, y []float32, limit float32) {
	active.softCapGrad(dx, dy[:len(dx)], y[:len(dx)], limit)
}

// AdamWFactors are the constants of a step of AdamW.
type AdamWFactors struct {
	Clip         float32 // of the gradient
	LR           float32
	Beta1, Beta2 float32
	Bias1, Bias2 float32 // 1 - beta^step
	Eps          float32
	Decay        float32 // of the parameter: weight decay, without the learning rate
}

// AdamW updates parameters p and their moments m and v by the gradient g:
//
//	d = clip g; m = beta1 m + (1-beta1) d; v = beta2 v + (1-beta2) d²
//	p = p (1 - lr decay) - lr (m/bias1) / (sqrt(v/bias2) + eps)
func AdamW(p, m, v, g []float32, f AdamWFactors) {
	n := len(p)
	active.adamW(p, m[:n], v[:n], g[:n], f.Clip, f.Beta1, 1-f.Beta1, f.Beta2, 1-f.Beta2, f.LR*(1/f.Bias1), 1/f.Bias2, f.Eps, 1-f.LR*f.Decay)
}

// sigmoidTail is where e^-x nears overflow, and 1 / (1 + e^-x) is e^x to the last bit.
const sigmoidTail = -88

// sigmoid is 1 / (1 + e^-x).
func sigmoid(x float32) float32 {
	if x < sigmoidTail {
		return Exp(x)
	}
	return 1 / (1 + Exp(-x))
}

// silu is x / (1 + e^-x), by halves in the tail, where e^x would be subnormal but the product is not.
func silu(x float32) float32 {
	if x < sigmoidTail {
		h := Exp(x / 2)
		return x * h * h
	}
	return x / (1 + Exp(-x))
}

func swiGLUGo(y, gate, up []float32) {
	for i, g := range gate {
		y[i] = silu(g) * up[i]
	}
}

func swiGLUGradGo(dgate, dup, dy, gate, up []float32) {
	for i, g := range gate {
		s := sigmoid(g)
		d := dy[i]
		dgate[i], dup[i] = d*up[i]*s*(1+g*(1-s)), d*(g*s)
	}
}

// gaussian is Φ(x). erfc keeps its precision for x far below 0.
func gaussian(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

func geluGo(y, x []float32) {
	for i, v := range x {
		y[i] = float32(float64(v) * gaussian(float64(v)))
	}
}

func geluGradGo(dx, dy, x []float32) {
	for i, v := range x {
		u := float64(v)
		slope := gaussian(u) + u*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi)
		dx[i] = float32(float64(dy[i]) * slope)
	}
}

func reluGo(y, x []float32) {
	for i, v := range x {
		if v <= 0 {
			v = 0
		}
		y[i] = v
	}
}

func reluGradGo(dx, dy, x []float32) {
	for i, v := range x {
		switch {
		case v > 0:
			dx[i] = dy[i]
		case v <= 0:
			dx[i] = 0
		default:
			dx[i] = v
		}
	}
}

func softCapGo(y, x []float32, limit float32) {
	for i, v := range x {
		y[i] = float32(float64(limit) * math.Tanh(float64(v)/float64(limit)))
	}
}

func softCapGradGo(dx, dy, y []float32, limit float32) {
	for i, v := range y {
		t := float64(v) / float64(limit)
		dx[i] = float32(float64(dy[i]) * (1 - t*t))
	}
}

func adamWGo(p, m, v, g []float32, clip, beta1, new1, beta2, new2, rate, r2, eps, keep float32) {
	for i := range p {
		d := clip * g[i]
		mi := beta1*m[i] + new1*d
		vi := beta2*v[i] + new2*d*d
		m[i], v[i] = mi, vi
		p[i] = p[i]*keep - rate*mi/(float32(math.Sqrt(float64(vi*r2)))+eps)
	}
}
