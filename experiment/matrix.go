package experiment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vktrain/vktrain/tasks"
	"github.com/vktrain/vktrain/train"
)

// Matrix is an experiment with every config that it trains, checked.
type Matrix struct {
	*Experiment
	Combinations []Combination
	Runs         []Run // all of the first seed, then all of the next, so that what is finished early can be compared
}

// Combination is a variant of each axis.
type Combination struct {
	ID       string // what its runs' folders begin with
	Variants []int  // by axis
	Config   train.Config
	Baseline int // the combination that it is compared with; -1: none
}

// Run is a combination and a seed.
type Run struct {
	ID          string // of its folder
	Combination int
	Seed        uint64
	Config      train.Config // device is empty
}

const (
	maxRuns   = 10_000
	separator = "_" // of the parts of an ID

	maxID = 200 // bytes of a combination's ID: file systems take names of 255, of which the seed has up to 22
)

// Matrix makes every combination's config. A *train.ConfigError says what cannot be, and where it was written.
func (e *Experiment) Matrix() (*Matrix, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	m := &Matrix{Experiment: e}
	if err := e.checkSize(); err != nil {
		return nil, err
	}
	if err := e.checkSettings(); err != nil {
		return nil, err
	}
	for choice := range e.choices() {
		if !e.keeps(choice) {
			continue
		}
		c := Combination{ID: e.id(choice), Variants: choice, Baseline: -1}
		var err error
		if c.Config, err = e.config(choice); err != nil {
			return nil, err
		}
		m.Combinations = append(m.Combinations, c)
	}
	if len(m.Combinations) == 0 {
		return nil, badf("", "only and exclude leave no combination")
	}
	if err := errors.Join(m.checkDistinct(), m.checkTasks()); err != nil {
		return nil, err
	}
	if err := m.pair(); err != nil {
		return nil, err
	}
	for _, seed := range e.Seeds {
		for i, c := range m.Combinations {
			r := Run{ID: c.ID + separator + "s" + strconv.FormatUint(seed, 10), Combination: i, Seed: seed, Config: c.Config}
			r.Config.Seed = seed
			m.Runs = append(m.Runs, r)
		}
	}
	return m, nil
}

// checkSize refuses more runs than anybody waits for, before they are made.
func (e *Experiment) checkSize() error {
	n := len(e.Seeds)
	for _, a := range e.Axes {
		if n > maxRuns {
			break
		}
		n *= len(a.Variants)
	}
	if n > maxRuns {
		return badf("", "axes: there are over %d runs: take fewer variants or seeds", maxRuns)
	}
	return nil
}

