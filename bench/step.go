package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/internal/bootstrap"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/rng"
	"github.com/vktrain/vktrain/train"
)

// StepOptions say which training steps are measured.
type StepOptions struct {
	Batch, SeqLen int // tokens of a step, in sequences
	Steps         int // measured, of each model
	// Progress is called before each step, those of the warm-up too. It may be nil.
	Progress func(done, total int)
	Trace    bool // run one more step of each model for WriteTrace
}

// warmUp is how many steps of each model run before those that are measured.
const warmUp = 2

// leastTurns is how many turns an interval needs.
const leastTurns = 5

// profiles is how many times the nodes of each model's step are timed.
const profiles = 3

// Step is how fast a model trains: forward, backward, clipping and AdamW on random tokens.
type Step struct {
	Name         string  `json:"name"`
	Placement    string  `json:"placement"`
	QKNorm       string  `json:"qk_norm"`
	Recompute    string  `json:"recompute"`
	Precision    string  `json:"precision"`
	Masters      string  `json:"masters"`
	Device       string  `json:"device"`
	Threads      int     `json:"threads,omitempty"` // of the CPU
	Params       int     `json:"params"`
	Batch        int     `json:"batch"`
	SeqLen       int     `json:"seq_len"`
	Steps        int     `json:"steps"`
	MsPerStep    float64 `json:"ms_per_step"` // the median
	MsMin        float64 `json:"ms_min"`
	MsLow        float64 `json:"ms_low,omitempty"` // the quartiles
	MsHigh       float64 `json:"ms_high,omitempty"`
	CPUSeconds   float64 `json:"cpu_s_per_step,omitempty"` // that the process took of all cores for a step, the median; 0 if unknown
	TokensPerSec float64 `json:"tokens_per_s"`
	GFLOPs       float64 `json:"gflops"`              // per second: model.CausalFLOPsPerToken over the median
	Ratio        float64 `json:"ratio"`               // to the first model: the median over the turns of this one's time by that one's in the same turn
	RatioLow     float64 `json:"ratio_low,omitempty"` // its bootstrap interval; 0 with under leastTurns turns, and of the first model
	RatioHigh    float64 `json:"ratio_high,omitempty"`
	CPURatio     float64 `json:"cpu_ratio,omitempty"` // as Ratio, of CPUSeconds: other programs disturb it less; 0 if unknown
	CPULow       float64 `json:"cpu_ratio_low,omitempty"`
	CPUHigh      float64 `json:"cpu_ratio_high,omitempty"`
	RatioTo      string  `json:"ratio_to,omitempty"` // the first model's name
	PeakBytes    int64   `json:"peak_bytes"`         // what the process held at most; of another device, what is held there
	DeviceBytes  int64   `json:"device_bytes"`       // parameters, moments, arena and inputs
	Loss         float64 `json:"loss"`               // of the last step
	*Diagnosed

	Work train.Work `json:"work"` // of the step, a token

	Memory []backend.MemoryUse `json:"memory_use,omitempty"` // of all models together, if the device says which memory it has taken

	PeakGFLOPs float64 `json:"peak_gflops,omitempty"` // of float32 FMAs, measured between the steps; 0 if the device can't
	OfPeak     float64 `json:"of_peak,omitempty"`     // GFLOPs over that
	Ops        []Op    `json:"ops,omitempty"`         // the operators' parts, the longest first, if the device can time them

	seconds   []float64 // of each step
	diagnosed []float64 // of each diagnosed one
	cpu       []float64 // seconds of all cores, of each step
	trace     []programTrace
}

// Diagnosed is what steps take that are diagnosed, of models that have such steps.
type Diagnosed struct {
	Every int     `json:"diagnostics_every"`
	Ms    float64 `json:"diagnosed_ms"`    // a diagnosed step, the median
	Ratio float64 `json:"diagnosed_ratio"` // to a plain one: the median over the turns, which have both
	Bytes int64   `json:"diagnosed_bytes"` // that its programs take on the device beside the others
}

