package conformance

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// diagnosticRows are row counts and lengths.
var diagnosticRows = [][]int{{1, 1}, {7}, {3, 2}, {7, 17}, {5, 63}, {2, 2, 129}, {2, 257}, {3, 4099}, {70001, 2}}

func rowMomentsCases() []opCase {
	var list []opCase
	for _, s := range diagnosticRows {
		rows := graph.Shape(s).Rows()
		c := opCase{name: dims(s...), in: []tensor{f32(s...)}, out: []tensor{f32(rows), f32(rows)}}
		if n := s[len(s)-1]; n == 17 || n == 63 {
			c.special = true
			far := func(by float64) func(in [][]float64, _ *rand.Rand) {
				return func(in [][]float64, _ *rand.Rand) {
					for i := range in[0] {
						in[0][i] += by
					}
				}
			}
			c.extra = append(normExtremes(graph.OpRMSNorm, 0, n),
				variant{name: "rows at 1000", set: far(1000)}, variant{name: "rows at -1e6, a float's half unit away from their mean", set: far(-1e6)},
				variant{name: "rows of 3e37, whose sum may overflow", set: scaleBy(3e37, 0)}, variant{name: "rows of 4e18, whose squares' sum may", set: scaleBy(4e18, 0)},
				variant{name: "rows of 1e-18", set: scaleBy(1e-18, 0)})
		}
		list = append(list, c)
	}
	return list
}

// momentsNum is the mean and the variance. Any shift within the mean's bound may be taken for the mean, so that deviations from it are as much larger; what is
// left of the shift is then subtracted.
func momentsNum(x []num) (mean, variance num) {
	count := float64(len(x))
	mean = sumNum(x...).div(exact(count))
	v, sum, squares, carried := 0.0, 0.0, 0.0, 0.0
	for _, a := range x {
		dev := a.v - mean.v
		most := math.Abs(dev) + mean.e + a.e
		v += dev * dev / count
		sum += most
		squares += most * most
		carried += 2 * a.e * most
	}
	// The sum of squares, its terms rounded three times, over n; and the square of the sum over n, which is at most mean.e but for its own rounding.
	e := carried/count + (count+3+divUnits)*unit*squares/count
	shift := (count + 1 + divUnits) * unit * sum / count
	e += shift * (2*mean.e + shift)
	return mean, result(v, e, 2)
}

func rowMomentsBound(n *graph.Node, in, out [][]num) {
	d := n.In[0].Shape().Last()
	for r := range out[0] {
		x, exp := balanced(in[0][r*d : (r+1)*d])
		mean, variance := momentsNum(x)
		out[0][r], out[1][r] = mean.ldexp(exp), variance.ldexp(2*exp)
	}
}

// outliers are tensors of a few large elements among many, as activations are.
func outliers(r *rand.Rand, x []float64) {
	for i := range x {
		x[i] = r.NormFloat64() * math.Exp(2*r.NormFloat64())
	}
}

func summaryCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		shape     []int
		threshold float32
		minus     bool
	}{{[]int{1}, 0, false}, {[]int{3, 7}, 1.5, false}, {[]int{257}, 0.25, true}, {[]int{5, 13, 31}, 100, false}, {[]int{7, 37}, 2, true}, {[]int{16384}, 2, false},
		{[]int{70001}, 1, false}, {[]int{70001}, 0.5, true}} {
		c := opCase{name: dims(s.shape...), attr: graph.SummaryAttr{Threshold: s.threshold}, in: []tensor{f32(s.shape...).with(outliers), {}}, out: []tensor{f32(graph.SummaryLen)}}
		c.extra = onlyEnds(0)
		if s.minus {
			c.in[1], c.name = f32(s.shape...), c.name+" minus"
		}
		if len(s.shape) > 1 {
			c.special = true
			c.extra = append(c.extra, variant{name: "all negative", set: func(in [][]float64, _ *rand.Rand) {
				for i, v := range in[0] {
					in[0][i] = -1 - math.Abs(v)
				}
			}}, variant{name: "1e30", set: scaleBy(1e30, 0)}, variant{name: "1e-30", set: scaleBy(1e-30, 0)}, variant{name: "elements at the threshold", set: func(in [][]float64, _ *rand.Rand) {
				for i := range in[0] {
					in[0][i] = float64(s.threshold) * float64(1-2*(i%2))
				}
			}}, variant{name: "nothing but NaN", nan: func(in [][]float64) {
				for i := range in[0] {
					in[0][i] = math.Copysign(math.NaN(), float64(1-2*(i%2)))
				}
			}})
		}
		list = append(list, c)
	}
	return list
}

