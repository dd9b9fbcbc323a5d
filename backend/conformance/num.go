package conformance

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

// num is a number on a float32 device: its value in exact arithmetic, and a bound of how far the device's may be from it. A
// bound of +Inf expects nothing. Values that are not finite are exact: the device's must not be finite either.
type num struct{ v, e float64 }

// The error budget; see the package comment.
const (
	unit     = 0x1p-24  // u: half an ulp of float32, relative
	flush    = 0x1p-126 // the smallest normal float32
	divUnits = 6
	funUnits = 8
	slack    = 2
)

// exact is a number that the device holds without error.
func exact(v float64) num { return num{v, 0} }

// inputs are numbers stored in a format; a subnormal one may be read as zero.
func inputs(x []float64, d graph.DType) []num {
	least := flush
	if d == graph.F16 {
		least = 0x1p-14
	}
	n := make([]num, len(x))
	for i, v := range x {
		n[i].v = v
		if math.Abs(v) < least {
			n[i].e = math.Abs(v)
		}
	}
	return n
}

// result makes a num of a value, the error that comes from the operands and the units of rounding of its own.
func result(v, e, units float64) num {
	switch {
	case math.IsNaN(v):
		return num{v, 0}
	case math.IsNaN(e):
		return num{v, math.Inf(1)}
	case math.IsInf(v, 0):
		if !math.IsInf(e, 0) {
			e = 0
		}
		return num{v, e}
	}
	e += units*unit*math.Abs(v) + flush
	if math.Abs(v)+e > math.MaxFloat32 {
		e = math.Inf(1)
	}
	return num{v, e}
}

// scaled is |v| e, where an exact operand makes no error whatever it multiplies.
func scaled(v, e float64) float64 {
	if e == 0 {
		return 0
	}
	return math.Abs(v) * e
}

func (a num) neg() num      { return num{-a.v, a.e} }
func (a num) add(b num) num { return result(a.v+b.v, a.e+b.e, 1) }
func (a num) sub(b num) num { return result(a.v-b.v, a.e+b.e, 1) }
func (a num) mul(b num) num {
	return result(a.v*b.v, scaled(a.v, b.e)+scaled(b.v, a.e)+scaled(a.e, b.e), 1)
}
func (a num) loosen(units float64) num { return result(a.v, a.e, units) }

func (a num) div(b num) num {
	v := a.v / b.v
	if b.e > 0 && b.e >= math.Abs(b.v) {
		return num{v, math.Inf(1)}
	}
	return result(v, (a.e+scaled(v, b.e))/(math.Abs(b.v)-b.e), divUnits)
}

func (a num) sqrt() num {
	v := math.Sqrt(a.v)
	if a.e == 0 {
		return result(v, 0, divUnits)
	}
	return result(v, a.e/(v+math.Sqrt(math.Max(0, a.v-a.e))), divUnits)
}

func (a num) exp() num {
	v := math.Exp(a.v)
	return result(v, scaled(v, math.Expm1(a.e)), funUnits)
}

func (a num) log() num {
	v := math.Log(a.v)
	if a.e > 0 && a.e >= a.v {
		return num{v, math.Inf(1)}
	}
	r := result(v, -math.Log1p(-a.e/a.v), 0)
	r.e += funUnits * unit * math.Max(1, math.Abs(v))
	return r
}

// tanh has saturated in float32 from 10 on.
func (a num) tanh() num {
	v := math.Tanh(a.v)
	x := math.Max(0, math.Abs(a.v)-a.e)
	if x > 10 {
		return result(v, 1-math.Abs(v), 0)
	}
	c := math.Cosh(x)
	return result(v, scaled(1/(c*c), a.e), funUnits)
}

// erf has saturated in float32 from 4.5 on. Its derivative is 2/sqrt(pi) exp(-x²).
func (a num) erf() num {
	v := math.Erf(a.v)
	x := math.Max(0, math.Abs(a.v)-a.e)
	if x > 4.5 {
		return result(v, math.Erfc(x), 0)
	}
	return result(v, scaled(2/math.SqrtPi*math.Exp(-x*x), a.e), funUnits)
}

// logistic is 1/(1 + exp(-a)), whose logarithm has a slope of at most 1. It has no overflow: 1/inf is 0.
func (a num) logistic() num {
	v := 1 / (1 + math.Exp(-a.v))
	return result(v, scaled(v, math.Expm1(a.e)), funUnits+1+divUnits)
}

// gauss is exp(-a²/2). The square is rounded twice, which shows as much as it is large.
func (a num) gauss() num {
	v := math.Exp(-a.v * a.v / 2)
	if v == 0 {
		return result(v, 0, 0)
	}
	return result(v, scaled(v, math.Expm1(unit*a.v*a.v+scaled(a.v, a.e))), funUnits)
}

// sumNum adds in any order.
func sumNum(x ...num) num {
	v, e, mag := 0.0, 0.0, 0.0
	for _, t := range x {
		v += t.v
		e += t.e
		mag += math.Abs(t.v)
	}
	return sumResult(v, e, mag, len(x)-1)
}

// sumResult is a sum of value v, whose terms carry e and have magnitudes adding to mag, after n roundings.
func sumResult(v, e, mag float64, n int) num {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return result(v, e, 0)
	}
	if mag > math.MaxFloat32 {
		return num{v, math.Inf(1)}
	}
	return result(v, e+float64(n)*(unit*mag+flush), 0)
}

// dotNum multiplies and adds, in any order, fused or not.
func dotNum(a, b []num) num {
	v, e, mag := 0.0, 0.0, 0.0
	for i, x := range a {
		y := b[i]
		v += x.v * y.v
		if x.e != 0 || y.e != 0 {
			e += scaled(x.v, y.e) + scaled(y.v, x.e) + scaled(x.e, y.e)
		}
		mag += math.Abs(x.v * y.v)
	}
	return sumResult(v, e, mag, len(a))
}

// ldexp is a 2^exp.
func (a num) ldexp(exp int) num { return result(math.Ldexp(a.v, exp), math.Ldexp(a.e, exp), 0) }

// balanced gives x over a power of two, so that its largest magnitude is from 1/2 to 1: what an operator must be right for all finite rows is told of that, since
// a device that heeds the size of a row loses nothing by it.
func balanced(x []num) (y []num, exp int) {
	largest := 0.0
	for _, a := range x {
		if m := math.Abs(a.v); m > largest && !math.IsInf(m, 0) {
			largest = m
		}
	}
	_, exp = math.Frexp(largest)
	y = make([]num, len(x))
	for i, a := range x {
		y[i] = num{math.Ldexp(a.v, -exp), math.Ldexp(a.e, -exp)}
	}
	return y, exp
}

// allZero tells a row of zeros, which a device has without error.
func allZero(x []num) bool {
	for _, a := range x {
		if a.v != 0 {
			return false
		}
	}
	return true
}
