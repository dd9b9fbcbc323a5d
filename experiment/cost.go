package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/internal/bootstrap"
	"github.com/vktrain/vktrain/train"
)

// Cost is what a run took. Its time and its process' memory are no run's twice; the rest follows from the config and the kind of device.
type Cost struct {
	Work     train.Work `json:"work"`                    // of a step, a token
	Need     train.Need `json:"memory"`                  // of the device's
	Resident int64      `json:"peak_resident,omitempty"` // the most that the process held during the run, in bytes; 0 where that is unknown, or other runs were beside it
	Time     Timing     `json:"time"`
}

// Timing is the time of a run's steps.
type Timing struct {
	Steps        int     `json:"steps"`                  // that count: see TimeSteps
	Median       float64 `json:"median_s,omitempty"`     // of one; 0 with under LeastTimed
	Low          float64 `json:"low_s,omitempty"`        // the quartiles
	High         float64 `json:"high_s,omitempty"`       //
	TokensPerSec float64 `json:"tokens_per_s,omitempty"` // by the median
	Evaluation   float64 `json:"evaluation_s,omitempty"` // of the validation text, before the first step
}

const (
	// LeastTimed is how many steps a median time needs.
	LeastTimed = 5
	// settling is how many steps are left out at the start, in which memory is touched for the first time and submissions are cut by what the steps before them took.
	settling = 3
)

// TimeSteps takes the times of a run's steps, each of so many tokens: of those whose own time can be told (train.Metrics.Timed), but for the first three.
func TimeSteps(lines []train.Metrics, tokens int) Timing {
	var x []float64
	for _, m := range lines {
		if m.Timed() && m.Step > settling {
			x = append(x, m.Seconds)
		}
	}
	t := Timing{Steps: len(x)}
	if len(x) < LeastTimed {
		return t
	}
	t.Median = bootstrap.Median(x)
	t.Low, t.High = bootstrap.Quartiles(x)
	t.TokensPerSec = float64(tokens) / t.Median
	return t
}

const mebi = 1 << 20

// Figures of a run's cost. Those that depend on time are in results only if the experiment asks for them.
const (
	MetricStepMs       = "step_ms"
	metricTokensPerSec = "tokens_per_s"
	MetricStepMemory   = "step_memory"
	MetricRunMemory    = "run_memory"
	MetricResident     = "peak_resident"
	MetricFLOPs        = "flops_per_token"
	MetricNorms        = "norm_elements"
	MetricTraffic      = "traffic"
)

// timeMetrics are the figures that depend on time.
var timeMetrics = []string{MetricStepMs, metricTokensPerSec, MetricResident}

// work sets the figures that do not depend on time.
func (c *Cost) work(f Figures) {
	f.set(MetricStepMemory, float64(c.Need.Step.Total())/mebi)
	f.set(MetricRunMemory, float64(c.Need.Run.Total())/mebi)
	f.set(MetricFLOPs, c.Work.FLOPs)
	f.set(MetricNorms, c.Work.NormElements)
	f.set(MetricTraffic, c.Work.Bytes)
}

// times sets those that do.
func (c *Cost) times(f Figures) {
	if c.Time.Median > 0 {
		f.set(MetricStepMs, 1e3*c.Time.Median)
		f.set(metricTokensPerSec, c.Time.TokensPerSec)
	}
	if c.Resident > 0 {
		f.set(MetricResident, float64(c.Resident)/mebi)
	}
}

// withTimes are the runs with the figures of time, where the experiment asks for those.
func (m *Matrix) withTimes(runs []*RunResult) []*RunResult {
	if m.Cost == 0 {
		return runs
	}
	all := make([]*RunResult, len(runs))
	for i, r := range runs {
		timed := *r
		timed.Figures = Figures{}
		for name, x := range r.Figures {
			timed.Figures[name] = x
		}
		if r.Cost != nil {
			r.Cost.times(timed.Figures)
		}
		all[i] = &timed
	}
	return all
}

// costNote says what the figures of time are of; empty where there are none.
func (m *Matrix) costNote(runs []*RunResult) string {
	if m.Cost == 0 {
		return ""
	}
	short := 0
	for _, r := range runs {
		if r.Cost == nil || r.Cost.Time.Median == 0 {
			short++
		}
	}
	s := fmt.Sprintf("Times are of trained runs, one after the other, and so of whatever else the machine did meanwhile: %s has those of steps in turns. A run's is the median of its steps "+
		"but for the first %d, diagnosed ones, and those beside an evaluation, a sample or an end.", CostFile, settling)
	if short > 0 {
		s += fmt.Sprintf(" %d of %d runs have none: they have too few such steps (%d are needed), or were trained by an earlier version.", short, len(runs), LeastTimed)
	}
	return s
}

// checkCost refuses figures of time where there are none.
func (e *Experiment) checkCost() error {
	for _, name := range e.Metrics {
		if e.Cost == 0 && slices.Contains(timeMetrics, name) {
			return badf("", "metrics: %s depends on time, and no result does unless it is asked for: add cost: 20, which also times 20 steps of each combination in turns", name)
		}
	}
	return nil
}

// freshResident makes the process' peak memory count from now. Memory of earlier runs that is garbage is given back first.
func freshResident() bool {
	debug.FreeOSMemory()
	return bench.ResetPeakResident()
}

// CostFile is in an experiment's folder: a list of bench.Step, whose names are combinations.
const CostFile = "cost.json"

// removeCost removes the times of steps in turns: the runs beside them will be others.
func removeCost(dir string) error {
	if err := os.Remove(filepath.Join(dir, CostFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