// choices gives each set of one variant an axis, the last axis changing the fastest.
func (e *Experiment) choices() func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		for at := make([]int, len(e.Axes)); ; {
			if !yield(slices.Clone(at)) {
				return
			}
			i := len(at) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < len(e.Axes[i].Variants) {
					break
				}
				at[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// keeps tells whether only and exclude leave a combination.
func (e *Experiment) keeps(choice []int) bool {
	matches := func(p Pattern) bool {
		for i, axis := range p.Axes {
			j, _ := e.axis(axis)
			if !slices.ContainsFunc(p.Any[i], func(name string) bool {
				v, _ := e.Axes[j].variant(name)
				return v == choice[j]
			}) {
				return false
			}
		}
		return true
	}
	return (len(e.Only) == 0 || slices.ContainsFunc(e.Only, matches)) && !slices.ContainsFunc(e.Exclude, matches)
}

// config loads a combination's assignments.
func (e *Experiment) config(choice []int) (train.Config, error) {
	all := slices.Clone(e.Base)
	for i, v := range choice {
		all = append(all, e.Axes[i].Variants[v].Set...)
	}
	c, err := train.Load(all)
	if err != nil {
		err = located(all, err)
		if len(e.Axes) > 0 {
			err = &train.ConfigError{Reason: fmt.Sprintf("%s: %v", e.id(choice), err)}
		}
		return c, err
	}
	c.Device = ""
	return c, nil
}

// located puts before an error that begins with a key where that was set.
func located(all []train.Assignment, err error) error {
	for _, a := range slices.Backward(all) {
		if !strings.HasPrefix(err.Error(), a.Key+": ") {
			continue
		}
		if a.From == "" { // --set: no line of the file is to blame
			return err
		}
		return fmt.Errorf("%s: %w", a.From, err)
	}
	return err
}

// checkSettings refuses keys that are not for an experiment to set, and those that two axes set.
func (e *Experiment) checkSettings() error {
	refused := map[string]string{"seed": "seeds has it", "device": "--devices has it"}
	setBy := map[string]string{}
	check := func(axis string, set []train.Assignment) error {
		for _, a := range set {
			if why := refused[a.Key]; why != "" {
				return badf(a.From, "%s is not for a config here: %s", a.Key, why)
			}
			if other, ok := setBy[a.Key]; ok && axis != "" && other != axis {
				return badf(a.From, "axes %s and %s both set %s: the latter would always win", other, axis, a.Key)
			}
			if axis != "" {
				setBy[a.Key] = axis
			}
		}
		return nil
	}
	if err := check("", e.Base); err != nil {
		return err
	}
	for _, a := range e.Axes {
		for _, v := range a.Variants {
			if err := check(a.Name, v.Set); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDistinct refuses combinations that would train the same, share a folder on a disk that does not tell A from a, or have too long a name for one.
func (m *Matrix) checkDistinct() error {
	ids, configs := map[string]string{}, map[train.Config]string{}
	for _, c := range m.Combinations {
		if len(c.ID) > maxID {
			return badf("", "axes: the name of a combination, %.40s..., has %d bytes, and a folder's may have %d: give variants shorter names", c.ID, len(c.ID), maxID)
		}
		folder := strings.ToLower(c.ID)
		if other, ok := ids[folder]; ok {
			return badf("", "axes: two combinations have one name, %s and %s: name their variants apart", other, c.ID)
		}
		resolved := c.Config.Resolve()
		resolved.Model.Preset = ""
		if other, ok := configs[resolved]; ok {
			return badf("", "axes: %s and %s are the same config: leave one out", other, c.ID)
		}
		ids[folder], configs[resolved] = c.ID, c.ID
	}
	return nil
}

// checkTasks refuses metrics of tasks that no run has.
func (m *Matrix) checkTasks() error {
	var names []string
	for _, c := range m.Combinations {
		for _, path := range c.Config.Tasks.Paths() {
			if name := tasks.NameOf(path); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, metric := range m.Metrics {
		task, isTask := taskOf(metric)
		switch {
		case len(names) == 0 && (isTask || metric == MetricAverage):
			return badf("", "metrics: %s is of tasks, and no run has any: give tasks.files in base", metric)
		case isTask && !slices.Contains(names, task):
			return badf("", "metrics: %s: there is no task %q: %s", metric, task, thereAre(names))
		}
	}
	return nil
}

// pair finds the combination that each is compared with. What paired_with names has to be there for one at least.
func (m *Matrix) pair() error {
	found := len(m.PairedWith) == 0
	with := m.PairedWith
	if len(with) == 0 && len(m.Axes) > 0 {
		with = map[string]string{m.Axes[0].Name: m.Axes[0].Variants[0].Name}
	}
	for i := range m.Combinations {
		base := slices.Clone(m.Combinations[i].Variants)
		for axis, name := range with {
			j, _ := m.axis(axis)
			base[j], _ = m.Axes[j].variant(name)
		}
		j := m.find(base)
		if found = found || j >= 0; j != i {
			m.Combinations[i].Baseline = j
		}
	}
	if !found {
		return badf("", "paired_with: only and exclude leave none of the combinations that it names: keep one, or leave paired_with out")
	}
	return nil
}

// find gives the combination of some variants, or -1.
func (m *Matrix) find(variants []int) int {
	return slices.IndexFunc(m.Combinations, func(c Combination) bool { return slices.Equal(c.Variants, variants) })
}

// id names a combination by its variants, each behind its axis where it would not tell by itself.
func (e *Experiment) id(choice []int) string {
	var parts []string
	for i, v := range choice {
		name := e.Axes[i].Variants[v].Name
		if e.ambiguous(i) {
			axis := e.Axes[i].Name
			name = axis[strings.LastIndexByte(axis, '.')+1:] + "=" + name
		}
		parts = append(parts, fileName(name))
	}
	if len(parts) == 0 {
		return "base"
	}
	return strings.Join(parts, separator)
}

// ambiguous tells axes with numbers or switches for names, or with a name of another axis.
func (e *Experiment) ambiguous(axis int) bool {
	for _, name := range e.Axes[axis].names() {
		if _, err := strconv.ParseFloat(name, 64); err == nil || name == "true" || name == "false" {
			return true
		}
		for i, other := range e.Axes {
			if _, ok := other.variant(name); ok && i != axis {
				return true
			}
		}
	}
	return false
}

// fileName makes a name fit for a path.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit), strings.ContainsRune("._+=-", r):
			return r
		}
		return '-'
	}, s)
	if s = strings.TrimLeft(s, "."); s == "" {
		return "-"
	}
	return s
}

// names gives by axis the variant of a combination.
func (m *Matrix) names(c Combination) map[string]string {
	names := map[string]string{}
	for i, v := range c.Variants {
		names[m.Axes[i].Name] = m.Axes[i].Variants[v].Name
	}
	return names
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