// Share is by how much diagnosing makes training longer: one step of Every takes Ratio times as long.
func (d Diagnosed) Share() float64 { return (d.Ratio - 1) / float64(d.Every) }

// Model is a model to measure, under a name.
type Model struct {
	Name      string
	Config    model.Config
	Recompute model.Recompute
	Precision string // as in train.Config; empty: f32
	Masters   string // as in train.Config; empty: f32
	// DiagnosticsEvery is as in train.Config: where it is over 0, a diagnosed step is measured in each turn beside the plain one.
	DiagnosticsEvery int
}

// Steps trains models in turns, one step of each and then the next of each, and measures. It ends with ctx's error when that is done.
//
// PeakBytes of the CPU is the process's, so with several models it is that of all of them together.
func Steps(ctx context.Context, dev backend.Backend, models []Model, o StepOptions) (steps []Step, err error) {
	if o.Steps < 1 {
		return nil, fmt.Errorf("%d steps are too few: use at least 1", o.Steps)
	}
	if len(models) == 0 {
		return nil, errors.New("no model to measure")
	}
	if err := fits(dev, models, o); err != nil {
		return nil, err
	}
	all := make([]*trainee, 0, len(models))
	defer func() {
		for _, t := range all {
			err = errors.Join(err, t.close())
		}
	}()
	for _, m := range models {
		t, err := newTrainee(ctx, dev, m, o)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	loops, err := newPeakLoops(dev)
	if err != nil {
		return nil, err
	}
	if loops != nil {
		defer func() { err = errors.Join(err, loops.Close()) }()
	}
	peak, err := takeTurns(ctx, all, loops, o)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		r := t.finish(dev, all[0])
		r.PeakGFLOPs, r.OfPeak = peak, ratio(r.GFLOPs, peak)
		steps = append(steps, r)
	}
	for i, t := range all { // after all memory has been counted
		if steps[i].Ops, err = profile(ctx, t, profiles, byOp); err != nil && !errors.Is(err, errNoProfile) {
			return nil, err
		}
		if o.Trace {
			if steps[i].trace, err = traceOnce(t); err != nil {
				return nil, err
			}
		}
	}
	return steps, nil
}

// takeTurns takes the steps of all models, and gives the device's peak of float32 FMAs between them in GFLOP/s, 0 without loops.
func takeTurns(ctx context.Context, all []*trainee, loops backend.PeakLoops, o StepOptions) (peak float64, err error) {
	for i := range warmUp + o.Steps {
		if loops != nil { // between the turns, so that the peak is of the same minutes
			gflops, err := loops.FMA()
			if err != nil {
				return 0, err
			}
			peak = max(peak, gflops)
		}
		if o.Progress != nil {
			o.Progress(i, warmUp+o.Steps)
		}
		for j := range all {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			t := all[j]
			if i%2 == 1 { // so that none always runs after the same one
				t = all[len(all)-1-j]
			}
			if err := t.turn(i); err != nil {
				return 0, fmt.Errorf("%s: %w", t.result.Name, err)
			}
		}
	}
	return peak, nil
}

func (m Model) masters() string { return cmp.Or(m.Masters, graph.F32.String()) }

// stepPrograms are those of a model's steps.
type stepPrograms struct {
	storage          graph.DType
	plain, diagnosed []*graph.Program // none where no step is diagnosed
	diagnostics      *train.Diagnostics
}

// need is the memory of all, as they are compiled, and more what diagnosed steps take of it.
func (p stepPrograms) need(dev backend.Backend) (all train.Memory, more int64) {
	all = train.MemoryOn(dev, slices.Concat(p.diagnosed, p.plain)...)
	if p.diagnosed != nil {
		more = all.Total() - train.MemoryOn(dev, p.plain...).Total()
	}
	return all, more
}

