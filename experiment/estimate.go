package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vktrain/vktrain/internal/bootstrap"
	"github.com/vktrain/vktrain/train"
)

// Estimate is about how long an experiment takes.
type Estimate struct {
	Runs  []time.Duration // by run; 0 of finished ones
	Turns time.Duration   // of steps in turns (Experiment.Cost)
	Total time.Duration   // of what is not finished, side by side where workers are
	Kinds []string        // of devices, by run
	Short int             // runs that were tried, shortened
}

const (
	// shortSteps are those of a run that is tried, and shortDiagnosed how many steps lie between its diagnosed ones.
	shortSteps     = 8
	shortDiagnosed = 4
	// tryFor is for how long runs are tried on each kind of device. Those that are left are taken to need time as they need FLOPs.
	tryFor = 20 * time.Second
)

// tried is what a shortened run took, in seconds.
type tried struct {
	fixed      float64 // opening the text, making programs, writing
	step       float64
	diagnosed  float64 // a diagnosed step
	evaluation float64
	flops      float64 // of a step
}

// size is what runs have in common that take about the same time for each thing that they do.
type size struct {
	flops                                  float64 // a token
	batch, seq, accumulation, evalBatches  int
	precision, masters, moments, recompute string
	text, tokenizer                        string
	vocab                                  int
	diagnosed                              bool
	tasks                                  train.TasksConfig
}

// sizes are the runs that were tried.
type sizes map[size]tried

func sizeOf(c train.Config) size {
	return size{
		flops: tokenFLOPs(c), batch: c.Batch, seq: c.SeqLen, accumulation: c.Accumulation, evalBatches: c.EvalBatches, precision: c.Precision, masters: c.Masters, moments: c.Moments,
		recompute: string(c.Recompute), text: c.Data.Path, tokenizer: c.Data.Tokenizer, vocab: c.Model.VocabSize, diagnosed: c.DiagnosticsEvery > 0,
		tasks: c.Tasks,
	}
}