func summaryBound(n *graph.Node, in, out [][]num) {
	threshold := float64(graph.AttrOf[graph.SummaryAttr](n).Threshold)
	y := out[0]
	least, most, magnitude := num{v: math.Inf(1)}, num{v: math.Inf(-1)}, num{}
	for i, x := range in[0] {
		if in[1] != nil {
			x = x.sub(in[1][i])
			in[0][i] = x
		}
		least = num{min(least.v, x.v), max(least.e, x.e)}
		most = num{max(most.v, x.v), max(most.e, x.e)}
		magnitude = num{max(magnitude.v, math.Abs(x.v)), max(magnitude.e, x.e)}
		switch over := !(math.Abs(x.v) <= threshold); {
		case over:
			y[graph.SummaryOver].v++
			fallthrough
		case math.Abs(x.v)+x.e > threshold:
			if math.Abs(x.v)-x.e <= threshold { // subnormal: it may be read as zero
				y[graph.SummaryOver].e++
			}
		}
		if math.IsNaN(x.v) || math.IsInf(x.v, 0) {
			y[graph.SummaryNonFinite].v++
		}
	}
	y[graph.SummarySum], y[graph.SummaryMin], y[graph.SummaryMax], y[graph.SummaryMagnitude] = sumNum(in[0]...), least, most, magnitude
}

func topMagnitudesCases() []opCase {
	var list []opCase
	for _, s := range []struct {
		shape []int
		k     int
	}{{[]int{1}, 1}, {[]int{3, 7}, 100}, {[]int{100}, 100}, {[]int{5, 41}, 7}, {[]int{4096}, 128}, {[]int{3, 4099}, 100}, {[]int{200003}, 127}} {
		c := opCase{name: dims(s.shape...) + " largest " + dims(s.k), attr: graph.TopMagnitudesAttr{K: s.k},
			in: []tensor{f32(s.shape...).with(outliers)}, out: []tensor{f32(s.k)}, extra: onlyEnds(0)}
		if len(s.shape) > 1 {
			c.special = true
			c.extra = append(c.extra, variant{name: "many of one size", set: func(in [][]float64, r *rand.Rand) {
				for i := range in[0] {
					in[0][i] = float64(r.IntN(7) - 3)
				}
			}}, variant{name: "all of one size", set: func(in [][]float64, _ *rand.Rand) {
				for i := range in[0] {
					in[0][i] = float64(1 - 2*(i%2))
				}
			}}, variant{name: "zeros", set: scaleBy(0, 0)}, variant{name: "1e-30", set: scaleBy(1e-30, 0)}, variant{name: "a NaN in three", nan: func(in [][]float64) {
				for i := 0; i < len(in[0]); i += 3 {
					in[0][i] = math.NaN()
				}
			}})
		}
		list = append(list, c)
	}
	return list
}

// topMagnitudesBound: nothing is computed.
func topMagnitudesBound(_ *graph.Node, in, out [][]num) {
	all := make([]num, 0, len(in[0])+len(out[0]))
	for _, x := range in[0] {
		all = append(all, num{math.Abs(x.v), x.e})
	}
	slices.SortFunc(all, func(a, b num) int {
		if math.IsNaN(a.v) || math.IsNaN(b.v) { // first
			return cmp.Compare(a.v, b.v)
		}
		return cmp.Compare(b.v, a.v)
	})
	copy(out[0], append(all, make([]num, len(out[0]))...))
}

func dotsCases() []opCase {
	var list []opCase
	for _, s := range [][]int{{1}, {3, 7}, {257}, {5, 13, 31}, {16384}, {70001}} {
		c := opCase{name: dims(s...), in: []tensor{f32(s...), f32(s...)}, out: []tensor{f32(graph.DotsLen)}, extra: append(onlyEnds(0), onlyEnds(1)...)}
		if len(s) > 1 {
			c.special = true
			c.extra = append(c.extra, variant{name: "1e15", set: scaleBy(1e15, 0)}, variant{name: "1e-15", set: scaleBy(1e-15, 0, 1)}, variant{name: "zeros", set: scaleBy(0, 1)})
		}
		list = append(list, c)
	}
	return list
}

