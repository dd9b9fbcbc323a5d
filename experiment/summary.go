package experiment

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// ResultsFormat is the version of Results.
const ResultsFormat = 1

// Results is what an experiment came to, as results.json holds it. It follows from the runs' results and the experiment alone. Figures are by the
// name of their metric ([Metrics]); those of a later version or of another program are treated alike.
type Results struct {
	Format       int               `json:"format"`
	Name         string            `json:"name"`
	Question     string            `json:"question,omitempty"`
	Axes         []AxisSummary     `json:"axes"`
	Seeds        []uint64          `json:"seeds"`
	Diverged     string            `json:"diverged"`       // the criterion's name
	Criterion    string            `json:"diverged_means"` // in words
	PairedWith   map[string]string `json:"paired_with"`    // by axis; empty: nothing is compared
	Metrics      []Metric          `json:"metrics"`        // of the table, in its order
	AllMetrics   []Metric          `json:"all_metrics"`    // those that runs have
	Combinations []Summary         `json:"combinations"`   // the last axis changes the fastest
	Runs         []RunSummary      `json:"runs"`           // by combination, then seed
	Differences  []Difference      `json:"differences"`
	Sensitivity  *RateSensitivity  `json:"lr_sensitivity,omitempty"` // where lr is an axis
	Notes        []string          `json:"notes"`                    // what a reader of the figures must know
}

// AxisSummary is an axis.
type AxisSummary struct {
	Name     string           `json:"name"`
	Key      string           `json:"key,omitempty"` // of the config, where the variants are its values
	Variants []VariantSummary `json:"variants"`
}

// VariantSummary is a variant with what it sets.
type VariantSummary struct {
	Name string            `json:"name"`
	Set  map[string]string `json:"set"`
}

// Summary is a combination over its seeds.
type Summary struct {
	ID       string             `json:"id"`
	Variants map[string]string  `json:"variants"` // by axis
	Baseline string             `json:"baseline,omitempty"`
	Params   int                `json:"params"` // of the first seed: a tokenizer may have more or fewer tokens with another
	Runs     int                `json:"runs"`
	Diverged int                `json:"diverged"` // of Runs; none of these is in a figure
	Figures  map[string]*Spread `json:"figures"`
}

// RunSummary is a run.
type RunSummary struct {
	ID       string            `json:"id"` // its folder in runs
	Combined string            `json:"combination"`
	Variants map[string]string `json:"variants"`
	Seed     uint64            `json:"seed"`
	Diverged string            `json:"diverged,omitempty"` // why
	Steps    int               `json:"steps"`
	Tokens   int64             `json:"tokens"`
	Params   int               `json:"params"`
	Vocab    int               `json:"vocab_size"`
	Device   string            `json:"device"`
	Format   string            `json:"precision"`
	Hash     string            `json:"hash"`
	Figures  Figures           `json:"figures"` // of a diverged run up to its end
}

// Summarize makes the results of the runs, which are in the matrix' order.
func (m *Matrix) Summarize(runs []*RunResult) *Results {
	r := &Results{
		Format: ResultsFormat, Name: m.Name, Question: m.Question, Axes: []AxisSummary{}, Seeds: m.Seeds, Diverged: m.Diverged.String(), Criterion: m.Diverged.Sentence(),
		PairedWith: m.pairedWith(), Combinations: []Summary{}, Differences: []Difference{}, Notes: []string{},
	}
	for _, a := range m.Axes {
		r.Axes = append(r.Axes, a.summary())
	}
	runs = m.withTimes(runs)
	byRun := map[[2]uint64]*RunResult{} // by combination and seed
	for i, run := range m.Runs {
		byRun[[2]uint64{uint64(run.Combination), run.Seed}] = runs[i]
	}
	cells := make([][]*RunResult, len(m.Combinations)) // by combination, then seed
	for i := range m.Combinations {
		for _, seed := range m.Seeds {
			cells[i] = append(cells[i], byRun[[2]uint64{uint64(i), seed}])
		}
	}
	r.AllMetrics = present(runs)
	r.Metrics = m.wanted(runs)
	for i, c := range m.Combinations {
		r.Combinations = append(r.Combinations, m.summary(c, cells[i], r.AllMetrics))
		for _, run := range cells[i] {
			r.Runs = append(r.Runs, m.runSummary(c, run))
		}
	}
	for _, metric := range r.AllMetrics {
		for i, c := range m.Combinations {
			if c.Baseline < 0 {
				continue
			}
			x, base := m.values(metric.Name, cells[i]), m.values(metric.Name, cells[c.Baseline])
			if d := difference(metric.Name, c.ID, m.Combinations[c.Baseline].ID, x, base); d != nil {
				r.Differences = append(r.Differences, *d)
			}
		}
	}
	r.Sensitivity = m.sensitivity(cells)
	r.Notes = m.notes(r)
	if note := m.costNote(runs); note != "" {
		r.Notes = append(r.Notes, note)
	}
	r.Notes = append(r.Notes, tasksNotes(runs)...)
	return r
}

