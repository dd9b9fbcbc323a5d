package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/rng"
)

// Batch is the data of one micro-batch: B sequences of T tokens, one after the other.
type Batch struct {
	Tokens  []int32 // (B, T)
	Targets []int32 // (B, T); graph.IgnoreTarget leaves a position out
}

// kept counts the targets that the loss takes.
func (b Batch) kept() int {
	n := 0
	for _, t := range b.Targets {
		if t != graph.IgnoreTarget {
			n++
		}
	}
	return n
}

// check finds what the programs would pass over in silence: a token that has no row, a target that has no column and is not IgnoreTarget.
func (b Batch) check(vocab int) error {
	for i, t := range b.Tokens {
		if t < 0 || int(t) >= vocab {
			return fmt.Errorf("token %d of a batch is %d, outside the vocabulary of %d", i, t, vocab)
		}
	}
	for i, t := range b.Targets {
		if t != graph.IgnoreTarget && (t < 0 || int(t) >= vocab) {
			return fmt.Errorf("target %d of a batch is %d, outside the vocabulary of %d: use %d to leave a position out", i, t, vocab, graph.IgnoreTarget)
		}
	}
	return nil
}

// vocabOf is the number of classes that a program's loss is over.
func vocabOf(p *graph.Program) int {
	for _, n := range p.Nodes() {
		if n.Op == graph.OpCrossEntropy {
			return n.In[0].Shape().Last()
		}
	}
	return 0
}

// Hyper is what AdamW is fed in each step.
type Hyper struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Step                               int    // from 1, for the moments' bias corrections, and the rounding of masters in bf16
	Seed                               uint64 // of that rounding
}

// rounding gives the key of a step: the seed and the step are all there is to know of it.
func (h Hyper) rounding() []byte {
	var raw []byte
	for _, word := range rng.New(h.Seed, "rounding", rng.Num(h.Step)).State().Key() {
		raw = binary.LittleEndian.AppendUint32(raw, word)
	}
	return raw
}

// bytes gives the operand in the order of graph.HyperLR and so on. The corrections 1 - beta^t are taken in float64: in float32
// they would lose their digits at the first steps.
func (h Hyper) bytes() []byte {
	var x [graph.HyperLen]float64
	x[graph.HyperLR], x[graph.HyperEps], x[graph.HyperWeightDecay] = h.LR, h.Eps, h.WeightDecay
	x[graph.HyperBeta1], x[graph.HyperBeta2] = h.Beta1, h.Beta2
	x[graph.HyperBias1] = 1 - math.Pow(h.Beta1, float64(h.Step))
	x[graph.HyperBias2] = 1 - math.Pow(h.Beta2, float64(h.Step))
	raw := make([]byte, 0, 4*len(x))
	for _, f := range x {
		raw = appendFloat(raw, f)
	}
	return raw
}

// Scalars are what a step gives back.
type Scalars struct {
	Loss      float64 // mean over the step's kept targets
	GradNorm  float64 // before clipping
	LossScale float64 // that the step ran with; 0 where programs have none
	Skipped   bool    // its gradients overflowed with that scale, and the device left it out

	Diagnosis *Diagnosis // of a diagnosed step; else nil
}

// Stepper runs training steps over a store: one program a step, or with more than one micro-batch the accumulate program for
// each and then the apply program. It does not wait for the device: a step's scalars are read after the next one has been
// submitted.
type Stepper struct {
	plain     stepPrograms
	diagnosed stepPrograms // run in place of plain in steps that are to be diagnosed; none without Diagnostics
	diagnose  bool         // the next step

	store      backend.Store
	sums       []graph.Var // the accumulators
	vocab      int
	scale      *LossScale // nil where programs have none
	growth     int        // steps after which it is doubled
	stochastic bool       // rounding of masters

	pending    bool               // a step is submitted and not read
	micro      backend.Executable // that ran last of the pending step, and before apply where there is one
	apply      backend.Executable
	microTick  backend.Ticket
	applyTick  backend.Ticket
	reads      *stepPrograms // the pending step's, where it is diagnosed
	partialSum float64       // of the pending step's losses that have been read
	usedScale  float64       // the pending step's
}

// stepPrograms are the compiled programs of a step.
type stepPrograms struct {
	micro, apply backend.Executable // apply is nil if a step has one micro-batch
	diagnostics  *Diagnostics       // nil of plain ones
	outputs      map[string]int     // the size of each output in bytes
}

func compileStep(dev backend.Backend, store backend.Store, programs []*graph.Program) (s stepPrograms, err error) {
	s.outputs = map[string]int{}
	for i, p := range programs {
		e, err := dev.Compile(p, store)
		if err != nil {
			return s, errors.Join(fmt.Errorf("the training step does not compile: %w", err), s.close())
		}
		if i == 0 {
			s.micro = e
		} else {
			s.apply = e
		}
		for _, o := range p.Outputs() {
			s.outputs[o.Name] = o.Value.Bytes()
		}
	}
	return s, nil
}

