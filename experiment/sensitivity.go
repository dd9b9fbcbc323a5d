package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/vktrain/vktrain/train"
)

// RateKey is the config's key whose axis makes an experiment a sweep.
const RateKey = "lr"

// WortsmanRates is the grid of Wortsman et al. 2023 (arXiv 2309.14322): half decades from 3e-4 to 0.3.
var WortsmanRates = []string{"3e-4", "1e-3", "3e-3", "1e-2", "3e-2", "1e-1", "3e-1"}

// RateAxis is the axis of a sweep.
func RateAxis(rates []string) Axis {
	a := Axis{Name: RateKey, Key: RateKey}
	for _, r := range rates {
		r = strings.TrimSpace(r)
		a.Variants = append(a.Variants, Variant{r, []train.Assignment{{Key: RateKey, Value: r}}})
	}
	return a
}

// HasRates tells whether an experiment has an axis of learning rates.
func (e *Experiment) HasRates() bool { return e.rateAxis() >= 0 }

// rateAxis is -1 where there is none.
func (e *Experiment) rateAxis() int {
	return slices.IndexFunc(e.Axes, func(a Axis) bool { return a.Key == RateKey })
}

// RateSensitivity is how much the final validation loss depends on the learning rate (Wortsman et al. 2023, section 2.2), by the combinations of the
// other axes.
type RateSensitivity struct {
	Text  string     `json:"text"`  // the definition
	Rates []float64  `json:"rates"` // upwards
	Rows  []RateRow  `json:"rows"`
	Pairs []RatePair `json:"pairs"` // against the baseline
}

// RateRow is one combination of the other axes.
type RateRow struct {
	ID       string            `json:"id"`
	Variants map[string]string `json:"variants"`
	Cells    []RateCell        `json:"cells"` // by rate; those that were left out are absent
	BySeed   []SeedSensitivity `json:"by_seed"`

	Sensitivity *Spread `json:"sensitivity"` // over seeds
	Best        *Spread `json:"best_loss"`
}

// RateCell is one learning rate over the seeds.
type RateCell struct {
	Rate     float64 `json:"lr"`
	Runs     int     `json:"runs"`
	Diverged int     `json:"diverged"`
	Loss     *Spread `json:"loss"` // min(final validation loss, loss at initialisation): of diverged runs the latter
}

// SeedSensitivity is of one seed's runs.
type SeedSensitivity struct {
	Seed        uint64  `json:"seed"`
	Sensitivity float64 `json:"sensitivity"`
	BestLoss    float64 `json:"best_loss"`
	BestRate    float64 `json:"best_lr"`
}

// RatePair compares a combination's sensitivity and best loss with its baseline's.
type RatePair struct {
	Sensitivity *Difference `json:"sensitivity"`
	Best        *Difference `json:"best_loss"`
}

const sensitivityText = "LR sensitivity: the mean over the learning rates of min(final validation loss, loss at initialisation) less the lowest of these, by seed " +
	"(Wortsman et al. 2023). A run that diverged counts as the loss at initialisation. A model that never learns has a low sensitivity too: look at the best loss beside it."

// capped is a run's loss as sensitivity takes it.
func (c Criterion) capped(r *RunResult) float64 {
	initial, ok := r.Figures[metricInitialLoss]
	val, finite := r.Figures[MetricValLoss]
	switch {
	case !ok:
		return math.NaN()
	case !finite || c.has(*r) != "":
		return initial
	}
	return min(val, initial)
}

