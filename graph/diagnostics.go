package graph

// The operators that measure a training step while it runs. No gradient goes through them.

// RowMoments gives each row's mean and variance over its n elements (the divisor is n), by deviations from the mean:
//
//	mean     = 1/n sum x[i]
//	variance = 1/n sum (x[i] - mean)²
//
//	x (..., n), R rows; mean, variance (R)
//
// A backend must give the variance's digits where the mean is far larger than the deviations, and where that is rounded: with a shift c near the mean,
// the variance is mean((x - c)²) - mean(x - c)² (Chan, Golub & LeVeque 1983). Both are right wherever they are float32 numbers, for all finite x: sums over n
// may not overflow before they are divided.
func (b *Builder) RowMoments(x *Value) (mean, variance *Value) {
	wantFloat(OpRowMoments, x)
	rows := x.shape.Rows()
	mean, variance = b.Temp("mean", F32, rows), b.Temp("variance", F32, rows)
	b.node(OpRowMoments, []*Value{x}, []*Value{mean, variance}, nil)
	return mean, variance
}

// The elements of summary's output.
const (
	SummarySum       = iota // of all elements; nothing is promised where that of their magnitudes is over the largest float32
	SummaryMin              // the smallest
	SummaryMax              // the largest
	SummaryMagnitude        // the largest |x|
	SummaryOver             // how many have |x| > Threshold, or are not numbers
	SummaryNonFinite        // how many are infinite or not numbers
	SummaryLen
)

// SummaryAttr is the attribute of summary.
type SummaryAttr struct {
	Threshold float32 // of |x|; 0 or more
}

// Summary gives a few numbers for all of a tensor, or of the difference x - minus: see SummarySum and those after it. A NaN makes the first four of them NaN.
// Counts are exact up to 2^24, and rounded from there on. dst, if not nil, is where they go.
//
//	x (...), minus of its size or nil, y (SummaryLen)
func (b *Builder) Summary(x, minus, dst *Value, threshold float32) *Value {
	wantFloat(OpSummary, x, minus)
	wantElems(OpSummary, x.Elems(), minus)
	if !(threshold >= 0) {
		misuse("summary of %q over a threshold of %g, want 0 or more", x.name, threshold)
	}
	y := b.out(OpSummary, dst, "summary", F32, Shape{SummaryLen})
	b.node(OpSummary, []*Value{x, minus}, []*Value{y}, SummaryAttr{threshold})
	return y
}

// TopMagnitudesMost is the largest K of top_magnitudes.
const TopMagnitudesMost = 128

// TopMagnitudesAttr is the attribute of top_magnitudes.
type TopMagnitudesAttr struct {
	K int // 1 to TopMagnitudesMost
}

// TopMagnitudes gives the k largest |x|, the largest first; a NaN is larger than all numbers. Where x has fewer elements, zeros follow. It computes
// nothing, so that every backend gives the same bits. dst, if not nil, is where they go.
//
//	x (...), y (k)
func (b *Builder) TopMagnitudes(x, dst *Value, k int) *Value {
	wantFloat(OpTopMagnitudes, x)
	if k < 1 || k > TopMagnitudesMost {
		misuse("top_magnitudes: %d of %q, want 1 to %d", k, x.name, TopMagnitudesMost)
	}
	y := b.out(OpTopMagnitudes, dst, "top_magnitudes", F32, Shape{k})
	b.node(OpTopMagnitudes, []*Value{x}, []*Value{y}, TopMagnitudesAttr{k})
	return y
}

// The elements of the output of dots and adamw_stats.
const (
	DotsProduct = iota // u·v
	DotsU              // |u|²
	DotsV              // |v|²
	DotsLen
)

// Dots gives what the angle and the sizes of two tensors follow from: see DotsProduct and those after it. dst, if not nil, is where they go.
//
//	u, v of one size; y (DotsLen)
//
// These are squares in float32. They are right for |u| and |v| below 1.8e19, whose squares are numbers; above, that size is infinite and the product may be. A backend
// may take a product of two elements that is below 1.2e-38, the smallest normal float32, for 0, so that each result is known to that times the number of elements.
func (b *Builder) Dots(u, v, dst *Value) *Value {
	wantFloat(OpDots, u, v)
	wantElems(OpDots, u.Elems(), v)
	y := b.out(OpDots, dst, "dots", F32, Shape{DotsLen})
	b.node(OpDots, []*Value{u, v}, []*Value{y}, nil)
	return y
}

