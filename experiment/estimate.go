package experiment

import (
	"context"
	"errors"
	"time"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/train"
)

// Estimate is about how long an experiment takes.
type Estimate struct {
	Runs  []time.Duration // by run, finished or not
	Total time.Duration   // of those that are not finished, side by side where workers are
	Kinds []string        // of devices, by run
}

const (
	// measuredSteps are timed, after those of the warm-up.
	measuredSteps = 3
	// startup is about what a run takes for its text, its tokenizer and its programs.
	startup = 500 * time.Millisecond
)

// EstimateTime opens the devices and times some steps of the first combination on one of each kind. Others are taken to need time as they need FLOPs,
// and an evaluation a third of what training on its tokens does.
func EstimateTime(ctx context.Context, m *Matrix, o Options, states []State) (est Estimate, err error) {
	e := &engine{Matrix: m, Options: o}
	groups, err := e.groups()
	if err != nil {
		return est, err
	}
	defer func() { err = errors.Join(err, closeAll(groups)) }()
	first := withVocab(m.Combinations[0].Config)
	perFLOP := make([]float64, len(groups)) // seconds, on a worker that has its device to itself
	for i, g := range groups {
		precision, err := train.Storage(first.Precision, g.info.Kind)
		if err != nil {
			return est, err
		}
		steps, err := bench.Steps(ctx, g.workers[0].dev, []bench.Model{{
			Name: "first", Config: first.Model.Config, Recompute: first.Recompute, Precision: precision.String(),
		}}, bench.StepOptions{Batch: first.Batch, SeqLen: first.SeqLen, Steps: measuredSteps})
		if err != nil {
			return est, err
		}
		perFLOP[i] = steps[0].MsPerStep / 1e3 / (tokenFLOPs(first) * float64(first.Batch*first.SeqLen))
	}
	busy := make([]time.Duration, len(groups))
	for i, r := range m.Runs {
		g := m.groupOf(r.Seed, len(groups))
		t := startup + time.Duration(perFLOP[g]*work(withVocab(r.Config))*float64(time.Second))
		est.Runs, est.Kinds = append(est.Runs, t), append(est.Kinds, groups[g].kind)
		if states[i].Result == nil {
			busy[g] += t
		}
	}
	for i, t := range busy {
		est.Total = max(est.Total, t/time.Duration(len(groups[i].workers)))
	}
	return est, nil
}

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
	evaluations := 2 // before the first step and after the last
	if c.EvalEvery > 0 {
		evaluations = 1 + (c.Steps+c.EvalEvery-1)/c.EvalEvery
	}
	return tokenFLOPs(c) * (tokens + float64(evaluations*c.EvalBatches*c.Batch*c.SeqLen)/3)
}

// Params is how many parameters a run's model has at most: where the tokenizer decides on the vocabulary, it may be less.
func (r Run) Params() (n int, most bool) {
	return withVocab(r.Config).Model.NumParams(), r.Config.Model.VocabSize == 0
}

// Work weighs runs against each other: about how many FLOPs one takes.
func (r Run) Work() float64 { return work(withVocab(r.Config)) }