// pairedWith is the baseline by axis, the default filled in.
func (m *Matrix) pairedWith() map[string]string {
	if len(m.PairedWith) == 0 && len(m.Axes) > 0 {
		return map[string]string{m.Axes[0].Name: m.Axes[0].Variants[0].Name}
	}
	with := map[string]string{}
	for axis, name := range m.PairedWith {
		i, _ := m.axis(axis)
		j, _ := m.Axes[i].variant(name)
		with[axis] = m.Axes[i].Variants[j].Name
	}
	return with
}

func (a Axis) summary() AxisSummary {
	s := AxisSummary{Name: a.Name, Key: a.Key}
	for _, v := range a.Variants {
		set := map[string]string{}
		for _, assignment := range v.Set {
			set[assignment.Key] = assignment.Value
		}
		s.Variants = append(s.Variants, VariantSummary{v.Name, set})
	}
	return s
}

// present are the metrics that any run has, in the order of Metrics; then those that it does not list, by name.
func present(runs []*RunResult) []Metric {
	there := map[string]bool{}
	for _, r := range runs {
		for name := range r.Figures {
			there[name] = true
		}
	}
	var all []Metric
	for _, m := range metrics {
		if there[m.Name] {
			all = append(all, m)
		}
		delete(there, m.Name)
	}
	for _, name := range sortedKeys(there) {
		metric, err := MetricNamed(name)
		if err != nil {
			metric = Metric{Name: name, Label: name, Format: "%.4g"}
		}
		all = append(all, metric)
	}
	return all
}

