package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/experiment"
	"github.com/vktrain/vktrain/train"
)

// Run is a training run as a report takes it.
type Run struct {
	Dir      string
	Variant  string // runs of one variant differ in their seed alone; empty: found out from the configs
	Seed     uint64
	Config   *train.Config // nil if there is none that can be read
	Lines    []train.Metrics
	Diverged string   // why the run counts as diverged; empty: it has not
	Notes    []string // what was wrong with its files

	settings    map[string]string  // the config's keys
	device      string             // of an experiment's run; else empty
	figures     experiment.Figures // of an experiment's run; else nil
	resultFloor float64            // of the validation text, as an experiment's results tell it; 0: not known
	choices     []choice           // what makes it its variant, by axis; nil: that is not known
}

// ErrNoRun is in the chain of errors about folders that hold no run.
var ErrNoRun = errors.New("there is no run")

// Read reads the runs of folders, as [ReadRuns], for a report whose title is the folders' names, or the name of the experiment that the only folder is of.
func Read(folders ...string) (Report, error) {
	var r Report
	var names []string
	seen := map[string]bool{}
	for _, dir := range folders {
		runs, damaged, err := ReadRuns(dir)
		if err != nil {
			return Report{}, err
		}
		for _, err := range damaged {
			r.Notes = append(r.Notes, fmt.Sprintf("Left out, for it is damaged: %v.", err))
		}
		if err := once(runs, seen); err != nil {
			return Report{}, err
		}
		results, err := readResults(dir)
		if err != nil {
			return Report{}, err
		}
		if results != nil {
			var others int
			if runs, others = apply(results, runs); len(runs) == 0 {
				return Report{}, fmt.Errorf("%s: %w that its %s tells of: run vktrain compare again, which writes it anew", dir, ErrNoRun, experiment.ResultsFile)
			}
			if len(runs) < len(results.Runs) {
				r.Notes = append(r.Notes, fmt.Sprintf("Only %d of the %d runs that %s in %s tells of have a %s: its table is of all of them, and the figures are of those.",
					len(runs), len(results.Runs), experiment.ResultsFile, dir, train.MetricsFile))
			}
			if others > 0 {
				r.Notes = append(r.Notes, fmt.Sprintf("Left out, for %s does not tell of them: %d of the runs in %s.", experiment.ResultsFile, others, dir))
			}
			if len(folders) == 1 {
				r.Results, r.Question = results, results.Question
			}
		}
		cost, err := readCost(dir)
		if err != nil {
			return Report{}, err
		}
		r.Runs, r.Cost = append(r.Runs, runs...), append(r.Cost, cost...)
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		names = append(names, filepath.Base(dir))
	}
	const most = 3
	if n := len(names); n > most {
		names = append(names[:most], fmt.Sprintf("%d more", n-most))
	}
	r.Title = strings.Join(names, ", ")
	if r.Results != nil {
		r.Title = r.Results.Name
	}
	return r, nil
}

// once refuses runs that are there already, which would count as runs of their own in means and deviations.
func once(runs []Run, seen map[string]bool) error {
	for _, run := range runs {
		dir, err := filepath.EvalSymlinks(run.Dir)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return err
		}
		if seen[dir] {
			return fmt.Errorf("%s is there twice: give each folder once", run.Dir)
		}
		seen[dir] = true
	}
	return nil
}

// ReadRuns reads the run that a folder holds, or those in folders below it: an experiment's, or any collection. Runs whose metrics can't be read do not keep the
// others from being read: damaged says what is wrong with each. Where there is no other the error is that of the first.
func ReadRuns(dir string) (runs []Run, damaged []error, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("%s can't be read: %w", dir, err)
	}
	var at []string
	for _, pattern := range []string{train.MetricsFile, "*/" + train.MetricsFile, "*/*/" + train.MetricsFile} {
		found, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, nil, err
		}
		if at = found; len(at) > 0 {
			break
		}
	}
	if len(at) == 0 {
		return nil, nil, fmt.Errorf("%s: %w: neither it nor a folder in it has a %s; give the folder that vktrain train or compare wrote", dir, ErrNoRun, train.MetricsFile)
	}
	for _, path := range at {
		r, err := readRun(filepath.Join(dir, filepath.Dir(filepath.FromSlash(path))))
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, nil, damaged[0]
	}
	return runs, damaged, nil
}