// sensitivity is nil for an experiment without an axis of rates.
func (m *Matrix) sensitivity(cells [][]*RunResult) *RateSensitivity {
	axis := m.rateAxis()
	if axis < 0 {
		return nil
	}
	s := &RateSensitivity{Text: sensitivityText, Pairs: []RatePair{}}
	var order []int // variants of the axis, by their rate
	for i, v := range m.Axes[axis].Variants {
		order = append(order, i)
		rate, _ := strconv.ParseFloat(v.Name, 64) // of a config that was loaded
		s.Rates = append(s.Rates, rate)
	}
	slices.SortFunc(order, func(a, b int) int { return compare(s.Rates[a], s.Rates[b]) })
	slices.Sort(s.Rates)
	rows := map[string]int{}
	for _, c := range m.Combinations {
		rest := m.without(axis, c)
		if _, ok := rows[rest]; !ok {
			rows[rest] = len(s.Rows)
			s.Rows = append(s.Rows, m.rateRow(axis, order, s.Rates, c, cells))
		}
	}
	for _, c := range m.Combinations {
		if c.Baseline < 0 || m.Combinations[c.Baseline].Variants[axis] != c.Variants[axis] {
			continue
		}
		i, base := rows[m.without(axis, c)], rows[m.without(axis, m.Combinations[c.Baseline])]
		if row := s.Rows[i]; !slices.ContainsFunc(s.Pairs, func(p RatePair) bool { return p.Sensitivity.Combined == row.ID }) {
			if p := pairRows(row, s.Rows[base]); p != nil {
				s.Pairs = append(s.Pairs, *p)
			}
		}
	}
	return s
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// without names the combination of the other axes.
func (m *Matrix) without(axis int, c Combination) string {
	return fmt.Sprint(slices.Delete(slices.Clone(c.Variants), axis, axis+1))
}

// rateRow is of the combinations that differ from c in the learning rate alone.
func (m *Matrix) rateRow(axis int, order []int, rates []float64, c Combination, cells [][]*RunResult) RateRow {
	variants := m.names(c)
	delete(variants, m.Axes[axis].Name)
	row := RateRow{ID: m.restID(axis, c), Variants: variants}
	var losses [][]float64 // by rate, then seed
	var there []float64
	for k, v := range order {
		at := slices.Clone(c.Variants)
		at[axis] = v
		i := m.find(at)
		if i < 0 {
			continue
		}
		cell := RateCell{Rate: rates[k], Runs: len(cells[i])}
		var of []float64
		for _, r := range cells[i] {
			of = append(of, m.Diverged.capped(r))
			if m.Diverged.has(*r) != "" {
				cell.Diverged++
			}
		}
		cell.Loss = spreadOf(slices.DeleteFunc(slices.Clone(of), math.IsNaN))
		row.Cells, losses, there = append(row.Cells, cell), append(losses, of), append(there, rates[k])
	}
	var all, best []float64
	for i, seed := range m.Seeds {
		column := make([]float64, len(losses))
		for k := range losses {
			column[k] = losses[k][i]
		}
		at, s := sensitivityOf(column)
		if math.IsNaN(s) {
			continue
		}
		row.BySeed = append(row.BySeed, SeedSensitivity{seed, s, column[at], there[at]})
		all, best = append(all, s), append(best, column[at])
	}
	row.Sensitivity, row.Best = spreadOf(all), spreadOf(best)
	return row
}

// sensitivityOf is the mean of capped losses less the lowest, which is at best. NaN where a loss is.
func sensitivityOf(losses []float64) (best int, s float64) {
	for i, x := range losses {
		if math.IsNaN(x) {
			return 0, x
		}
		if x < losses[best] {
			best = i
		}
	}
	return best, stat.Mean(losses, nil) - losses[best]
}

// restID names a row by the other axes' variants.
func (m *Matrix) restID(axis int, c Combination) string {
	rest := &Experiment{Axes: slices.Delete(slices.Clone(m.Axes), axis, axis+1)}
	return rest.id(slices.Delete(slices.Clone(c.Variants), axis, axis+1))
}

// pairRows compares the seeds that both have.
func pairRows(row, base RateRow) *RatePair {
	sameSeeds := slices.EqualFunc(row.BySeed, base.BySeed, func(a, b SeedSensitivity) bool { return a.Seed == b.Seed })
	if !sameSeeds || len(row.BySeed) == 0 {
		return nil
	}
	columns := func(of func(SeedSensitivity) float64) (x, y []float64) {
		for i := range row.BySeed {
			x, y = append(x, of(row.BySeed[i])), append(y, of(base.BySeed[i]))
		}
		return x, y
	}
	x, y := columns(func(s SeedSensitivity) float64 { return s.Sensitivity })
	p := &RatePair{Sensitivity: difference("lr_sensitivity", row.ID, base.ID, x, y)}
	x, y = columns(func(s SeedSensitivity) float64 { return s.BestLoss })
	p.Best = difference("best_lr_loss", row.ID, base.ID, x, y)
	return p
}
