package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vktrain/vktrain/train"
)

// Experiment is what a file asks for. [Read] makes one, or fill it in and call [Experiment.Matrix].
type Experiment struct {
	Name     string
	Question string // a sentence; may be empty
	Base     []train.Assignment
	Axes     []Axis    // none: the base alone
	Only     []Pattern // combinations that match none of these are left out; empty: all stay
	Exclude  []Pattern // combinations that match one of these are left out
	Seeds    []uint64

	Diverged    Criterion         // the zero value is AboveInitial
	PairedWith  map[string]string // by axis the variant that others are compared with; empty: the first axis' first
	Metrics     []string          // of the table; empty: DefaultMetrics
	Checkpoints bool              // runs leave their models
	Cost        int               // turns in which a step of each combination is timed after the runs (CostFile), and their own times are figures; 0: neither

	Source []byte // the file, for the record; may be nil
}

// Axis is one thing that varies.
type Axis struct {
	Name     string
	Key      string // of the config, where the variants are its values; else empty
	Variants []Variant
}

// Variant is a point on an axis.
type Variant struct {
	Name string
	Set  []train.Assignment // over the base; none leaves it as it is
}

// Pattern matches combinations that have one of the named variants on each of its axes.
type Pattern struct {
	Axes []string
	Any  [][]string // by axis
	From string     // where it was written, for errors
}

// axis finds an axis by its name.
func (e *Experiment) axis(name string) (int, bool) {
	i := slices.IndexFunc(e.Axes, func(a Axis) bool { return a.Name == name })
	return i, i >= 0
}

// variant finds a variant by its name, or by another way to write the same number.
func (a Axis) variant(name string) (int, bool) {
	for i, v := range a.Variants {
		if v.Name == name {
			return i, true
		}
	}
	if x, err := strconv.ParseFloat(name, 64); err == nil {
		for i, v := range a.Variants {
			if y, err := strconv.ParseFloat(v.Name, 64); err == nil && x == y {
				return i, true
			}
		}
	}
	return 0, false
}

func (a Axis) names() []string {
	var names []string
	for _, v := range a.Variants {
		names = append(names, v.Name)
	}
	return names
}

func (e *Experiment) axisNames() []string {
	var names []string
	for _, a := range e.Axes {
		names = append(names, a.Name)
	}
	return names
}

// AxisThatSets names the axis that sets a key in each of its variants, so that what Base has for it never counts; empty if there is none.
func (e *Experiment) AxisThatSets(key string) string {
	sets := func(v Variant) bool {
		return slices.ContainsFunc(v.Set, func(a train.Assignment) bool { return a.Key == key })
	}
	for _, a := range e.Axes {
		if !slices.ContainsFunc(a.Variants, func(v Variant) bool { return !sets(v) }) {
			return a.Name
		}
	}
	return ""
}

// CountSeeds are 1 to n.
func CountSeeds(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	return seeds
}

// Criterion says which runs have diverged. A loss or gradient that is not finite always has.
type Criterion struct {
	NonFinite bool    // that alone counts
	Above     float64 // a final validation loss over this has diverged too, in nats per token; 0 with NonFinite false: over the loss at initialisation
}

// Names of criteria in files; a number is another.
const (
	criterionAboveInitial = "above_initial"
	criterionNonFinite    = "non_finite"
)