// EstimateTime opens the devices and trains a few steps of one run of each size, from its text to its result, on one of each kind; on all workers of the kind at once,
// as they will be. A run's time is then that of its steps, diagnosed steps, evaluations, and all that it does once.
func EstimateTime(ctx context.Context, m *Matrix, o Options, states []State) (est Estimate, err error) {
	o.Checkpoints, o.Watch = m.Checkpoints, nil
	e := &engine{Matrix: m, Options: o, results: make([]*RunResult, len(m.Runs))}
	for i, s := range states {
		e.results[i] = s.Result
	}
	groups, err := e.groups()
	if err != nil {
		return est, err
	}
	defer func() { err = errors.Join(err, closeAll(groups)) }()
	e.enqueue(groups)
	if err := e.checkTogether(groups); err != nil {
		return est, err
	}
	est.Runs, est.Kinds = make([]time.Duration, len(m.Runs)), make([]string, len(m.Runs))
	for i, r := range m.Runs {
		est.Kinds[i] = groups[m.groupOf(r.Seed, len(groups))].kind
	}
	for _, g := range groups {
		tried, err := e.try(ctx, g)
		if err != nil {
			return est, err
		}
		est.Short += len(tried)
		free := make([]float64, len(g.workers)) // when each worker is
		for _, i := range g.queue {
			t := tried.like(withVocab(m.Runs[i].Config))
			seconds := t.fixed + t.of(counts(m.Runs[i].Config))
			est.Runs[i] = duration(seconds)
			free[slices.Index(free, slices.Min(free))] += seconds
		}
		est.Total = max(est.Total, duration(slices.Max(free)))
		if e.Cost > 0 && len(tried) > 0 {
			est.Turns += e.turnsTime(tried)
		}
	}
	est.Total += est.Turns
	return est, nil
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// try runs one of each size that is not finished.
func (e *engine) try(ctx context.Context, g *group) (sizes, error) {
	all := sizes{}
	began := time.Now()
	for _, i := range g.queue {
		key := sizeOf(withVocab(e.Runs[i].Config))
		if _, ok := all[key]; ok || len(all) > 0 && time.Since(began) > tryFor {
			continue
		}
		t, err := e.tryAll(ctx, g, e.Runs[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Runs[i].ID, err)
		}
		all[key] = t
	}
	return all, nil
}

// tryAll tries a run on all workers of a group at once, or as many as there are runs, and takes the mean.
func (e *engine) tryAll(ctx context.Context, g *group, r Run) (tried, error) {
	workers := g.workers[:min(len(g.workers), len(g.queue))]
	all, errs := make([]tried, len(workers)), make([]error, len(workers))
	var done sync.WaitGroup
	for i, w := range workers {
		done.Go(func() { all[i], errs[i] = e.tryOne(ctx, w, r) })
	}
	done.Wait()
	sum := all[0]
	for _, t := range all[1:] {
		sum.fixed, sum.step, sum.diagnosed, sum.evaluation = sum.fixed+t.fixed, sum.step+t.step, sum.diagnosed+t.diagnosed, sum.evaluation+t.evaluation
	}
	n := float64(len(all))
	return tried{sum.fixed / n, sum.step / n, sum.diagnosed / n, sum.evaluation / n, sum.flops}, errors.Join(errs...)
}

func (e *engine) tryOne(ctx context.Context, w *worker, r Run) (t tried, err error) {
	dir, err := os.MkdirTemp("", "vktrain-dry-run-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := withVocab(r.Config)
	t.flops = tokenFLOPs(c) * float64(c.TokensPerStep())
	r.Config = shortened(r.Config)
	var times []float64
	var last train.Metrics
	began := time.Now()
	result, err := runOne(ctx, w.dev, r, nil, dir, e.Options, func(m train.Metrics) {
		last = m
		if m.Timed() {
			times = append(times, m.Seconds)
		}
	})
	if err != nil {
		return t, err
	}
	wall := time.Since(began).Seconds()
	t.evaluation = result.Cost.Time.Evaluation
	n := counts(r.Config)
	training := max(0, last.Elapsed-t.evaluation*float64(n.evaluations-1)-last.Scoring) // all evaluations but the first are in it, of a run that did not diverge
	if t.step = training / float64(result.Steps); len(times) > 0 {
		t.step = bootstrap.Median(times)
	}
	if t.diagnosed = t.step; n.diagnosed > 0 {
		t.diagnosed = max(t.step, (training-t.step*float64(n.steps-n.diagnosed))/float64(n.diagnosed))
	}
	t.fixed = max(0, wall-t.of(n))
	return t, nil
}

// shortened is a run's config with few steps.
func shortened(c train.Config) train.Config {
	c = c.Resolve()
	if c.Steps <= shortSteps {
		return c
	}
	c.Steps, c.Warmup, c.EvalEvery, c.SampleEvery = shortSteps, min(c.Warmup, shortSteps), 0, 0
	if c.DiagnosticsEvery > 0 {
		c.DiagnosticsEvery = shortDiagnosed
	}
	return c
}

// count is how often a run does what takes time.
type count struct{ steps, diagnosed, evaluations int }

func counts(c train.Config) count {
	c = c.Resolve()
	n := count{steps: c.Steps, evaluations: 2} // before the first step and after the last
	if c.EvalEvery > 0 {
		n.evaluations = 1 + (c.Steps+c.EvalEvery-1)/c.EvalEvery
	}
	if every := c.DiagnosticsEvery; every > 0 {
		n.diagnosed = c.Steps / every
		if every > 1 {
			n.diagnosed++ // the first
		}
		if c.Steps%every != 0 {
			n.diagnosed++ // the last
		}
		n.diagnosed = min(n.diagnosed, c.Steps)
	}
	return n
}

// of is the time of what is counted.
func (t tried) of(n count) float64 {
	return t.step*float64(n.steps-n.diagnosed) + t.diagnosed*float64(n.diagnosed) + t.evaluation*float64(n.evaluations)
}

// like is what a run of the config would have taken: as that of its size, or as that nearest in FLOPs, scaled by these.
func (s sizes) like(c train.Config) tried {
	if t, ok := s[sizeOf(c)]; ok {
		return t
	}
	var t tried
	flops, least := tokenFLOPs(c)*float64(c.TokensPerStep()), math.Inf(1)
	for _, other := range s {
		if far := math.Abs(math.Log(other.flops / flops)); far < least {
			t, least = other, far
		}
	}
	more := flops / t.flops
	return tried{t.fixed, t.step * more, t.diagnosed * more, t.evaluation * more, flops}
}

// turnsTime is about what steps in turns take.
func (e *engine) turnsTime(sizes sizes) time.Duration {
	seconds := 0.0
	for _, c := range e.Combinations {
		seconds += float64(e.Cost+turnsMore) * sizes.like(withVocab(c.Config)).step
	}
	return duration(seconds)
}

// turnsMore is about how many steps' time a combination takes beside its turns: two before them, a profile of three, and compiling.
const turnsMore = 6

// withVocab is a config with the most tokens that its tokenizer may have, where that is not known yet.
func withVocab(c train.Config) train.Config {
	c = c.Resolve()
	if c.Model.VocabSize == 0 {
		c.Model.VocabSize = c.Data.VocabSize
	}
	return c
}

func tokenFLOPs(c train.Config) float64 { return c.Model.CausalFLOPsPerToken(c.SeqLen) }

// work is a run's FLOPs. Where evaluations read the whole validation text, which is not known yet, they are left out.
func work(c train.Config) float64 {
	tokens := float64(c.Steps) * float64(c.TokensPerStep())
	return tokenFLOPs(c) * (tokens + float64(counts(c).evaluations*c.EvalBatches*c.Batch*c.SeqLen)/3)
}

// Params is how many parameters a run's model has at most: where the tokenizer decides on the vocabulary, it may be less.
func (r Run) Params() (n int, most bool) {
	return withVocab(r.Config).Model.NumParams(), r.Config.Model.VocabSize == 0
}

// Work weighs runs against each other: about how many FLOPs one takes.
func (r Run) Work() float64 { return work(withVocab(r.Config)) }
