package experiment

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/vktrain/vktrain/internal/bootstrap"
)

const (
	// Resamples is how many bootstrap samples an interval is of.
	Resamples = bootstrap.Resamples
	// Confidence is that of intervals.
	Confidence = bootstrap.Confidence
	// leastPairs is how many pairs an interval needs: with two there are three means that a resample can have.
	leastPairs = 3
)

// Spread is what a figure is over seeds.
type Spread struct {
	N    int      `json:"n"` // seeds with the figure whose runs did not diverge
	Mean float64  `json:"mean"`
	SD   *float64 `json:"sd,omitempty"` // the sample standard deviation, with the divisor n - 1; nil where n is 1
	Min  float64  `json:"min"`
	Max  float64  `json:"max"`
}

// spreadOf is nil where there is no value.
func spreadOf(x []float64) *Spread {
	if len(x) == 0 {
		return nil
	}
	mean, sd := stat.MeanStdDev(x, nil)
	s := &Spread{N: len(x), Mean: mean, Min: slices.Min(x), Max: slices.Max(x)}
	if len(x) > 1 {
		s.SD = &sd
	}
	return s
}

// Difference is a combination's figure less its baseline's, paired by the seed.
type Difference struct {
	Metric    string    `json:"metric"`
	N         int       `json:"n"`    // pairs
	Lost      int       `json:"lost"` // pairs of which one run or both diverged, or have no such figure
	BySeed    []float64 `json:"by_seed"`
	Mean      float64   `json:"mean"`
	SD        *float64  `json:"sd,omitempty"`       // sample standard deviation of the differences; nil where n is 1
	Interval  *Interval `json:"interval,omitempty"` // of the mean; nil with fewer than 3 pairs, for which none means anything
	Combined  string    `json:"combination"`        // its ID
	Reference string    `json:"baseline"`           // the ID that it is compared with
}

// Interval is a bootstrap percentile interval of a mean (Efron & Tibshirani 1993, chapter 13). With few pairs it is too narrow: simulated with normal
// differences, intervals of 3, 5 and 10 pairs hold the true mean in 74, 84 and 90 of 100 cases, where 95 are meant.
type Interval struct {
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
	Resamples  int     `json:"resamples"`
}

// meanInterval gives the interval of the mean of x, or nil.
func meanInterval(x []float64, names ...string) *Interval {
	if len(x) < leastPairs {
		return nil
	}
	low, high := bootstrap.Interval(x, bootstrap.Mean, names...)
	return &Interval{Low: low, High: high, Confidence: Confidence, Resamples: Resamples}
}

// difference pairs values by their index; NaN is a value that is not there.
func difference(metric, id, baseline string, x, base []float64) *Difference {
	d := &Difference{Metric: metric, Combined: id, Reference: baseline}
	for i := range x {
		if y := x[i] - base[i]; !math.IsNaN(y) {
			d.BySeed = append(d.BySeed, y)
		} else {
			d.Lost++
		}
	}
	s := spreadOf(d.BySeed)
	if s == nil {
		return nil
	}
	d.N, d.Mean, d.SD = s.N, s.Mean, s.SD
	d.Interval = meanInterval(d.BySeed, metric, id, baseline)
	return d
}