// readRun reads a run's folder. A config that can't be read is a note; so is a last line of the metrics that is being written or was cut off.
func readRun(dir string) (Run, error) {
	r := Run{Dir: dir}
	path := filepath.Join(dir, train.MetricsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("the metrics can't be read: %w", err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) < len(data) {
		r.Notes = append(r.Notes, "the last line of "+train.MetricsFile+" is not whole, and is left out")
	}
	if r.Lines, err = train.ReadMetrics(bytes.NewReader(whole)); err != nil {
		return r, fmt.Errorf("%s: %w: remove the run's folder, or train it again", path, err)
	}
	if !slices.IsSortedFunc(r.Lines, func(a, b train.Metrics) int { return a.Step - b.Step }) {
		return r, fmt.Errorf("%s: its steps are not in order: it is of two runs, or no run's", path)
	}
	if err := r.readConfig(); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the config can't be read: %v", err))
	}
	r.Diverged = divergence(r.Lines)
	return r, nil
}

func (r *Run) readConfig() error {
	all, err := train.ReadConfig(filepath.Join(r.Dir, train.SettingsFile))
	if err != nil {
		return err
	}
	r.settings = map[string]string{}
	for _, a := range all {
		r.settings[a.Key] = a.Value
	}
	c, err := train.Load(all)
	if err != nil {
		return err
	}
	r.Config, r.Seed = &c, c.Seed
	return nil
}

// Criterion says when a run without an experiment's own criterion counts as diverged.
const Criterion = "A run has diverged if its loss or gradient norm was not finite (a step that overflowed in float16 and was left out does not count), " +
	"or if its last loss is over its first: of the validation text where there are two evaluations, else of the training batches."

// divergence applies Criterion.
func divergence(lines []train.Metrics) string {
	var val []float64
	for _, m := range lines {
		switch {
		case m.Skipped:
			continue
		case !finite(m.Loss):
			return fmt.Sprintf("the loss is not finite at step %d", m.Step)
		case !finite(m.GradNorm):
			return fmt.Sprintf("the gradient norm is not finite at step %d", m.Step)
		case m.Evaluated && !finite(m.ValLoss):
			return fmt.Sprintf("the validation loss is not finite at step %d", m.Step)
		}
		if m.Evaluated {
			val = append(val, m.ValLoss)
		}
	}
	first, last, of := 0.0, 0.0, "validation"
	switch {
	case len(val) > 1:
		first, last = val[0], val[len(val)-1]
	case len(lines) > 1:
		first, last, of = lines[0].Loss, lines[len(lines)-1].Loss, "training"
	}
	if last > first {
		return fmt.Sprintf("the last %s loss, %.4g, is over the first, %.4g", of, last, first)
	}
	return ""
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// state is how far a run has come.
type state string

const (
	stateFinished   state = "finished"
	stateUnfinished state = "unfinished"
	stateDiverged   state = "diverged"
)

func (r *Run) state() state {
	switch {
	case r.Diverged != "":
		return stateDiverged
	case len(r.Lines) == 0, r.Config != nil && r.lastStep() < r.Config.Steps:
		return stateUnfinished
	}
	return stateFinished
}

// lastStep is 0 before the first line.
func (r *Run) lastStep() int {
	if len(r.Lines) == 0 {
		return 0
	}
	return r.Lines[len(r.Lines)-1].Step
}

// progress says how far a run has come in words.
func (r *Run) progress() string {
	switch r.state() {
	case stateDiverged:
		return fmt.Sprintf("diverged: %s", r.Diverged)
	case stateUnfinished:
		if r.Config == nil {
			return "no step yet"
		}
		return fmt.Sprintf("step %d of %d", r.lastStep(), r.Config.Steps)
	}
	return fmt.Sprintf("%d steps", r.lastStep())
}

// finalLoss is the last validation loss, or NaN.
func (r *Run) finalLoss() float64 {
	for _, m := range slices.Backward(r.Lines) {
		if m.Evaluated {
			return m.ValLoss
		}
	}
	return math.NaN()
}

// diagnosed are the lines that have a diagnosis of at least one layer.
func (r *Run) diagnosed() []train.Metrics {
	var all []train.Metrics
	for _, m := range r.Lines {
		if m.Diagnosis != nil && len(m.Diagnosis.Layers) > 0 {
			all = append(all, m)
		}
	}
	return all
}
