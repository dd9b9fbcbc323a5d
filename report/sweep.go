package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/experiment"
	"github.com/vktrain/vktrain/internal/chart"
)

// sweep is variants that differ in the learning rate alone.
type sweep struct {
	name     string
	style    chart.Style
	variants []*variant          // in the order of their rates
	row      *experiment.RateRow // what the experiment says of it; nil without one
}

// leastRates is how many learning rates make a curve.
const leastRates = 3

// sweepsOf finds the variants that differ in nothing but the learning rate, where there are enough of them.
func sweepsOf(all []*variant, results *experiment.Results) []*sweep {
	var list []*sweep
	byRest := map[string]*sweep{}
	for _, v := range all {
		r := v.runs[0]
		if r.Config == nil || r.settings == nil {
			continue
		}
		rest := restOf(r, "lr", "min_lr")
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
		if s.row = rateRow(results, s.variants[0]); s.row != nil {
			s.name = s.row.ID
		} else {
			s.name = withoutRate(s.variants[0])
		}
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

// restOf is a run's settings but for some, and for what makes no variant.
func restOf(r *Run, but ...string) string {
	var parts []string
	for k, v := range r.settings {
		if !slices.Contains(but, k) && !slices.Contains(notVariants, k) {
			parts = append(parts, k+"="+v)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// withoutRate is a variant's name, as nameVariants gives it, without the part that gives the rate.
func withoutRate(v *variant) string {
	var kept []string
	for _, part := range strings.Split(v.name, ", ") {
		if !strings.HasPrefix(part, "lr=") {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return v.runs[0].Config.Model.Placement
	}
	return strings.Join(kept, ", ")
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

// rate is a learning rate's loss over the seeds.
type rate struct {
	lr, loss, low, high float64
	diverged            int
	initial             float64 // of a run that diverged
}

// rates are the points of the curve: the experiment's where there is one.
func (s *sweep) rates() []rate {
	var all []rate
	if s.row != nil {
		for _, c := range s.row.Cells {
			r := rate{lr: c.Rate, loss: math.NaN(), low: math.NaN(), high: math.NaN(), diverged: c.Diverged}
			if c.Loss != nil {
				r.loss, r.low, r.high, r.initial = c.Loss.Mean, c.Loss.Min, c.Loss.Max, c.Loss.Max
			}
			all = append(all, r)
		}
		return all
	}
	for _, v := range s.variants {
		r := rate{lr: v.runs[0].Config.LR, loss: math.NaN(), low: math.NaN(), high: math.NaN()}
		var list []float64
		for _, run := range v.runs {
			loss, initial, ok := outcome(run)
			if !ok {
				continue
			}
			list = append(list, loss)
			if run.state() == stateDiverged {
				r.diverged, r.initial = r.diverged+1, initial
			}
		}
		if len(list) > 0 {
			r.loss, r.low, r.high = mean(list), slices.Min(list), slices.Max(list)
		}
		all = append(all, r)
	}
	return all
}

// sensitivity is the mean over the rates of min(loss, loss at initialisation) - the best loss (Wortsman et al. 2023): the experiment's, which takes it by seed,
// or else of the losses' means over seeds.
func (s *sweep) sensitivity() (sensitivity, best, bestRate float64, ok bool) {
	var losses []float64
	best = math.Inf(1)
	for _, r := range s.rates() {
		if losses = append(losses, r.loss); r.loss < best {
			best, bestRate = r.loss, r.lr
		}
	}
	if s.row != nil && s.row.Sensitivity != nil && s.row.Best != nil {
		return s.row.Sensitivity.Mean, s.row.Best.Mean, bestRate, true
	}
	sensitivity = mean(losses) - best
	return sensitivity, best, bestRate, finite(sensitivity)
}

func sweepFigure(sweeps []*sweep) figure {
	f := figure{name: "lr-sweep", title: "Final loss against the learning rate",
		text: "The validation loss after the last step, or the loss at initialisation where a run diverged (a cross) or ended above it; lines are means over the seeds. Sensitivity is the mean over the rates of " +
			"min(loss, loss at initialisation) less the best loss (Wortsman et al. 2023); it says little of a variant that trains nowhere, so that the best loss stands beside it."}
	var lines, crosses []chart.Line
	for _, s := range sweeps {
		line := chart.Line{Name: s.name, Key: s.name, Style: s.style, Points: true}
		several := false
		for _, r := range s.rates() {
			line.X, line.Y, line.Low, line.High = append(line.X, r.lr), append(line.Y, r.loss), append(line.Low, r.low), append(line.High, r.high)
			several = several || r.low < r.high
			if r.diverged > 0 {
				crosses = append(crosses, chart.Line{Key: s.name + ", diverged", Style: s.style, X: []float64{r.lr}, Y: []float64{r.initial}, End: chart.SignDiverged})
			}
		}
		if !several {
			line.Low, line.High = nil, nil
		}
		if sens, best, lr, ok := s.sensitivity(); ok {
			line.Name += fmt.Sprintf(": sensitivity %.3f, best loss %.3f at %s", sens, best, chart.Short(lr))
		}
		lines = append(lines, line)
	}
	return f.only(chart.Axis{Label: "peak learning rate", Key: "lr", Log: true}, lossAxis, append(lines, crosses...), fmt.Sprintf("No variant was trained with %d learning rates or more.", leastRates))
}