func dotsBound(_ *graph.Node, in, out [][]num) { dotsNum(in[0], in[1], out[0]) }

func dotsNum(u, v, y []num) {
	y[graph.DotsProduct], y[graph.DotsU], y[graph.DotsV] = dotNum(u, v), dotNum(u, u), dotNum(v, v)
}

// adamWStatsCases are those of adamw without a key.
func adamWStatsCases() []opCase {
	var list []opCase
	for _, c := range adamWCases() {
		if c.round != nil {
			continue
		}
		c.in, c.out, c.inPlace = c.in[:6:6], []tensor{f32(graph.DotsLen)}, nil
		list = append(list, c)
	}
	return list
}

func adamWStatsBound(n *graph.Node, in, out [][]num) {
	p, hyper, clip := in[0], in[4], in[5][0]
	decay := exact(float64(graph.AttrOf[graph.AdamWAttr](n).Decay)).mul(hyper[graph.HyperWeightDecay]).mul(hyper[graph.HyperLR])
	update := make([]num, len(p))
	for i := range p {
		if clip.v != 0 {
			_, _, step := adamWStepNum(in, i)
			update[i] = decay.mul(p[i]).add(step).neg()
		}
	}
	dotsNum(update, p, out[0])
}

func rowAngleCases() []opCase {
	var list []opCase
	for _, s := range diagnosticRows {
		c := opCase{name: dims(s...), in: []tensor{f32(s...), f32(s...)}, out: []tensor{f32(graph.Shape(s).Rows())}}
		if n := s[len(s)-1]; n == 17 || n == 63 {
			c.special = true
			c.extra = []variant{
				{name: "rows of zeros", set: scaleBy(0, 1)}, {name: "only rows of zeros", set: scaleBy(0, 0, 1)},
				{name: "rows of 1e15 and 1e-15", set: func(in [][]float64, r *rand.Rand) {
					scaleBy(1e15, 0)(in, r)
					scaleBy(1e-15, 1)(in, r)
				}},
				{name: "rows of 3e37 and 1e-34, whose squares are no numbers", set: func(in [][]float64, r *rand.Rand) {
					scaleBy(3e37, 0)(in, r)
					scaleBy(1e-34, 1)(in, r)
				}},
				{name: "rows of 1e30", set: scaleBy(1e30, 0, 1)},
				{name: "rows of 1e-30", set: scaleBy(1e-30, 0, 1)},
				{name: "a row of 1e30 in one element and 1 in others", set: func(in [][]float64, _ *rand.Rand) {
					for i := 0; i < len(in[0]); i += n {
						in[0][i] = 1e30
					}
				}},
				{name: "equal rows", set: func(in [][]float64, _ *rand.Rand) { copy(in[1], in[0]) }},
				{name: "opposite rows", set: func(in [][]float64, r *rand.Rand) {
					copy(in[1], in[0])
					scaleBy(-3, 1)(in, r)
				}},
				{name: "rows at an angle of about 1e-5", set: func(in [][]float64, _ *rand.Rand) {
					for i, v := range in[1] {
						in[1][i] = in[0][i] + 1e-5*v
					}
				}},
			}
		}
		list = append(list, c)
	}
	return list
}

// directionNum is x/|x|. Every element has the error of |x| in common, so that what it does to a difference of directions is no more than it is.
func directionNum(x []num) (unitVector []num, common float64) {
	unitVector = make([]num, len(x))
	if allZero(x) {
		return unitVector, 0 // zeros are exact
	}
	x, _ = balanced(x)
	norm := dotNum(x, x).sqrt()
	common = exact(1).div(norm).e * norm.v
	for i, v := range x {
		unitVector[i] = result(v.v/norm.v, v.e/norm.v, 1)
	}
	return unitVector, common
}

// lengthNum is the length of x + sign y, each of which may be longer or shorter by a common factor.
func lengthNum(x, y []num, sign, common float64) num {
	squares, errors := 0.0, 0.0
	for i := range x {
		d := x[i].add(num{sign * y[i].v, y[i].e})
		squares += d.v * d.v
		errors += d.e * d.e
	}
	e := math.Sqrt(errors) + common + math.Sqrt(float64(len(x))*flush) // squares may be lost below the smallest number
	return result(math.Sqrt(squares), e, float64(len(x))+divUnits)
}