func (s stepPrograms) close() error {
	var errs []error
	for _, e := range s.executables() {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// StepperPrograms records what a Stepper runs: the step, or accumulate and apply.
func StepperPrograms(cfg model.Config, o ProgramOptions, accumulation int) ([]*graph.Program, error) {
	if accumulation == 1 {
		p, err := StepProgram(cfg, o)
		return []*graph.Program{p}, err
	}
	accumulate, err := AccumulateProgram(cfg, o)
	if err != nil {
		return nil, err
	}
	apply, err := ApplyProgram(cfg, o)
	return []*graph.Program{accumulate, apply}, err
}

// NewStepper compiles StepperPrograms over a store that has their variables.
func NewStepper(dev backend.Backend, store backend.Store, programs []*graph.Program) (*Stepper, error) {
	s := &Stepper{store: store, vocab: vocabOf(programs[0]), growth: defaultScaleGrowth}
	if programs[0].Input(InputScale) != nil {
		s.scale = &LossScale{Scale: defaultLossScale}
	}
	s.stochastic = programs[len(programs)-1].Input(InputRounding) != nil
	for _, v := range programs[0].Vars() {
		if strings.HasPrefix(v.Name, PrefixGrad) {
			s.sums = append(s.sums, v)
		}
	}
	var err error
	if s.plain, err = compileStep(dev, store, programs); err != nil {
		return nil, err
	}
	return s, nil
}

// NewDiagnosingStepper is NewStepper that can also diagnose: programs and those of diagnosed steps, which were recorded with d, are alike in all else.
func NewDiagnosingStepper(dev backend.Backend, store backend.Store, programs, diagnosed []*graph.Program, d *Diagnostics) (*Stepper, error) {
	more, err := compileStep(dev, store, diagnosed) // first: programs that follow may do with its memory
	if err != nil {
		return nil, err
	}
	s, err := NewStepper(dev, store, programs)
	if err != nil {
		return nil, errors.Join(err, more.close())
	}
	s.diagnosed, s.diagnosed.diagnostics = more, d
	return s, nil
}

// Diagnose makes the next step that is submitted a diagnosed one. Without Diagnostics it does nothing.
func (s *Stepper) Diagnose() { s.diagnose = s.diagnosed.diagnostics != nil }

// Submit starts a step, and returns the scalars of the step before, nil for the first and after Drain.
func (s *Stepper) Submit(batches []Batch, h Hyper) (previous *Scalars, err error) {
	kept := 0
	for _, b := range batches {
		kept += b.kept()
	}
	return s.SubmitEach(context.Background(), slices.Values(batches), kept, h)
}

// SubmitEach is Submit of micro-batches that are made one at a time, for which the caller knows how many targets they keep in all. When ctx is
// done between two of them it takes the step back: nothing of it is left, and the error is ctx's, beside the previous step's scalars.
func (s *Stepper) SubmitEach(ctx context.Context, batches iter.Seq[Batch], kept int, h Hyper) (previous *Scalars, err error) {
	if kept == 0 {
		return nil, errors.New("a step has no target to learn from: every one is ignored")
	}
	inv, rounding, scale := appendFloat(nil, 1/float64(kept)), h.rounding(), 0.0
	if s.scale != nil {
		scale = s.scale.Scale
		h.Step = max(1, h.Step-s.scale.Skipped) // moments have seen those alone that were taken
	}
	hyper := h.bytes()
	first, found := true, 0
	programs, reads := s.plain, (*stepPrograms)(nil)
	if s.diagnose {
		programs, reads, s.diagnose = s.diagnosed, &s.diagnosed, false
	}
	for b := range batches {
		if !first && ctx.Err() != nil {
			return previous, cmp.Or(s.takeBack(), ctx.Err())
		}
		found += b.kept()
		micro := s.plain.micro
		if found == kept { // the last
			micro = programs.micro
		}
		if err := b.check(s.vocab); err != nil {
			return nil, err
		}
		if err := feedBatch(micro, b, inv); err != nil {
			return nil, err
		}
		if err := s.feedScale(micro, scale); err != nil {
			return nil, err
		}
		if programs.apply == nil {
			if err := s.feedHyper(micro, hyper, rounding); err != nil {
				return nil, err
			}
		}
		tick, err := micro.Submit()
		if err != nil {
			return nil, err
		}
		if first {
			previous, err = s.Drain()
		} else {
			err = s.readLoss()
		}
		if err != nil {
			return nil, err
		}
		s.micro, s.microTick, first = micro, tick, false
	}
	if found != kept {
		return nil, fmt.Errorf("a step's micro-batches keep %d targets, but its mean was taken over %d", found, kept)
	}
	if s.apply = programs.apply; s.apply != nil {
		if err := cmp.Or(s.feedHyper(s.apply, hyper, rounding), s.feedScale(s.apply, scale)); err != nil {
			return nil, err
		}
		if s.applyTick, err = s.apply.Submit(); err != nil {
			return nil, err
		}
	}
	s.pending, s.usedScale, s.reads = true, scale, reads
	return previous, nil
}

// SetLossScale sets the state, and after how many steps without an overflow the scale is doubled. Programs that are not in f16 have none.
func (s *Stepper) SetLossScale(state LossScale, growth int) {
	if s.scale != nil {
		*s.scale, s.growth = state, growth
	}
}

// LossScale is the state after the steps that were read, nil where programs have none. With a pending step it is not yet the whole truth: see Drain.
func (s *Stepper) LossScale() *LossScale { return s.scale }

func (s *Stepper) feedScale(e backend.Executable, scale float64) error {
	if s.scale == nil {
		return nil
	}
	return e.Feed(InputScale, appendFloat(nil, scale))
}

func (s *Stepper) feedHyper(e backend.Executable, hyper, rounding []byte) error {
	if err := e.Feed(InputHyper, hyper); err != nil || !s.stochastic {
		return err
	}
	return e.Feed(InputRounding, rounding)
}

// takeBack waits for the micro-batches of a step that goes no further, and clears what they have added up.
func (s *Stepper) takeBack() error {
	if err := s.readLoss(); err != nil {
		return err
	}
	s.partialSum = 0
	for _, v := range s.sums {
		err := backend.WriteParts(s.store, v, func(part []byte, _ int) error {
			clear(part)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stepper) readLoss() error {
	loss, err := fetchFloat(s.micro, s.microTick, OutputLoss)
	s.partialSum += loss
	return err
}

// Peek waits for the pending step and returns its scalars, nil if there is none. It stays pending: Drain, or the next Submit, returns them again.
func (s *Stepper) Peek() (*Scalars, error) {
	if !s.pending {
		return nil, nil
	}
	loss, err := fetchFloat(s.micro, s.microTick, OutputLoss)
	if err != nil {
		return nil, err
	}
	last, tick := s.micro, s.microTick
	if s.apply != nil {
		last, tick = s.apply, s.applyTick
	}
	norm, err := fetchFloat(last, tick, OutputGradNorm)
	if err != nil {
		return nil, err
	}
	done := &Scalars{Loss: s.partialSum + loss, GradNorm: norm, LossScale: s.usedScale, Skipped: s.scale != nil && !isFinite(norm)}
	if s.reads != nil {
		if done.Diagnosis, err = s.readDiagnosis(); err != nil {
			return nil, err
		}
	}
	return done, nil
}

func (s *Stepper) readDiagnosis() (*Diagnosis, error) {
	scale := 1.0
	if s.scale != nil {
		scale = s.usedScale
	}
	p := s.reads
	return p.diagnostics.read(func(output string) ([]byte, error) {
		e, tick := s.micro, s.microTick
		if p.diagnostics.inApply[output] {
			e, tick = s.apply, s.applyTick
		}
		raw := make([]byte, p.outputs[output])
		return raw, e.Fetch(tick, output, raw)
	}, scale)
}

// Drain waits for the pending step and returns its scalars, nil if there is none.
func (s *Stepper) Drain() (*Scalars, error) {
	done, err := s.Peek()
	if done == nil || err != nil {
		return nil, err
	}
	if s.scale != nil {
		s.scale.after(s.usedScale, done.GradNorm, s.growth)
	}
	s.pending, s.partialSum, s.reads = false, 0, nil
	return done, nil
}

// Executables are the compiled programs of a step that is not diagnosed, in the order of StepperPrograms: for a profile, or their memory.
func (s *Stepper) Executables() []backend.Executable { return s.plain.executables() }

// DiagnosedExecutables are those of a diagnosed step, none without Diagnostics.
func (s *Stepper) DiagnosedExecutables() []backend.Executable { return s.diagnosed.executables() }

func (s stepPrograms) executables() (list []backend.Executable) {
	for _, e := range []backend.Executable{s.micro, s.apply} {
		if e != nil {
			list = append(list, e)
		}
	}
	return list
}

// Close waits for what runs.
func (s *Stepper) Close() error {
	return errors.Join(s.plain.close(), s.diagnosed.close())
}

func feedBatch(e backend.Executable, b Batch, invCount []byte) error {
	if err := e.Feed(InputTokens, intBytes(b.Tokens)); err != nil {
		return err
	}
	if err := e.Feed(InputTargets, intBytes(b.Targets)); err != nil {
		return err
	}
	return e.Feed(InputInvCount, invCount)
}

func fetchFloat(e backend.Executable, t backend.Ticket, output string) (float64, error) {
	raw := make([]byte, 4)
	if err := e.Fetch(t, output, raw); err != nil {
		return 0, err
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))), nil
}

func appendFloat(raw []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f)))
}

func intBytes(x []int32) []byte {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
	}
	return raw
}
