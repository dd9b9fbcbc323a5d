package report

import (
	"math"

	"github.com/vktrain/vktrain/internal/chart"
)

// floor is the entropy of a run's validation text, where its source is known: the built-in stories'; NaN where it is not.
func (r *Run) floor() float64 {
	for _, m := range r.Lines {
		if m.Evaluated && m.ValFloor > 0 {
			return m.ValFloor
		}
	}
	if r.resultFloor > 0 {
		return r.resultFloor
	}
	return math.NaN()
}

// sameFloor is by how much floors of variants may differ, as a share, and be one line: texts of other seeds differ by as much.
const sameFloor = 0.02

// floorLevels are the floor of the runs' loss, or the lowest and the highest of the variants' where these have texts of their own, and words for it; none
// where no run's is known.
func floorLevels(all []*variant) (levels []chart.Level, words string) {
	low, high := math.Inf(1), math.Inf(-1)
	var means []float64
	for _, v := range all {
		var list []float64
		for _, r := range v.runs {
			if x := r.floor(); finite(x) {
				list = append(list, x)
			}
		}
		if len(list) > 0 {
			m := mean(list)
			means, low, high = append(means, m), math.Min(low, m), math.Max(high, m)
		}
	}
	const text = " The floor is the entropy of the validation text, which is known exactly for the built-in stories"
	switch {
	case len(means) == 0:
		return nil, ""
	case high-low <= sameFloor*low:
		return []chart.Level{{Name: "floor: no model can be lower", At: mean(means)}}, text + ": no model can have less on average."
	}
	return []chart.Level{{Name: "lowest floor of a variant", At: low}, {Name: "highest floor of a variant", At: high}}, text + "; the variants' texts differ."
}