// wanted are the metrics of the table. One that names none has those of the runs' tasks too: for each what the average takes, and the average.
func (m *Matrix) wanted(runs []*RunResult) []Metric {
	names := m.Metrics
	if len(names) == 0 {
		names = slices.Clone(DefaultMetrics)
		for _, r := range runs {
			for _, t := range r.Tasks {
				if name := taskMetric(t.Metric, t.Task); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) > len(DefaultMetrics) {
			names = append(names, MetricAverage)
		}
	}
	var all []Metric
	for _, name := range names {
		metric, _ := MetricNamed(name) // checked
		all = append(all, metric)
	}
	return all
}

// values are a figure by seed, NaN where a run diverged or lacks it.
func (m *Matrix) values(metric string, runs []*RunResult) []float64 {
	all := make([]float64, len(runs))
	for i, r := range runs {
		x, ok := r.Figures[metric]
		if !ok || m.Diverged.has(*r) != "" {
			x = math.NaN()
		}
		all[i] = x
	}
	return all
}

func (m *Matrix) summary(c Combination, runs []*RunResult, all []Metric) Summary {
	s := Summary{ID: c.ID, Variants: m.names(c), Params: runs[0].Params, Runs: len(runs), Figures: map[string]*Spread{}}
	if c.Baseline >= 0 {
		s.Baseline = m.Combinations[c.Baseline].ID
	}
	for _, r := range runs {
		if m.Diverged.has(*r) != "" {
			s.Diverged++
		}
	}
	for _, metric := range all {
		x := slices.DeleteFunc(m.values(metric.Name, runs), math.IsNaN)
		if spread := spreadOf(x); spread != nil {
			s.Figures[metric.Name] = spread
		}
	}
	return s
}

func (m *Matrix) runSummary(c Combination, r *RunResult) RunSummary {
	return RunSummary{
		ID: r.ID, Combined: c.ID, Variants: m.names(c), Seed: r.Seed, Diverged: m.Diverged.has(*r), Steps: r.Steps, Tokens: r.Tokens, Params: r.Params, Vocab: r.Vocab,
		Device: r.Device, Format: r.Precision, Hash: r.Hash, Figures: r.Figures,
	}
}

// notes says how the figures are to be read.
func (m *Matrix) notes(r *Results) []string {
	notes := []string{
		counted(len(m.Seeds), "seed") + " a combination. Means are over the seeds whose runs did not diverge (n); ± is the sample standard deviation (the divisor is n - 1).",
		m.Diverged.Sentence() + " Diverged runs are counted, and in no mean or difference.",
	}
	diverged := 0
	for _, s := range r.Combinations {
		diverged += s.Diverged
	}
	if diverged > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d runs diverged: a mean beside a count of them is that of the others alone.", diverged, len(r.Runs)))
	}
	if len(r.Differences) > 0 {
		s := "Differences are paired by the seed"
		if len(m.Seeds) >= leastPairs {
			s += fmt.Sprintf("; in brackets the %.0f%% bootstrap percentile interval of their mean (%d resamples), which with few pairs is too narrow: of 3, 5 and 10 pairs of normal differences it holds the true mean in 74, 84 and 90 of 100 cases.", 100*Confidence, Resamples)
		} else {
			s += fmt.Sprintf("; with under %d pairs no interval means anything, and none is given.", leastPairs)
		}
		notes = append(notes, s)
	}
	least, most := math.MaxInt, 0
	for _, run := range r.Runs {
		least, most = min(least, run.Vocab), max(most, run.Vocab)
	}
	if least != most {
		notes = append(notes, fmt.Sprintf("The runs' tokenizers have %d to %d tokens: between those with different ones compare bits per byte, not nats per token.", least, most))
	}
	for _, x := range []struct {
		what string
		of   func(RunSummary) string
	}{{"devices", func(s RunSummary) string { return s.Device }}, {"precisions", func(s RunSummary) string { return s.Format }}} {
		all := map[string]bool{}
		for _, run := range r.Runs {
			all[x.of(run)] = true
		}
		if len(all) > 1 {
			notes = append(notes, fmt.Sprintf("The runs are of several %s: %s.", x.what, strings.Join(sortedKeys(all), "; ")))
		}
	}
	return notes
}

// tasksNotes say what the runs' tasks are, from the first run that has each; nothing without tasks.
func tasksNotes(runs []*RunResult) []string {
	var seen, parts []string
	for _, r := range runs {
		for _, t := range r.Tasks {
			if slices.Contains(seen, t.Task) {
				continue
			}
			seen = append(seen, t.Task)
			text := fmt.Sprintf("%s: %s, %s, chance %.4f", t.Task, t.Metric, counted(t.N, "document"), t.Chance)
			if t.AccStderr != nil {
				text += fmt.Sprintf(" (with a standard error of %.4f over as many documents)", math.Sqrt(t.Chance*(1-t.Chance)/float64(t.N-1)))
			}
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s is the mean accuracy over the tasks: acc_norm where lm-evaluation-harness has it for the task, else acc. %s. All runs have the same documents.",
		MetricAverage, strings.Join(parts, "; "))}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Write writes results.json and the tables to an experiment's folder, each whole or not at all.
func (r *Results) Write(dir string) error {
	if err := writeJSONFile(filepath.Join(dir, ResultsFile), r); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text func() string
	}{{MarkdownFile, r.Markdown}, {SummaryFile, r.SummaryCSV}, {RunsTableFile, r.RunsCSV}} {
		if err := writeFile(filepath.Join(dir, f.name), []byte(f.text())); err != nil {
			return err
		}
	}
	return nil
}