func (m Model) programs(dev backend.Backend, o StepOptions) (p stepPrograms, err error) {
	if p.storage, err = train.Storage(cmp.Or(m.Precision, graph.F32.String()), dev.Info().Kind); err != nil {
		return p, err
	}
	masters, err := train.MastersFormat(m.masters())
	if err != nil {
		return p, err
	}
	options := train.ProgramOptions{Batch: o.Batch, SeqLen: o.SeqLen, MaxNorm: 1, Recompute: m.Recompute, Storage: p.storage, Masters: masters}
	if p.plain, err = train.StepperPrograms(m.Config, options, 1); err != nil || m.DiagnosticsEvery <= 0 {
		return p, err
	}
	p.diagnostics = &train.Diagnostics{}
	options.Diagnostics = p.diagnostics
	p.diagnosed, err = train.StepperPrograms(m.Config, options, 1)
	return p, err
}

// fits returns an error if a device has no room for all models together.
func fits(dev backend.Backend, models []Model, o StepOptions) error {
	var need train.Memory
	for _, m := range models {
		programs, err := m.programs(dev, o)
		if err != nil {
			return err
		}
		all, _ := programs.need(dev)
		need = need.Plus(all)
	}
	return need.Check(dev.Info())
}

// trainee is a model in training.
type trainee struct {
	programs []*graph.Program // of a plain step
	store    backend.Store
	steps    *train.Stepper
	rand     *rng.Rand
	cfg      model.Config
	batch    train.Batch
	done     int
	result   Step
}

func newTrainee(ctx context.Context, dev backend.Backend, m Model, o StepOptions) (*trainee, error) {
	programs, err := m.programs(dev, o)
	if err != nil {
		return nil, err
	}
	cfg := m.Config.Normalize()
	tokens := o.Batch * o.SeqLen
	t := &trainee{
		programs: programs.plain, cfg: cfg, rand: rng.New(1, "bench"), batch: train.Batch{Tokens: make([]int32, tokens), Targets: make([]int32, tokens)},
		result: Step{
			Name: m.Name, Placement: cfg.Placement, QKNorm: cfg.QKNorm, Recompute: string(cmp.Or(m.Recompute, model.RecomputeNone)),
			Precision: programs.storage.String(), Masters: m.masters(), Device: dev.Info().String(), Params: cfg.NumParams(),
			Batch: o.Batch, SeqLen: o.SeqLen, Steps: o.Steps, Work: train.WorkOf(cfg, o.SeqLen, tokens, programs.plain, 1),
		},
	}
	t.result.Threads = threads(dev)
	if m.DiagnosticsEvery > 0 {
		_, more := programs.need(dev)
		t.result.Diagnosed = &Diagnosed{Every: m.DiagnosticsEvery, Bytes: more}
	}
	if err := t.compile(ctx, dev, programs); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *trainee) compile(ctx context.Context, dev backend.Backend, p stepPrograms) (err error) {
	if t.store, err = dev.NewStore(train.Vars(t.programs...)); err != nil {
		return err
	}
	if err := train.InitParams(ctx, t.store, t.cfg, 1); err != nil {
		return err
	}
	if p.diagnosed == nil {
		t.steps, err = train.NewStepper(dev, t.store, p.plain)
	} else {
		t.steps, err = train.NewDiagnosingStepper(dev, t.store, p.plain, p.diagnosed, p.diagnostics)
	}
	return err
}

// turn takes a step, and where some are diagnosed such a one before or after it. Those of the warm-up are not measured.
func (t *trainee) turn(i int) error {
	diagnose := func() error {
		if t.result.Diagnosed == nil {
			return nil
		}
		t.steps.Diagnose()
		seconds, err := t.step()
		if i >= warmUp {
			t.result.diagnosed = append(t.result.diagnosed, seconds)
		}
		return err
	}
	if i%2 == 1 { // so that neither always has the other's cache
		if err := diagnose(); err != nil {
			return err
		}
	}
	before := cpuSeconds()
	seconds, err := t.step()
	if err != nil {
		return err
	}
	if i >= warmUp {
		t.result.seconds = append(t.result.seconds, seconds)
		t.result.cpu = append(t.result.cpu, cpuSeconds()-before)
	}
	if i%2 == 0 {
		return diagnose()
	}
	return nil
}

