package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/model"
)

// Evaluator computes mean losses of batches with the parameters of a store.
type Evaluator struct {
	exe   backend.Executable
	vocab int
}

// NewEvaluator compiles EvalProgram over a store that has the model's parameters.
func NewEvaluator(dev backend.Backend, store backend.Store, cfg model.Config, o ProgramOptions) (*Evaluator, error) {
	p, err := EvalProgram(cfg, o)
	if err != nil {
		return nil, err
	}
	exe, err := dev.Compile(p, store)
	if err != nil {
		return nil, fmt.Errorf("the evaluation does not compile: %w", err)
	}
	return &Evaluator{exe, cfg.VocabSize}, nil
}

// Loss is the mean over all kept targets of batches, in nats. It gives up when ctx is done.
func (e *Evaluator) Loss(ctx context.Context, batches []Batch) (float64, error) {
	type run struct {
		tick backend.Ticket
		kept int
	}
	var before *run
	sum, kept := 0.0, 0
	read := func(r *run) error {
		if r == nil {
			return nil
		}
		mean, err := fetchFloat(e.exe, r.tick, OutputLoss)
		sum += mean * float64(r.kept)
		kept += r.kept
		return err
	}
	for _, b := range batches {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		k := b.kept()
		if k == 0 {
			continue
		}
		if err := b.check(e.vocab); err != nil {
			return 0, err
		}
		if err := feedBatch(e.exe, b, appendFloat(nil, 1/float64(k))); err != nil {
			return 0, err
		}
		tick, err := e.exe.Submit()
		if err != nil {
			return 0, err
		}
		if err := read(before); err != nil {
			return 0, err
		}
		before = &run{tick, k}
	}
	if err := read(before); err != nil {
		return 0, err
	}
	if kept == 0 {
		return 0, errors.New("an evaluation has no target: every one is ignored")
	}
	return sum / float64(kept), nil
}

// Close frees the program.
func (e *Evaluator) Close() error { return e.exe.Close() }