// ParseCriterion reads above_initial, non_finite or a loss.
func ParseCriterion(s string) (Criterion, error) {
	switch s {
	case criterionAboveInitial:
		return Criterion{}, nil
	case criterionNonFinite:
		return Criterion{NonFinite: true}, nil
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil && x > 0 {
		return Criterion{Above: x}, nil
	}
	return Criterion{}, fmt.Errorf("%q is no criterion: use %s, %s, or a loss such as 5", s, criterionAboveInitial, criterionNonFinite)
}

// String is what ParseCriterion reads.
func (c Criterion) String() string {
	switch {
	case c.NonFinite:
		return criterionNonFinite
	case c.Above > 0:
		return strconv.FormatFloat(c.Above, 'g', -1, 64)
	}
	return criterionAboveInitial
}

// Sentence says it in words.
func (c Criterion) Sentence() string {
	const s = "A run has diverged if its loss or gradient was not finite"
	switch {
	case c.NonFinite:
		return s + "."
	case c.Above > 0:
		return fmt.Sprintf("%s, or its final validation loss is over %g.", s, c.Above)
	}
	return s + ", or its final validation loss is over the one at its initialisation."
}

// has says why a run has diverged, or nothing.
func (c Criterion) has(r RunResult) string {
	if r.Broken != nil {
		return fmt.Sprintf("%s at step %d", r.Broken.What, r.Broken.Step)
	}
	val, limit := r.Figures[MetricValLoss], r.Figures[metricInitialLoss]
	if c.Above > 0 {
		limit = c.Above
	}
	if !c.NonFinite && val > limit {
		return fmt.Sprintf("the final validation loss %.4g is over %.4g", val, limit)
	}
	return ""
}

// check finds what is wrong but for the configs.
func (e *Experiment) check() error {
	switch {
	case strings.TrimSpace(e.Name) == "":
		return badf("", "name: it is empty: give the experiment a name")
	case strings.ContainsAny(e.Name, `/\`) || e.Name == "." || e.Name == "..":
		return badf("", `name: %q is no name for a folder: leave / and \ out`, e.Name)
	case len(e.Seeds) == 0:
		return badf("", "seeds: there is none: give a count such as 3, or a list")
	}
	for i, s := range e.Seeds {
		if slices.Contains(e.Seeds[:i], s) {
			return badf("", "seeds: %d is there twice", s)
		}
	}
	for i, a := range e.Axes {
		if len(a.Variants) == 0 {
			return badf("", "axes: %s has no variant: give at least one", a.Name)
		}
		if j, _ := e.axis(a.Name); j != i {
			return badf("", "axes: %s is there twice", a.Name)
		}
		for j, v := range a.Variants {
			if k, _ := a.variant(v.Name); k != j {
				return badf("", "axes: %s has %s twice", a.Name, v.Name)
			}
		}
	}
	for i, name := range e.Metrics {
		if slices.Contains(e.Metrics[:i], name) {
			return badf("", "metrics: %s is there twice", name)
		}
		if _, err := MetricNamed(name); err != nil {
			return badf("", "metrics: %v", err)
		}
	}
	if err := e.checkCost(); err != nil {
		return err
	}
	return e.checkNames()
}

// checkNames checks axes and variants that are spoken of.
func (e *Experiment) checkNames() error {
	known := func(at, what, axis string, variants ...string) error {
		i, ok := e.axis(axis)
		if !ok {
			return badf(at, "%s: there is no axis %q: %s", what, axis, thereAre(e.axisNames()))
		}
		for _, v := range variants {
			if _, ok := e.Axes[i].variant(v); !ok {
				return badf(at, "%s: axis %s has no variant %q: %s", what, axis, v, thereAre(e.Axes[i].names()))
			}
		}
		return nil
	}
	for what, patterns := range map[string][]Pattern{"only": e.Only, "exclude": e.Exclude} {
		for _, p := range patterns {
			for i, axis := range p.Axes {
				if err := known(p.From, what, axis, p.Any[i]...); err != nil {
					return err
				}
			}
		}
	}
	for _, axis := range sortedKeys(e.PairedWith) {
		if err := known("", "paired_with", axis, e.PairedWith[axis]); err != nil {
			return err
		}
	}
	return nil
}

func thereAre(names []string) string {
	if len(names) == 0 {
		return "there is none"
	}
	return "there are " + strings.Join(names, ", ")
}

// badf is an error of what was asked for; from is where, or empty.
func badf(from, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if from != "" {
		reason = from + ": " + reason
	}
	return &train.ConfigError{Reason: reason}
}