// step runs a step on tokens that it draws before the clock starts, and returns the seconds until its loss is there.
func (t *trainee) step() (seconds float64, err error) {
	for _, list := range [][]int32{t.batch.Tokens, t.batch.Targets} {
		for i := range list {
			list[i] = int32(t.rand.IntN(t.cfg.VocabSize))
		}
	}
	t.done++
	start := time.Now()
	hyper := train.Hyper{LR: 3e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: t.done}
	if _, err := t.steps.Submit([]train.Batch{t.batch}, hyper); err != nil {
		return 0, err
	}
	scalars, err := t.steps.Drain()
	if err != nil {
		return 0, err
	}
	t.result.Loss = scalars.Loss
	return time.Since(start).Seconds(), nil
}

func (t *trainee) finish(dev backend.Backend, first *trainee) Step {
	r := t.result
	r.RatioTo = first.result.Name
	r.Ratio, r.RatioLow, r.RatioHigh = ratioOverTurns(r.seconds, first.result.seconds, "turns", r.Name)
	if slices.Min(first.result.cpu) > 0 {
		r.CPURatio, r.CPULow, r.CPUHigh = ratioOverTurns(r.cpu, first.result.cpu, "turns", r.Name, "cpu")
	}
	if t == first {
		r.RatioLow, r.RatioHigh, r.CPULow, r.CPUHigh = 0, 0, 0, 0
	}
	low, high := bootstrap.Quartiles(slices.Clone(r.seconds))
	r.MsLow, r.MsHigh = 1e3*low, 1e3*high
	s := bootstrap.Median(r.seconds)
	r.CPUSeconds = bootstrap.Median(r.cpu)
	tokens := float64(r.Batch * r.SeqLen)
	r.MsPerStep, r.MsMin, r.TokensPerSec = 1e3*s, 1e3*slices.Min(r.seconds), tokens/s
	r.GFLOPs = t.cfg.CausalFLOPsPerToken(r.SeqLen) * tokens / s / 1e9
	r.DeviceBytes = deviceBytes(t.store)
	for _, e := range append(t.steps.Executables(), t.steps.DiagnosedExecutables()...) {
		r.DeviceBytes += deviceBytes(e)
	}
	if d := r.Diagnosed; d != nil {
		d.Ms, d.Ratio = 1e3*bootstrap.Median(r.diagnosed), bootstrap.Median(ratiosOf(r.diagnosed, r.seconds))
	}
	if r.PeakBytes = r.DeviceBytes; dev.Info().Kind == backend.CPU {
		r.PeakBytes = max(PeakResident(), r.DeviceBytes)
	}
	if m, ok := dev.(backend.MemoryReporter); ok {
		r.Memory = m.MemoryUse()
	}
	return r
}

func deviceBytes(x any) int64 {
	if m, ok := x.(backend.MemoryStats); ok {
		return m.DeviceBytes()
	}
	return 0
}

// ratioOverTurns is the median of a[i]/b[i] with its interval, 0 with few turns.
func ratioOverTurns(a, b []float64, names ...string) (ratio, low, high float64) {
	ratios := ratiosOf(a, b)
	if len(ratios) >= leastTurns {
		low, high = bootstrap.Interval(ratios, bootstrap.Median, names...)
	}
	return bootstrap.Median(ratios), low, high
}

// ratiosOf are a[i]/b[i].
func ratiosOf(a, b []float64) []float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

func (t *trainee) close() error {
	var errs []error
	if t.steps != nil {
		errs = append(errs, t.steps.Close())
	}
	if t.store != nil {
		errs = append(errs, t.store.Close())
	}
	return errors.Join(errs...)
}
