package experiment

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/tasks"
	"github.com/vktrain/vktrain/train"
)

// runOne trains a run in its folder from its first step to its last, and writes its result. When ctx is done the error is ctx's, and there
// is no result.
func runOne(ctx context.Context, dev backend.Backend, r Run, set map[string]string, dir string, o Options, step func(train.Metrics)) (result *RunResult, err error) {
	// Before anything else: metrics of one run must not be beside the result of another.
	if err := os.Remove(filepath.Join(dir, RunFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	fresh := o.Jobs <= 1 && len(o.Devices) <= 1 && freshResident()
	t, err := train.New(ctx, r.Config, dev)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	folder, err := train.CreateFolder(dir, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := folder.WriteConfig(t.Config()); err != nil {
		return nil, err
	}
	result = &RunResult{
		Format: resultFormat, ID: r.ID, Seed: r.Seed, Settings: set, Hash: hashOf(set), Device: deviceName(dev.Info()), Precision: t.Config().Precision,
		Params: t.Config().Model.NumParams(), Vocab: t.Config().Model.VocabSize, Cost: &Cost{Work: t.Work(), Need: t.Need()},
	}
	if err := result.train(ctx, t, folder, step); err != nil {
		return nil, err
	}
	if fresh {
		result.Cost.Resident = bench.PeakResident()
	}
	if o.Checkpoints && result.Broken == nil {
		if err := t.Save(dir); err != nil {
			return nil, err
		}
	}
	return result, writeJSONFile(filepath.Join(dir, RunFile), result)
}

// train runs t and takes the figures.
func (r *RunResult) train(ctx context.Context, t *train.Trainer, folder *train.Folder, step func(train.Metrics)) error {
	began := time.Now()
	initial, err := t.Evaluate(ctx)
	if err != nil {
		return err
	}
	evaluation := time.Since(began).Seconds()
	var lines []train.Metrics
	done, err := t.Run(ctx, train.Hooks{Step: func(m train.Metrics) error {
		lines = append(lines, m)
		step(m)
		return folder.Append(m)
	}})
	var diverged *train.DivergedError
	switch {
	case errors.As(err, &diverged):
		r.Broken = &Broken{Step: diverged.Step, What: diverged.What}
	case err != nil:
		return err
	case done.Interrupted: // in the last evaluation or the scoring too
		return ctx.Err()
	}
	r.Steps, r.Tokens, r.Figures = done.Steps, done.Tokens, measure(lines)
	r.Figures.set(metricInitialLoss, initial)
	r.Cost.work(r.Figures)
	r.Cost.Time = TimeSteps(lines, t.Config().TokensPerStep())
	r.Cost.Time.Evaluation = evaluation
	if r.Broken != nil {
		return nil
	}
	r.tasks(lines[len(lines)-1].Tasks)
	r.Figures.set(MetricValLoss, done.ValLoss)
	r.Figures.set(MetricBitsPerByte, t.Dataset().BitsPerByte(done.ValLoss))
	if floor := t.Dataset().Floor; floor != nil {
		r.Figures.set("above_floor", done.ValLoss-floor.Realised)
	}
	return nil
}

// tasks takes the accuracies of a run's tasks and their average.
func (r *RunResult) tasks(all []tasks.Result) {
	if len(all) == 0 {
		return
	}
	r.Tasks = all
	for _, t := range all {
		r.Figures.set(taskMetric(tasks.Acc, t.Task), t.Acc)
		if t.AccNorm != nil {
			r.Figures.set(taskMetric(tasks.AccNorm, t.Task), *t.AccNorm)
		}
	}
	r.Figures.set(MetricAverage, tasks.Average(all))
}

// threads ends the name of a CPU: how many there were does not change what they computed.
var threads = regexp.MustCompile(`, \d+ threads?\b`)

// deviceName is what a device is known by in results.
func deviceName(info backend.Info) string { return KindOf(info.String()) }

// KindOf is the name in results of a device that calls itself so.
func KindOf(device string) string { return threads.ReplaceAllString(device, "") }