func rowAngleBound(n *graph.Node, in, out [][]num) {
	d := n.In[0].Shape().Last()
	for r := range out[0] {
		x, ex := directionNum(in[0][r*d : (r+1)*d])
		y, ey := directionNum(in[1][r*d : (r+1)*d])
		apart, along := lengthNum(x, y, -1, ex+ey), lengthNum(x, y, 1, ex+ey)
		square := apart.v*apart.v + along.v*along.v
		if square == 0 {
			out[0][r] = exact(0.5)
			continue
		}
		angle := math.Atan2(apart.v, along.v)
		e := (along.v*apart.e + apart.v*along.e + 2*apart.e*along.e) / square
		out[0][r] = result(2/math.Pi*angle, 2/math.Pi*(e+divUnits*unit*math.Min(angle, 1)), funUnits)
	}
}

func rowNormsCases() []opCase {
	var list []opCase
	for i, s := range diagnosticRows {
		rows, n := graph.Shape(s).Rows(), s[len(s)-1]
		other := func(n int) tensor { return f32(append(s[:len(s)-1:len(s)-1], n)...) }
		c := opCase{name: dims(s...), attr: graph.RowNormsAttr{}, in: []tensor{f32(s...), {}, {}}, out: []tensor{f32(rows)}}
		if i%4 == 1 || i%4 == 3 {
			c.in[1], c.name = other(19), c.name+" times"
		}
		if i%4 == 2 || i%4 == 3 {
			c.in[2], c.name = other(5), c.name+" over"
		}
		if n == 17 || n == 63 {
			c.special = true
			c.extra = append(normExtremes(graph.OpRMSNorm, 0, n), variant{name: "rows of 1e30", set: scaleBy(1e30, 0)}, variant{name: "rows of 1e-36", set: scaleBy(1e-36, 0)},
				variant{name: "a row of 1e30 in one element and 1 in others", set: func(in [][]float64, _ *rand.Rand) {
					for i := 0; i < len(in[0]); i += n {
						in[0][i] = 1e30
					}
				}})
			if !c.in[2].absent() {
				c.extra = append(c.extra, variant{name: "over rows of zeros", set: scaleBy(0, 2)})
			}
			if !c.in[1].absent() && !c.in[2].absent() {
				c.extra = append(c.extra, variant{name: "factors of 1e30 over 1e30", set: scaleBy(1e30, 0, 1, 2)}, variant{name: "factors of 1e-30 over 1e-30", set: scaleBy(1e-30, 0, 1, 2)})
			}
		}
		list = append(list, c)
		if i%2 == 1 || c.special {
			list = append(list, c.centered())
		}
	}
	return list
}

// centered is a case of row_norms without the means, and with rows that lie far from zero.
func (c opCase) centered() opCase {
	c.name, c.attr = c.name+" centered", graph.RowNormsAttr{Centered: true}
	c.extra = append(c.extra[:len(c.extra):len(c.extra)], variant{name: "rows at 1000", set: func(in [][]float64, _ *rand.Rand) {
		for i := range in[0] {
			in[0][i] += 1000
		}
	}})
	return c
}

func rowNormsBound(n *graph.Node, in, out [][]num) {
	row := func(operand, r int) []num {
		d := n.In[operand].Shape().Last()
		return in[operand][r*d : (r+1)*d]
	}
	norm := func(operand, r int) (num, int) {
		if allZero(row(operand, r)) {
			return exact(0), 0
		}
		x, exp := balanced(row(operand, r))
		return dotNum(x, x).sqrt(), exp
	}
	centered := graph.AttrOf[graph.RowNormsAttr](n).Centered
	for r := range out[0] {
		y, exp := norm(0, r)
		if centered {
			var x []num
			x, exp = balanced(row(0, r))
			_, variance := momentsNum(x)
			y = variance.mul(exact(float64(len(x)))).sqrt()
		}
		if in[1] != nil {
			factor, more := norm(1, r)
			y, exp = y.mul(factor), exp+more
		}
		if in[2] != nil {
			divisor, less := norm(2, r)
			if divisor == exact(0) {
				out[0][r] = exact(y.v / 0)
				continue
			}
			y, exp = y.div(divisor), exp-less
		}
		out[0][r] = y.ldexp(exp)
	}
}
