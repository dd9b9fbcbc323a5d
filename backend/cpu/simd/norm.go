package simd

// CentredSquares is the sum of (x[i] - mean)², in float32 lanes.
func CentredSquares(x []float32, mean float32) float32 { return active.centredSquares(x, mean) }

// Normalize writes y[i] = addend[i] + (x[i] - mean) r gain[i]. y may be x or addend.
func Normalize(y, x, gain, addend []float32, mean, r float32) {
	n := len(y)
	active.normalize(y, x[:n], gain[:n], addend[:n], mean, r)
}

// NormGradSums goes over a row's gradient: with h = (x - mean) r, it adds dy h to sums, the gradient of the gain, and returns the sums of
// u = dy gain and of u h.
func NormGradSums(sums, dy, x, gain []float32, mean, r float32) (su, sux float32) {
	n := len(sums)
	return active.normGradSums(sums, dy[:n], x[:n], gain[:n], mean, r)
}

// NormGradApply writes dx = addend + r (u - su - h sux), with u and h as in [NormGradSums]. dx may be any of the rows.
func NormGradApply(dx, dy, x, gain, addend []float32, mean, r, su, sux float32) {
	n := len(dx)
	active.normGradApply(dx, dy[:n], x[:n], gain[:n], addend[:n], mean, r, su, sux)
}

// Rotate turns the pairs a = h[i], b = h[i + n/2] of h = (x - mean) r gain by the angles whose cosines are the first half of table and
// whose sines, times sign, the second: y[i] = a cos - b sin, y[i + n/2] = b cos + a sin. n = len(y) is even. y may be x.
func Rotate(y, x, gain, table []float32, mean, r, sign float32) {
	n := len(y)
	if n%2 != 0 {
		panic("simd: rotation of an odd number of elements")
	}
	active.rotate(y, x[:n], gain[:n], table[:n], mean, r, sign)
}

func centredSquaresGo(x []float32, mean float32) float32 {
	s := 0.0
	for _, v := range x {
		d := float64(v - mean)
		s += d * d
	}
	return float32(s)
}

func normalizeGo(y, x, gain, addend []float32, mean, r float32) {
	for i, v := range x {
		y[i] = addend[i] + (v-mean)*r*gain[i]
	}
}

func normGradSumsGo(sums, dy, x, gain []float32, mean, r float32) (su, sux float32) {
	var a, b float64
	for i, v := range x {
		h := (v - mean) * r
		sums[i] += dy[i] * h
		u := dy[i] * gain[i]
		a += float64(u)
		b += float64(u) * float64(h)
	}
	return float32(a), float32(b)
}

func normGradApplyGo(dx, dy, x, gain, addend []float32, mean, r, su, sux float32) {
	for i, v := range x {
		h := (v - mean) * r
		dx[i] = addend[i] + r*(dy[i]*gain[i]-su-h*sux)
	}
}

func rotateGo(y, x, gain, table []float32, mean, r, sign float32) {
	half := len(y) / 2
	for i := range half {
		a, b := (x[i]-mean)*r*gain[i], (x[i+half]-mean)*r*gain[i+half]
		cos, sin := table[i], table[i+half]*sign
		y[i], y[i+half] = a*cos-b*sin, b*cos+a*sin
	}
}
