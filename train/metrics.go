package train

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/vktrain/vktrain/tasks"
)

// Metrics is what one step is known by: a line of metrics.jsonl. For the same config, device and data all of it has the same bits
// again, except the times. Losses are means in nats over the kept targets.
type Metrics struct {
	Step         int     `json:"step"` // from 1
	Loss         float64 `json:"loss"` // of the step's batch, before its update; z-loss included
	ValLoss      float64 `json:"val_loss"`
	Evaluated    bool    `json:"-"`            // ValLoss is there: of the parameters after the step
	ValFloor     float64 `json:"val_floor"`    // the least that ValLoss could be, Floor.Realised of the validation text; 0 where that is not known
	LR           float64 `json:"lr"`           // of the step
	GradNorm     float64 `json:"grad_norm"`    // over all parameters, before clipping
	LossScale    float64 `json:"loss_scale"`   // of the step, in f16; else 0
	Skipped      bool    `json:"skipped"`      // gradients overflowed in f16, and the step was left out
	Tokens       int64   `json:"tokens"`       // read since the first step
	TokensPerSec float64 `json:"tokens_per_s"` // over the last steps, evaluations and samples left out
	Seconds      float64 `json:"step_s"`       // of the step alone, where that can be told: see [Metrics.Timed]; else 0
	Elapsed      float64 `json:"elapsed_s"`    // since the first step began, everything included

	Diagnosis *Diagnosis `json:"diagnosis"` // of diagnosed steps; else nil

	Tasks   []tasks.Result `json:"tasks"`   // of the last step, where the config has tasks; their average stands beside them
	Scoring float64        `json:"tasks_s"` // the time that they took, which is in Elapsed
}

// Timed tells whether Seconds is there: the time from the end of the step before to that of this one, which was waiting behind it. It is of no step that began with
// nothing before it (the first, and those after an evaluation, a sample or a pause), was waited for with nothing behind it (those before such, and the last), or was
// diagnosed, follows a diagnosed one, or was skipped.
func (m Metrics) Timed() bool { return m.Seconds > 0 }

// MarshalJSON writes a line's object: val_loss and val_floor only where evaluated, step_s only where timed, loss_scale and skipped only where they say something, null for what is not finite.
func (m Metrics) MarshalJSON() ([]byte, error) {
	var val *Number
	if m.Evaluated {
		val = (*Number)(&m.ValLoss)
	}
	var average *float64
	if len(m.Tasks) > 0 {
		x := tasks.Average(m.Tasks)
		average = &x
	}
	return json.Marshal(struct {
		Step         int     `json:"step"`
		Loss         Number  `json:"loss"`
		ValLoss      *Number `json:"val_loss,omitempty"`
		ValFloor     float64 `json:"val_floor,omitempty"`
		LR           float64 `json:"lr"`
		GradNorm     Number  `json:"grad_norm"`
		LossScale    float64 `json:"loss_scale,omitempty"`
		Skipped      bool    `json:"skipped,omitempty"`
		Tokens       int64   `json:"tokens"`
		TokensPerSec Number  `json:"tokens_per_s"`
		Seconds      float64 `json:"step_s,omitempty"`
		Elapsed      Number  `json:"elapsed_s"`

		Diagnosis *Diagnosis `json:"diagnosis,omitempty"`

		Tasks   []tasks.Result `json:"tasks,omitempty"`
		Average *float64       `json:"benchmark_average,omitempty"`
		Scoring float64        `json:"tasks_s,omitempty"`
	}{m.Step, Number(m.Loss), val, m.ValFloor, m.LR, Number(m.GradNorm), m.LossScale, m.Skipped, m.Tokens, Number(m.TokensPerSec), m.Seconds, Number(m.Elapsed),
		m.Diagnosis, m.Tasks, average, m.Scoring})
}

// UnmarshalJSON reads a line; what is null becomes NaN.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	var line struct {
		Step         int      `json:"step"`
		Loss         *float64 `json:"loss"`
		ValLoss      *float64 `json:"val_loss"`
		ValFloor     float64  `json:"val_floor"`
		LR           float64  `json:"lr"`
		GradNorm     *float64 `json:"grad_norm"`
		LossScale    float64  `json:"loss_scale"`
		Skipped      bool     `json:"skipped"`
		Tokens       int64    `json:"tokens"`
		TokensPerSec float64  `json:"tokens_per_s"`
		Seconds      float64  `json:"step_s"`
		Elapsed      float64  `json:"elapsed_s"`

		Diagnosis *Diagnosis `json:"diagnosis"`

		Tasks   []tasks.Result `json:"tasks"`
		Scoring float64        `json:"tasks_s"`
	}
	if err := json.Unmarshal(data, &line); err != nil {
		return err
	}
	orNaN := func(f *float64) float64 {
		if f == nil {
			return math.NaN()
		}
		return *f
	}
	*m = Metrics{Step: line.Step, Loss: orNaN(line.Loss), ValFloor: line.ValFloor, LR: line.LR, GradNorm: orNaN(line.GradNorm), LossScale: line.LossScale, Skipped: line.Skipped, Tokens: line.Tokens,
		TokensPerSec: line.TokensPerSec, Seconds: line.Seconds, Elapsed: line.Elapsed, Diagnosis: line.Diagnosis, Tasks: line.Tasks, Scoring: line.Scoring}
	if m.Evaluated = line.ValLoss != nil; m.Evaluated {
		m.ValLoss = *line.ValLoss
	}
	return nil
}

// WriteMetrics writes one line, whole at once, so that a reader of the growing file sees whole lines.
func WriteMetrics(w io.Writer, m Metrics) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// maxMetricsLine is far longer than a line with the diagnosis of a deep model.
const maxMetricsLine = 64 << 20

// ReadMetrics reads the lines of a metrics.jsonl.
func ReadMetrics(r io.Reader) ([]Metrics, error) {
	var all []Metrics
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMetricsLine)
	for lines.Scan() {
		var m Metrics
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("metrics, line %d: %w", len(all)+1, err)
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// throughputWindow is how many of the last steps the rate is taken over.
const throughputWindow = 20

// throughput measures tokens per second over a window of steps, and the time of single ones. Time that is not training is cut out by pause.
type throughput struct {
	tokens int       // a step's
	began  time.Time // of the first step
	ends   []time.Time
	paused time.Duration // moves all ends forward
	behind bool          // the step that has not ended was submitted before the last end: it waited behind that
}

// step notes the end of a step and returns the rate. The first step's is from its beginning, and later ones leave it out: it is slower.
func (t *throughput) step(now time.Time) float64 {
	t.ends = append(t.ends, now.Add(-t.paused))
	if n := len(t.ends) - throughputWindow - 1; n > 0 {
		t.ends = t.ends[n:]
	}
	steps, first, last := len(t.ends)-1, t.ends[0], t.ends[len(t.ends)-1]
	if steps == 0 {
		steps, first = 1, t.began
	}
	if !last.After(first) {
		return 0
	}
	return float64(steps*t.tokens) / last.Sub(first).Seconds()
}

// alone is the time of the step whose end step was told last, in seconds; 0 where that is not its time alone. last says that no other has been submitted behind it,
// and plain that it was like most.
func (t *throughput) alone(last, plain bool) float64 {
	behind := t.behind
	t.behind = !last && plain
	if n := len(t.ends); behind && t.behind && n > 1 {
		return t.ends[n-1].Sub(t.ends[n-2]).Seconds()
	}
	return 0
}

// pause takes a stretch of time out of the measurement.
func (t *throughput) pause(d time.Duration) { t.paused += d }
