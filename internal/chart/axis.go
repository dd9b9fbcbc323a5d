package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// What axes show at most: beyond without logarithms, and else from tiny to 1/tiny, so that a little more is a number too.
const (
	beyond = 1e15
	tiny   = 1e-300
)

// drawable says whether an axis has a place for v.
func (a Axis) drawable(v float64) bool {
	if a.Log {
		return v >= tiny && v <= 1/tiny
	}
	return math.Abs(v) <= beyond
}

// span is a range of values.
type span struct{ min, max float64 }

var noSpan = span{math.Inf(1), math.Inf(-1)}

func (s span) with(v float64) span { return span{math.Min(s.min, v), math.Max(s.max, v)} }

func (s span) empty() bool { return s.min > s.max }

// extent is at least 0.
func (s span) extent() float64 { return math.Max(s.max-s.min, 0) }

// padded is the range that an axis shows, so that curves don't lie on its ends. Ends that show nothing are made up.
func (a Axis) padded(s span) span {
	switch {
	case s.empty() && a.Log:
		return span{1, 10}
	case s.empty():
		return span{0, 1}
	case a.Log:
		low, high := math.Log(s.min), math.Log(s.max)
		pad := math.Max(0.04*(high-low), 0.1)
		return span{math.Exp(math.Max(low-pad, -700)), math.Exp(math.Min(high+pad, 700))}
	}
	pad, size := 0.04*(s.max-s.min), math.Max(math.Abs(s.min), math.Abs(s.max))
	if s.max-s.min <= 1e-9*size { // the same number, but for its rounding
		pad = 0.05 * size
	}
	if pad == 0 {
		pad = 0.5
	}
	if a.Whole {
		pad = math.Max(math.Min(pad, 0.02*(s.max-s.min)), 0.5)
	}
	return span{s.min - pad, s.max + pad}
}

// set gives gonum's axis its range, scale and about n ticks.
func (a Axis) set(to *plot.Axis, s span, n int) {
	to.Min, to.Max = s.min, s.max
	if a.Log {
		to.Scale = logScale{}
	}
	to.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick { return a.ticks(span{low, high}, n) })
}

// logScale maps by logarithms; unlike gonum's it does not panic at 0, which only a level could bring it.
type logScale struct{}

func (logScale) Normalize(low, high, x float64) float64 {
	if x <= 0 {
		return 0
	}
	return (math.Log(x) - math.Log(low)) / (math.Log(high) - math.Log(low))
}

// ticks are about n marks with labels, at round numbers; at least two, where there are as many, for one says nothing of the scale.
func (a Axis) ticks(s span, n int) []plot.Tick {
	if a.Log && s.max/s.min > 5 {
		return logTicks(s, n)
	}
	all := a.linearTicks(s, n)
	for more := n + 1; len(all) < 2 && more < n+8; more++ {
		all = a.linearTicks(s, more)
	}
	return all
}

func (a Axis) linearTicks(s span, n int) []plot.Tick {
	step := roundStep((s.max-s.min)/float64(max(n, 1)), a.Whole)
	var all []plot.Tick
	for i := math.Ceil(s.min / step); i*step <= s.max && len(all) < 100; i++ {
		all = append(all, plot.Tick{Value: i * step, Label: tickLabel(i*step, step)})
	}
	return all
}

// roundStep is 1, 2, 2.5 or 5 times a power of ten, at least rough.
func roundStep(rough float64, whole bool) float64 {
	size := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * size
	for _, m := range []float64{5, 2.5, 2, 1} {
		if m*size >= rough*(1-1e-9) && !(whole && m == 2.5 && size < 10) {
			step = m * size
		}
	}
	if whole {
		return math.Max(1, step)
	}
	return step
}

// tickLabel prints v with the digits that a step needs.
func tickLabel(v, step float64) string {
	if a := math.Abs(v); a >= 1e6 || step < 1e-5 {
		digits := 0
		if v != 0 {
			digits = max(0, int(math.Ceil(math.Log10(a/step)-1e-9)))
		}
		return strconv.FormatFloat(v, 'g', max(1, min(digits+1, 12)), 64)
	}
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if frac := step * math.Pow(10, float64(digits)); math.Abs(frac-math.Round(frac)) > 1e-6 {
		digits++ // 2.5 of a power of ten
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if v > -step/2 { // not -0.0
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// logTicks are powers of ten with labels and, where they are few, 2 and 5 times them; the rest of a decade has marks only.
func logTicks(s span, n int) []plot.Tick {
	low, high := math.Floor(math.Log10(s.min)), math.Ceil(math.Log10(s.max))
	powers := math.Floor(math.Log10(s.max)) - math.Ceil(math.Log10(s.min)) + 1
	every := math.Max(1, math.Ceil(powers/float64(max(n, 1))))
	few := math.Log10(s.max/s.min) < 2.2 && n > 3
	var all []plot.Tick
	for e := low; e <= high; e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			t := plot.Tick{Value: v}
			switch {
			case v < s.min || v > s.max || every > 1 && m > 1:
				continue
			case m == 1 && math.Mod(e, every) == 0, few && (m == 2 || m == 5):
				t.Label = Short(v)
			}
			all = append(all, t)
		}
	}
	return all
}

// Short prints a number with at most four digits, as axes and tables show it: 0.0123, 12350, 1.5e-7, ∞, NaN.
func Short(v float64) string {
	if math.IsNaN(v) {
		return "NaN"
	}
	if math.IsInf(v, 0) {
		return strings.TrimPrefix(strings.Replace(fmt.Sprint(v), "Inf", "∞", 1), "+")
	}
	digits := strconv.FormatFloat(v, 'e', 3, 64)
	if a := math.Abs(v); v == 0 || a >= 1e-3 && a < 1e5 {
		rounded, _ := strconv.ParseFloat(digits, 64) // of digits that it has printed itself
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(digits, "e")
	mantissa = strings.TrimSuffix(strings.TrimRight(mantissa, "0"), ".")
	power, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%se%d", mantissa, power)
}
