package train

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/vktrain/vktrain/data"
	"github.com/vktrain/vktrain/tasks"
)

// Passages turns a task's requests into tokens as lm-evaluation-harness does: end of text, context, continuation, where the continuation's tokens are those of
// both together after the context's, and white space at the context's end is the continuation's. A context that does not fit the window (the model's seq_len)
// loses its beginning: cut counts those. A continuation that does not fit is an error that names its file and line.
func Passages(t tasks.Task, tok data.Tokenizer, window int) (all []Passage, cut int, err error) {
	text, context := "", []int32(nil) // of the request before, which is often this one's too
	for _, r := range t.Requests() {
		trimmed := strings.TrimRightFunc(r.Context, unicode.IsSpace)
		if context == nil || trimmed != text {
			text, context = trimmed, append([]int32{tok.EndOfText()}, tok.Encode(trimmed)...)
		}
		tokens := append([]int32{tok.EndOfText()}, tok.Encode(r.Context+r.Continuation)...)
		scored := len(tokens) - len(context)
		switch {
		case scored < 1:
			return nil, 0, fmt.Errorf("%s has no token of its own: its context's last word takes it up", t.At(r))
		case scored > window:
			return nil, 0, fmt.Errorf("%s has %d tokens, and the model sees %d: take a model with a longer seq_len, or a lower limit, or leave the document out", t.At(r), scored, window)
		}
		if over := len(tokens) - (window + 1); over > 0 {
			tokens = tokens[over:]
			cut++
		}
		all = append(all, Passage{slices.Clip(tokens), scored})
	}
	return all, cut, nil
}

// taskPassages is a task ready to be scored.
type taskPassages struct {
	tasks.Task
	passages []Passage
	cut      int
}

func allPassages(list []tasks.Task, tok data.Tokenizer, window int) ([]taskPassages, error) {
	var all []taskPassages
	for _, t := range list {
		passages, cut, err := Passages(t, tok, window)
		if err != nil {
			return nil, err
		}
		all = append(all, taskPassages{t, passages, cut})
	}
	return all, nil
}

// score gives the results of tasks. tell, where it is not nil, is called as they go on.
func (s *Scorer) score(ctx context.Context, all []taskPassages, tell func(task string, done, all int)) ([]tasks.Result, error) {
	var results []tasks.Result
	for _, t := range all {
		if tell != nil {
			s.Progress = func(done, all int) { tell(t.Name, done, all) }
		}
		sums, err := s.LogLikelihoods(ctx, t.passages)
		if err != nil {
			return nil, err
		}
		r, err := t.Score(sums)
		if err != nil {
			return nil, err
		}
		r.Cut = t.cut
		results = append(results, r)
	}
	return results, nil
}

// Score gives the results of the config's tasks with the parameters as they are, in their order.
func (t *Trainer) Score(ctx context.Context) ([]tasks.Result, error) {
	if len(t.tasks) == 0 {
		return nil, nil
	}
	return NewScorer(t.dev, t.store, t.cfg.Model.Config, t.cfg.programOptions()).score(ctx, t.tasks, nil)
}

// evaluate adds the validation loss to a step's metrics, and to the last step's what the tasks come to.
func (r *run) evaluate(ctx context.Context, m *Metrics) error {
	val, err := r.Evaluate(ctx)
	if err != nil {
		return err
	}
	m.ValLoss, m.Evaluated = val, true
	if r.data.Floor != nil {
		m.ValFloor = r.data.Floor.Realised
	}
	r.result.ValLoss = val
	if m.Step == r.cfg.Steps && len(r.tasks) > 0 && isFinite(val) {
		if r.hooks.Score != nil {
			if err := r.hooks.Score(); err != nil {
				return err
			}
		}
		began := time.Now()
		m.Tasks, err = r.Score(ctx)
		m.Scoring = time.Since(began).Seconds()
	}
	return err
}
