package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/internal/chart"
)

// sweep is variants that differ in the learning rate alone.
type sweep struct {
	name     string
	style    chart.Style
	variants []*variant // in the order of their rates
}

// leastRates is how many learning rates make a curve.
const leastRates = 3

// sweepsOf finds the variants that differ in nothing but the learning rate, where there are enough of them.
func sweepsOf(all []*variant) []*sweep {
	var list []*sweep
	byRest := map[string]*sweep{}
	for _, v := range all {
		r := v.runs[0]
		if r.Config == nil || r.settings == nil {
			continue
		}
		rest := restOf(r)
		if byRest[rest] == nil {
			byRest[rest] = &sweep{}
			list = append(list, byRest[rest])
		}
		byRest[rest].variants = append(byRest[rest].variants, v)
	}
	list = slices.DeleteFunc(list, func(s *sweep) bool { return len(s.variants) < leastRates })
	for i, s := range list {
		slices.SortFunc(s.variants, func(a, b *variant) int {
			return int(math.Copysign(1, a.runs[0].Config.LR-b.runs[0].Config.LR))
		})
		s.name = withoutRate(s.variants[0])
		s.style = chart.StyleOf(i)
		if p := slices.Index(placements, s.variants[0].runs[0].Config.Model.Placement); distinctPlacements(list) {
			s.style = chart.StyleOf(max(p, 0))
		}
	}
	return list
}

func distinctPlacements(list []*sweep) bool {
	seen := map[string]bool{}
	for _, s := range list {
		p := s.variants[0].runs[0].Config.Model.Placement
		if seen[p] || !slices.Contains(placements, p) {
			return false
		}
		seen[p] = true
	}
	return true
}

// restOf is a run's settings but for the rate, what follows from it, and what makes no variant.
func restOf(r *Run) string {
	var parts []string
	for k, v := range r.settings {
		if k != "lr" && k != "min_lr" && !slices.Contains(notVariants, k) {
			parts = append(parts, k+"="+v)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// withoutRate is a variant's name without the part that gives the rate.
func withoutRate(v *variant) string {
	lr := fmt.Sprintf("%g", v.runs[0].Config.LR)
	var kept []string
	for _, part := range strings.FieldsFunc(v.name, func(r rune) bool {
		return r == ',' || r == '_' && strings.Contains(v.name, "lr=") && !strings.Contains(v.name, ", ")
	}) {
		if part = strings.TrimSpace(part); !strings.HasPrefix(part, "lr=") && part != lr {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return v.runs[0].Config.Model.Placement
	}
	return strings.Join(kept, ", ")
}

// shadeSweeps gives the variants of a sweep the sweep's colour, the darker the higher the rate.
func shadeSweeps(all []*variant) {
	for _, s := range sweepsOf(all) {
		for i, v := range s.variants {
			v.style = s.style.Shade(2*float64(i)/float64(len(s.variants)-1) - 1)
		}
	}
}

// outcome is a run's loss as the sensitivity takes it: the last validation loss, or the training loss where there is none, but at most initial, the loss before
// training, which stands for a run that diverged too.
func outcome(r *Run) (loss, initial float64, ok bool) {
	if len(r.Lines) == 0 || r.state() == stateUnfinished {
		return 0, 0, false
	}
	initial = r.Lines[0].Loss
	if loss = r.finalLoss(); math.IsNaN(loss) {
		loss = r.Lines[len(r.Lines)-1].Loss
	}
	if r.state() == stateDiverged || !(loss < initial) {
		loss = initial
	}
	return loss, initial, finite(initial)
}

// sensitivity is the mean over the rates of min(loss, loss at initialisation) - the best loss (Wortsman et al. 2023), a rate's loss being the mean over
// its seeds.
func (s *sweep) sensitivity() (sensitivity, best, bestRate float64, ok bool) {
	var losses []float64
	best = math.Inf(1)
	for _, v := range s.variants {
		var list []float64
		for _, r := range v.runs {
			if loss, _, ok := outcome(r); ok {
				list = append(list, loss)
			}
		}
		if len(list) == 0 {
			return 0, 0, 0, false
		}
		loss := mean(list)
		losses = append(losses, loss)
		if loss < best {
			best, bestRate = loss, v.runs[0].Config.LR
		}
	}
	return mean(losses) - best, best, bestRate, true
}

func sweepFigure(all []*variant) figure {
	f := figure{name: "lr-sweep", title: "Final loss against the learning rate",
		text: "The validation loss after the last step, or the training loss at initialisation where a run diverged or ended above it. Sensitivity is the mean over the rates of min(loss, loss at initialisation) less the best loss " +
			"(Wortsman et al. 2023); it says little of a variant that trains nowhere, so that the best loss stands beside it."}
	var lines, crosses []chart.Line
	for _, s := range sweepsOf(all) {
		line := chart.Line{Key: s.name, Style: s.style, Points: true}
		several := false
		for _, v := range s.variants {
			var list []float64
			x := v.runs[0].Config.LR
			for _, r := range v.runs {
				loss, _, ok := outcome(r)
				if !ok {
					continue
				}
				list = append(list, loss)
				if r.state() == stateDiverged {
					crosses = append(crosses, chart.Line{Key: s.name + ", diverged", Style: s.style, X: []float64{x}, Y: []float64{loss}, End: chart.SignDiverged})
				}
			}
			if len(list) == 0 {
				list = []float64{math.NaN()}
			}
			several = several || len(list) > 1
			line.X, line.Y = append(line.X, x), append(line.Y, mean(list))
			line.Low, line.High = append(line.Low, slices.Min(list)), append(line.High, slices.Max(list))
		}
		if !several {
			line.Low, line.High = nil, nil
		}
		line.Name = s.name
		if sens, best, rate, ok := s.sensitivity(); ok {
			line.Name += fmt.Sprintf(": sensitivity %.3f, best loss %.3f at %s", sens, best, chart.Short(rate))
		}
		lines = append(lines, line)
	}
	f.chart.Panels = []chart.Panel{panel("", chart.Axis{Label: "peak learning rate", Key: "lr", Log: true}, lossAxis, append(lines, crosses...))}
	return orMissing(f, fmt.Sprintf("No variant was trained with %d learning rates or more.", leastRates))
}
