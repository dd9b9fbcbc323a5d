package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/vktrain/vktrain/internal/chart"
	"github.com/vktrain/vktrain/train"
)

// points are a run's y over x.
type points struct{ x, y []float64 }

func (p *points) add(x, y float64) { p.x, p.y = append(p.x, x), append(p.y, y) }

// mostPoints is how many points a curve has at most; the mean of neighbours stands for them where there are more.
const mostPoints = 400

// binned gives the means of so many neighbours, each at its last x.
func (p points) binned(size int) points {
	if size <= 1 {
		return p
	}
	var out points
	for i := 0; i < len(p.x); i += size {
		end, sum := min(i+size, len(p.x)), 0.0
		for _, y := range p.y[i:end] {
			sum += y
		}
		out.add(p.x[end-1], sum/float64(end-i))
	}
	return out
}

// curves draws, of each variant, the mean of its finished runs with a band from the smallest to the largest, and each other run by itself. of may give no
// points.
func curves(all []*variant, bin int, of func(r *Run) points) []chart.Line {
	var lines []chart.Line
	for _, v := range all {
		var finished []points
		for _, r := range v.in(stateFinished) {
			if p := of(r); len(p.x) > 0 {
				finished = append(finished, p.binned(bin))
			}
		}
		if len(finished) > 0 {
			mean := meanOf(finished)
			mean.Name, mean.Key, mean.Style = v.legend(), v.name, v.style
			lines = append(lines, mean)
		}
		for _, r := range v.runs {
			p := of(r).binned(bin)
			if r.state() == stateFinished || len(p.x) == 0 {
				continue
			}
			lines = append(lines, v.single(r, p))
		}
	}
	return lines
}

// legend is the name of the line over the seeds, where some are missing with their number.
func (v *variant) legend() string {
	if n := len(v.in(stateFinished)); n < len(v.runs) && v.short == v.name {
		return fmt.Sprintf("%s (%d of %d seeds)", v.name, n, len(v.runs))
	}
	return v.short
}

// single is the line of a run that is in no mean.
func (v *variant) single(r *Run, p points) chart.Line {
	l := chart.Line{Name: v.short, Key: fmt.Sprintf("%s, seed %d, %s", v.name, r.Seed, r.state()), Style: v.style, X: p.x, Y: p.y, End: chart.SignUnfinished}
	if r.state() == stateDiverged {
		l.End, l.Outlier = chart.SignDiverged, true
	}
	if len(v.in(stateFinished)) > 0 {
		l.Name, l.Style.Thin = "", true
	}
	return l
}

// meanOf is the mean of runs at the x that all have, and the range of more than one.
func meanOf(runs []points) chart.Line {
	at := map[float64][]float64{}
	for _, p := range runs {
		for i, x := range p.x {
			at[x] = append(at[x], p.y[i])
		}
	}
	var l chart.Line
	for _, x := range slices.Sorted(maps.Keys(at)) {
		ys := at[x]
		if len(ys) != len(runs) {
			continue
		}
		sum, low, high := 0.0, math.Inf(1), math.Inf(-1)
		for _, y := range ys {
			sum, low, high = sum+y, math.Min(low, y), math.Max(high, y) // NaN stays
		}
		l.X, l.Y = append(l.X, x), append(l.Y, sum/float64(len(ys)))
		if len(runs) > 1 {
			l.Low, l.High = append(l.Low, low), append(l.High, high)
		}
	}
	return l
}

// byStep takes a number of each line.
func byStep(of func(m train.Metrics) (float64, bool)) func(r *Run) points {
	return func(r *Run) (p points) {
		for _, m := range r.Lines {
			if y, ok := of(m); ok {
				p.add(float64(m.Step), y)
			}
		}
		return p
	}
}

// byDiagnosis takes a number of each diagnosis.
func byDiagnosis(of func(d *train.Diagnosis) (float64, bool)) func(r *Run) points {
	return func(r *Run) (p points) {
		for _, m := range r.diagnosed() {
			if y, ok := of(m.Diagnosis); ok {
				p.add(float64(m.Step), y)
			}
		}
		return p
	}
}

// byLayer takes a number of each layer, the first of which is 1, of the run's diagnosis that pick chooses.
func byLayer(pick pick, of func(l *train.LayerDiagnosis) (float64, bool)) func(r *Run) points {
	return func(r *Run) (p points) {
		d := pick.of(r)
		if d == nil {
			return p
		}
		for i := range d.Diagnosis.Layers {
			if y, ok := of(&d.Diagnosis.Layers[i]); ok {
				p.add(float64(i+1), y)
			}
		}
		return p
	}
}

// pick chooses one of a run's diagnoses.
type pick int

const (
	pickFirst pick = iota
	pickMiddle
	pickLast
)

func (k pick) of(r *Run) *train.Metrics {
	all := r.diagnosed()
	switch {
	case len(all) == 0:
		return nil
	case k == pickFirst:
		return &all[0]
	case k == pickMiddle:
		return &all[len(all)/2]
	}
	return &all[len(all)-1]
}

// differentPicks are those of the picks that choose another step than the ones before, in some run.
func differentPicks(all []*variant, picks ...pick) (list []pick) {
	same := func(a, b pick) bool {
		for _, v := range all {
			for _, r := range v.runs {
				if x := a.of(r); x != nil && x.Step != b.of(r).Step {
					return false
				}
			}
		}
		return true
	}
	for _, k := range picks {
		if !slices.ContainsFunc(list, func(before pick) bool { return same(before, k) }) {
			list = append(list, k)
		}
	}
	return list
}

// title says which step it is; runs may differ in it.
func (k pick) title(all []*variant) string {
	steps := map[int]bool{}
	for _, v := range all {
		for _, r := range v.runs {
			if m := k.of(r); m != nil {
				steps[m.Step] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(steps))
	of := map[pick]string{pickFirst: "first", pickMiddle: "middle", pickLast: "last"}[k] + " diagnosed step"
	switch {
	case len(list) == 1 && k == pickFirst && list[0] == 1:
		return "step 1: at initialisation"
	case len(list) == 1:
		return fmt.Sprintf("step %d", list[0])
	case len(list) > 1:
		return fmt.Sprintf("%s (%d to %d)", of, list[0], list[len(list)-1])
	}
	return of
}

// number unwraps a number of a diagnosis that is always there.
func number(n train.Number) (float64, bool) { return float64(n), true }

// largest is of the finite numbers and infinities; NaN if one of them is.
func largest(all []float64) float64 {
	most := math.Inf(-1)
	for _, x := range all {
		most = math.Max(most, x)
	}
	return most
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

// overLayers takes a number of each layer.
func overLayers(d *train.Diagnosis, of func(l *train.LayerDiagnosis) float64) []float64 {
	var all []float64
	for i := range d.Layers {
		all = append(all, of(&d.Layers[i]))
	}
	return all
}
