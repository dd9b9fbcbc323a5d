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
// the variance is mean((x - c)²) - mean(x - c)² (Chan, Golub & LeVeque 1983).
func (b *Builder) RowMoments(x *Value) (mean, variance *Value) {
	wantFloat(OpRowMoments, x)
	rows := x.shape.Rows()
	mean, variance = b.Temp("mean", F32, rows), b.Temp("variance", F32, rows)
	b.node(OpRowMoments, []*Value{x}, []*Value{mean, variance}, nil)
	return mean, variance
}

// The elements of summary's output.
const (
	SummarySum       = iota // of all elements
	SummaryMin              // the smallest
	SummaryMax              // the largest
	SummaryMagnitude        // the largest |x|
	SummaryOver             // how many have |x| > Threshold; an infinity has, a NaN has not
	SummaryNonFinite        // how many are infinite or not numbers
	SummaryLen
)

// SummaryAttr is the attribute of summary.
type SummaryAttr struct {
	Threshold float32 // of |x|; 0 or more
}

// Summary gives a few numbers for all of a tensor: see SummarySum and those after it. A NaN in x makes the first four of them NaN. Counts are exact up to 2^24, and
// rounded from there on. dst, if not nil, is where they go.
//
//	x (...), y (SummaryLen)
func (b *Builder) Summary(x, dst *Value, threshold float32) *Value {
	wantFloat(OpSummary, x)
	if !(threshold >= 0) {
		misuse("summary of %q over a threshold of %g, want 0 or more", x.name, threshold)
	}
	y := b.out(OpSummary, dst, "summary", F32, Shape{SummaryLen})
	b.node(OpSummary, []*Value{x}, []*Value{y}, SummaryAttr{threshold})
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