// AdamWStats gives what [Builder.Dots] would of the update that [Builder.AdamW] is about to add to p, weight decay included and before any rounding to p's
// format, and of p:
//
//	update = - lr (decay weight_decay p + (m' / bias1) / (sqrt(v' / bias2) + eps)), m' and v' the moments after it
//
// and 0 where clip is 0. u is the update and v is p; what Dots says of sizes holds for them, and as in AdamW, squares of clip g must be float32 numbers. It reads what AdamW with the same operands writes, so it must be recorded before that. dst, if not nil, is where they go.
//
//	p, m, v, g of one size; hyper (HyperLen); clip (1); y (DotsLen)
func (b *Builder) AdamWStats(p, m, v, g, hyper, clip, dst *Value, attr AdamWAttr) *Value {
	wantFloat(OpAdamWStats, p, m, v, g, hyper, clip)
	wantElems(OpAdamWStats, p.Elems(), m, v, g)
	wantElems(OpAdamWStats, HyperLen, hyper)
	wantElems(OpAdamWStats, 1, clip)
	y := b.out(OpAdamWStats, dst, "adamw_stats", F32, Shape{DotsLen})
	b.node(OpAdamWStats, []*Value{p, m, v, g, hyper, clip}, []*Value{y}, AdamWAttr{Decay: attr.Decay})
	return y
}

// RowAngle gives the angle between each row of x and the same row of y, over pi: 0 where they point in one direction, 1 where in opposite ones (the angular
// distance of layers, Gromov et al. 2024). A row of zeros is at 1/2 from every row, as if the cosine were 0.
//
//	x, y (..., n), R rows; a (R)
//
// It must be right near 0 too, where the arccosine of a float32 near 1 is not: with x̂ = x/|x| and ŷ = y/|y|, a = 2/pi atan2(|x̂ - ŷ|, |x̂ + ŷ|) (Kahan). And it must
// be right for all finite rows, those whose squares are no float32 numbers too; subnormal elements may be read as zeros. It is NaN of rows that are not finite.
func (b *Builder) RowAngle(x, y *Value) *Value {
	wantFloat(OpRowAngle, x, y)
	wantElems(OpRowAngle, x.Elems(), y)
	if x.shape.Last() != y.shape.Last() {
		misuse("row_angle of %q %v and %q %v", x.name, x.shape, y.name, y.shape)
	}
	a := b.Temp("angle", F32, x.shape.Rows())
	b.node(OpRowAngle, []*Value{x, y}, []*Value{a}, nil)
	return a
}

// RowNormsAttr is the attribute of row_norms.
type RowNormsAttr struct {
	Centered bool // the mean of each row of x is taken off it
}

// RowNorms gives each row's euclidean norm, times that of the same row of another tensor and over that of a third, where there are any:
//
//	y = |x| |times| / |over|, or with Centered |x - mean(x)| |times| / |over|
//
// Summed over the rows, with x the hidden activations of an MLP, over its output and times the gradient at the output norm's output, this is what bounds the gradient of the
// MLP's output matrix (Kim et al. 2025, proposition 3.1). It is not finite where over has a row of zeros.
//
//	x (..., n), R rows; times, over of R rows of any length, or nil; y (R)
//
// It is right wherever y is a float32 number, for all finite rows: neither their squares nor the product may overflow or vanish before. Subnormal elements may be
// read as zeros. With Centered, deviations are told as [Builder.RowMoments] does.
func (b *Builder) RowNorms(x, times, over *Value, attr RowNormsAttr) *Value {
	wantFloat(OpRowNorms, x, times, over)
	rows := x.shape.Rows()
	for _, v := range []*Value{times, over} {
		if v != nil && v.shape.Rows() != rows {
			misuse("row_norms of %q %v with %q %v", x.name, x.shape, v.name, v.shape)
		}
	}
	y := b.Temp("row_norms", F32, rows)
	b.node(OpRowNorms, []*Value{x, times, over}, []*Value{y}, attr)
	return y
}
