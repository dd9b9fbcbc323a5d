package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/tasks"
)

// Trainer is a model in training on a device. It is used by one goroutine.
type Trainer struct {
	cfg  Config
	dev  backend.Backend
	data *Dataset

	store    backend.Store
	steps    *Stepper
	eval     *Evaluator
	generate *Generator

	tasks []taskPassages

	step   int   // done
	tokens int64 // read

	startup Startup
	need    Need
	work    Work

	diagnosisMayGo bool // nobody has asked for it
}

// New opens the data, makes the initial parameters and compiles the programs on a device, which the caller closes after the Trainer. It gives
// up when ctx is done.
func New(ctx context.Context, cfg Config, dev backend.Backend) (*Trainer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	mayGo := cfg.DiagnosticsEvery < 0
	cfg = cfg.Resolve().on(dev.Info())
	if err := cfg.checkMoments(dev); err != nil {
		return nil, err
	}
	if err := cfg.checkFit(dev.Info()); err != nil { // before the data is read
		return nil, err
	}
	list, err := cfg.Tasks.Load()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	d, err := OpenDataset(ctx, cfg)
	if err != nil {
		return nil, err
	}
	opened := time.Since(began)
	switch v := d.Tokenizer.VocabSize(); {
	case cfg.Model.VocabSize == 0:
		cfg.Model.VocabSize = v
	case cfg.Model.VocabSize < v:
		return nil, badKey("model.vocab_size", "%d is under the tokenizer's %d tokens: use 0 to take those, or a smaller data.vocab_size", cfg.Model.VocabSize, v)
	}
	if cfg.QKScalePercentile > 0 {
		cfg.Model.QKScaleLength = min(cfg.SeqLen, max(2, d.lengthPercentile))
	}
	passages, err := allPassages(list, d.Tokenizer, cfg.SeqLen)
	if err != nil {
		return nil, fmt.Errorf("tasks.files: %w", err)
	}
	t := &Trainer{cfg: cfg, dev: dev, data: d, tasks: passages, startup: Startup{Data: opened}, diagnosisMayGo: mayGo}
	if err := t.compile(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Trainer) compile(ctx context.Context) error {
	if err := t.cfg.checkFit(t.dev.Info()); err != nil { // with the tokenizer's vocabulary
		return err
	}
	r, err := t.record()
	if err != nil {
		return err
	}
	o, m := t.cfg.programOptions(), t.cfg.Model.Config
	t.need, t.work = r.need, WorkOf(m, t.cfg.SeqLen, t.cfg.TokensPerStep(), r.programs, t.cfg.Accumulation)
	if err := t.cfg.checkMemory(t.need.Run, t.dev.Info()); err != nil {
		return err
	}
	if t.store, err = t.cfg.newStore(t.dev, Vars(r.programs...)); err != nil {
		return err
	}
	began := time.Now()
	if err := InitParams(ctx, t.store, m, t.cfg.Seed); err != nil {
		return err
	}
	t.startup.Parameters = time.Since(began)
	began = time.Now()
	defer func() { t.startup.Programs = time.Since(began) }()
	if r.diagnosed == nil {
		t.steps, err = NewStepper(t.dev, t.store, r.programs)
	} else {
		t.steps, err = NewDiagnosingStepper(t.dev, t.store, r.programs, r.diagnosed, r.diagnostics)
	}
	if err != nil {
		return err
	}
	t.steps.SetLossScale(LossScale{Scale: t.cfg.LossScale}, t.cfg.LossScaleSteps)
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.eval, err = NewEvaluator(t.dev, t.store, m, o); err != nil {
		return err
	}
	t.generate, err = NewGenerator(t.dev, t.store, m, o.Masters)
	return err
}

// recorded is a run's programs, and what they need.
type recorded struct {
	programs, diagnosed []*graph.Program // of steps; diagnosed is nil where there are no such steps
	diagnostics         *Diagnostics
	need                Need
}

// record records the run's programs, whose vocabulary is known.
func (t *Trainer) record() (r recorded, err error) {
	if r.programs, err = StepperPrograms(t.cfg.Model.Config, t.cfg.programOptions(), t.cfg.Accumulation); err != nil {
		return r, err
	}
	all, err := t.cfg.withEvaluation(r.programs)
	if err != nil {
		return r, err
	}
	if r.diagnosed, r.diagnostics, err = t.diagnosedPrograms(all); err != nil {
		return r, err
	}
	r.need.Step = t.cfg.placed(MemoryOn(t.dev, r.programs...))
	r.need.Run = t.cfg.placed(MemoryOn(t.dev, slices.Concat(r.diagnosed, all)...)) // as they are compiled
	return r, nil
}

// diagnosedPrograms are those of diagnosed steps, none where there are no such steps. Those that nobody has asked for are left out where the device has no
// room for them beside the others.
func (t *Trainer) diagnosedPrograms(others []*graph.Program) ([]*graph.Program, *Diagnostics, error) {
	if t.cfg.DiagnosticsEvery == 0 {
		return nil, nil, nil
	}
	o := t.cfg.programOptions()
	o.Diagnostics = &Diagnostics{}
	programs, err := StepperPrograms(t.cfg.Model.Config, o, t.cfg.Accumulation)
	if err == nil && t.diagnosisMayGo && t.cfg.placed(MemoryOn(t.dev, slices.Concat(programs, others)...)).Check(t.dev.Info()) != nil {
		t.cfg.DiagnosticsEvery = 0
		return nil, nil, nil
	}
	return programs, o.Diagnostics, err
}

// diagnosed tells whether a step is to be diagnosed.
func (c Config) diagnosed(step int) bool {
	every := c.DiagnosticsEvery
	return every > 0 && (step == 1 || step%every == 0 || step == c.Steps)
}

// InitParams writes a seed's initial parameters to a store, rounded to nearest where it has them in bf16. It gives up when ctx is done.
func InitParams(ctx context.Context, s backend.Store, m model.Config, seed uint64) error {
	formats := map[string]graph.DType{}
	for _, v := range s.Vars() {
		formats[v.Name] = v.DType
	}
	var x []float32
	for _, p := range m.Params() {
		v := graph.Var{Name: p.Name, DType: formats[p.Name], Shape: p.Shape}
		err := backend.WriteParts(s, v, func(part []byte, offset int) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			size := v.DType.Size()
			n := len(part) / size
			x = slices.Grow(x[:0], n)[:n]
			p.Init(seed, offset/size, x)
			if v.DType == graph.BF16 {
				appendBF16(part[:0], x)
			} else {
				appendFloats(part[:0], x)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Config is the run's, with every default filled in: written as YAML it gives the same run again.
func (t *Trainer) Config() Config { return t.cfg }

// Startup says how long New took for what.
type Startup struct {
	Data       time.Duration // the text and its tokenizer
	Parameters time.Duration // their initial values
	Programs   time.Duration // kernels, memory and commands
}

// Startup says how long New took.
func (t *Trainer) Startup() Startup { return t.startup }

// Need is what the run needs of the device's memory.
func (t *Trainer) Need() Need { return t.need }

// Work is that of a step that is not diagnosed.
func (t *Trainer) Work() Work { return t.work }

// Dataset is the run's text.
func (t *Trainer) Dataset() *Dataset { return t.data }

// Hooks are called by Run, in its goroutine. Each may be nil. An error ends the run.
type Hooks struct {
	Step   func(Metrics) error               // after each step, one step late unless it was evaluated
	Sample func(step int, text string) error // with a text that the model wrote
	Score  func() error                      // before tasks are scored, which may take long: the model is that of the last step, and may be saved

	// Control is asked before each step whether the run is to wait, or to do something.
	Control *Control
}

// Result is what a run came to.
type Result struct {
	Steps       int
	Tokens      int64
	Skipped     int     // steps among them that overflowed in f16, and were left out
	Last        Metrics // of the last step
	ValLoss     float64 // of the last evaluation; NaN if there was none
	Interrupted bool    // by the context: before the last step, or in the evaluation or the scoring after it
	Elapsed     time.Duration
}

// DivergedError says that training gave what is not finite.
type DivergedError struct {
	Step    int
	What    string // is not finite: "the loss is NaN"
	Initial bool   // with the initial parameters: nothing had been learned
	Config  Config
}

func (e *DivergedError) Error() string {
	if e.Initial {
		remedy := fmt.Sprintf("the initial parameters give that: use another model.init (%s)", e.Config.Model.Init)
		if e.Config.ZLoss > 0 {
			remedy += fmt.Sprintf(", or a lower z_loss (%g)", e.Config.ZLoss)
		}
		return fmt.Sprintf("training diverged at step %d: %s: %s", e.Step, e.What, remedy)
	}
	if e.Config.storage() == graph.F16 {
		return fmt.Sprintf("training diverged at step %d: %s: use precision bf16, or lower lr (%g)", e.Step, e.What, e.Config.LR)
	}
	remedy := fmt.Sprintf("lower lr (%g) or lengthen warmup (%d)", e.Config.LR, e.Config.Warmup)
	if e.Config.Clip == 0 {
		remedy = fmt.Sprintf("lower lr (%g), set clip to 1 or lengthen warmup (%d)", e.Config.LR, e.Config.Warmup)
	}
	return fmt.Sprintf("training diverged at step %d: %s: %s, and train again", e.Step, e.What, remedy)
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// run is the state of one call of Run.
type run struct {
	*Trainer
	hooks   Hooks
	rate    throughput
	began   time.Time
	pending Metrics // of the step that is submitted: what is known before its scalars are
	told    bool    // it was reported ahead of its turn
	result  Result
}

// Run trains to the config's last step. When ctx is done it ends after the step in progress, or after its micro-batch, and then that step is
// not taken; without an error: see Result.Interrupted. Another Run goes on from there. A *DivergedError, or an error of the device or of a hook, ends it at once.
func (t *Trainer) Run(ctx context.Context, hooks Hooks) (Result, error) {
	began := time.Now()
	r := &run{Trainer: t, hooks: hooks, rate: throughput{tokens: t.cfg.TokensPerStep(), began: began}, began: began}
	r.result.ValLoss = math.NaN()
	err := r.loop(ctx)
	r.result.Steps, r.result.Tokens, r.result.Elapsed = t.step, t.tokens, time.Since(r.began)
	return r.result, err
}

func (r *run) loop(ctx context.Context) error {
	rates := r.cfg.LearningRates()
	for r.step < r.cfg.Steps {
		if err := r.hold(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			r.result.Interrupted = true
			break
		}
		step := r.step + 1
		position := r.data.Position()
		if r.cfg.diagnosed(step) {
			r.steps.Diagnose()
		}
		before, err := r.steps.SubmitEach(ctx, r.microBatches, r.cfg.TokensPerStep(), Hyper{
			LR: rates.At(step), Beta1: r.cfg.Beta1, Beta2: r.cfg.Beta2, Eps: r.cfg.Eps, WeightDecay: r.cfg.decayPerLR(), Step: step, Seed: r.cfg.Seed,
		})
		if before != nil {
			if err := r.report(*before, false, nil); err != nil {
				return err
			}
		}
		if err != nil && errors.Is(err, ctx.Err()) {
			r.result.Interrupted = true
			return r.data.batches.Restore(position)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		r.step, r.tokens = step, r.tokens+int64(r.cfg.TokensPerStep())
		r.told = false
		r.pending = Metrics{Step: step, LR: rates.At(step), Tokens: r.tokens}
		if err := r.breakFor(ctx, step); err != nil {
			return err
		}
	}
	if err := r.settle(nil); err != nil || r.hooks.Control == nil {
		return err
	}
	return r.hooks.Control.finish()
}

// hold does what the control asks for before a step. The step that is submitted is reported first, but not settled: a loss scale that knew of it
// one step earlier would give other bits.
func (r *run) hold(ctx context.Context) error {
	if r.hooks.Control == nil {
		return nil
	}
	var start time.Time
	err := r.hooks.Control.between(ctx, func() error {
		s, err := r.steps.Peek()
		start = time.Now()
		if err != nil || s == nil || r.told {
			return err
		}
		err = r.report(*s, true, nil)
		r.told = true
		return err
	})
	if !start.IsZero() {
		r.rate.pause(time.Since(start))
	}
	return err
}

// breakFor evaluates and samples after a step, where they are due.
func (r *run) breakFor(ctx context.Context, step int) error {
	due := func(every int) bool { return every > 0 && step%every == 0 }
	evaluate, sample := due(r.cfg.EvalEvery) || step == r.cfg.Steps, due(r.cfg.SampleEvery)
	if !evaluate && !sample {
		return nil
	}
	var val func(*Metrics) error
	if evaluate {
		val = func(m *Metrics) error { return r.evaluate(ctx, m) }
	}
	if err := r.settle(val); err != nil {
		return err
	}
	if !sample || r.hooks.Sample == nil {
		return nil
	}
	start := time.Now()
	defer func() { r.rate.pause(time.Since(start)) }()
	text, err := r.Write(ctx, Continuation{Tokens: r.cfg.SampleTokens, Sampler: Sampler{Temperature: 0.8}, Seed: r.cfg.Seed, Draw: uint64(step)})
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if errors.Is(err, errNotFinite) {
		return &DivergedError{Step: step, What: "the logits of a sample are not finite", Config: r.cfg}
	}
	if err != nil {
		return err
	}
	return r.hooks.Sample(step, text)
}

// settle waits for the submitted step, evaluates if asked to, and reports it.
func (r *run) settle(evaluate func(*Metrics) error) error {
	done, err := r.steps.Drain()
	if err != nil || done == nil {
		return err
	}
	return r.report(*done, true, evaluate)
}

// report completes the pending step's metrics, once. last says that no step has been submitted behind it.
func (r *run) report(s Scalars, last bool, evaluate func(*Metrics) error) error {
	if r.told {
		return nil
	}
	m := r.pending
	m.Loss, m.GradNorm, m.LossScale, m.Skipped, m.Diagnosis = s.Loss, s.GradNorm, s.LossScale, s.Skipped, s.Diagnosis
	m.TokensPerSec = r.rate.step(time.Now())
	m.Seconds = r.rate.alone(last, m.Diagnosis == nil && !m.Skipped)
	broken := notFinite(m)
	if evaluate != nil && broken == "" {
		start := time.Now()
		err := evaluate(&m)
		r.rate.pause(time.Since(start))
		switch broken = notFinite(m); {
		case errors.Is(err, tasks.ErrNotFinite):
			broken = err.Error()
		case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
			r.result.Interrupted = true
		case err != nil:
			return err
		}
	}
	m.Elapsed = time.Since(r.began).Seconds()
	r.result.Last = m
	if m.Skipped {
		r.result.Skipped++
	}
	if r.hooks.Step != nil {
		if err := r.hooks.Step(m); err != nil {
			return err
		}
	}
	if broken != "" {
		return &DivergedError{Step: m.Step, What: broken, Initial: m.Step == 1 && !m.Evaluated, Config: r.cfg}
	}
	return nil
}

// notFinite says what of a step is not finite, or nothing.
func notFinite(m Metrics) string {
	switch {
	case !isFinite(m.Loss):
		return fmt.Sprintf("the loss is %g", m.Loss)
	case m.Skipped && m.LossScale <= leastLossScale:
		return fmt.Sprintf("gradients overflow in f16 with a loss scale of %g", m.LossScale)
	case !isFinite(m.GradNorm) && !m.Skipped:
		return fmt.Sprintf("the gradient's norm is %g", m.GradNorm)
	case m.Evaluated && !isFinite(m.ValLoss):
		return fmt.Sprintf("the validation loss is %g", m.ValLoss)
	}
	return ""
}

// microBatches deals out the data of the next step. Its targets are all kept.
func (t *Trainer) microBatches(yield func(Batch) bool) {
	for range t.cfg.Accumulation {
		if !yield(t.data.TrainBatch()) {
			return
		}
	}
}

// Evaluate gives the mean loss over the validation text in nats per token, over eval_batches of it at most.
func (t *Trainer) Evaluate(ctx context.Context) (float64, error) {
	return t.eval.Loss(ctx, t.data.ValBatches())
}

// Write continues a prompt with the model as it is, and returns what was added.
func (t *Trainer) Write(ctx context.Context, c Continuation) (string, error) {
	return write(ctx, t.generate, t.data.Tokenizer, c)
}

// Save writes the checkpoint to a folder.
func (t *Trainer) Save(dir string) error {
	info := checkpoint.Info{
		Model: t.cfg.Model.Config, Tokenizer: t.data.Tokenizer.Kind(), Step: t.step, Tokens: t.tokens, Seed: t.cfg.Seed,
	}
	return saveCheckpoint(dir, info, t.store, t.data.Tokenizer)
}

// Close frees what New made, not the device.
func (t *Trainer) Close() error {
	var errs []error
	if t.steps != nil {
		errs = append(errs, t.steps.Close())
	}
	if t.eval != nil {
		errs = append(errs, t.eval.Close())
	}
	if t.generate != nil {
		errs = append(errs, t.generate.Close())
	}
	if t.store != nil {
		errs = append(errs, t.store.Close())
	}
	return errors.Join(errs...)
}
