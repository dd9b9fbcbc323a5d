package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/train"
	"github.com/vktrain/vktrain/train/device"
)

// Options say how an experiment is run. None of them changes what it comes to, but for Devices: bits are a device's own.
type Options struct {
	Out     string   // the experiment's folder
	Devices []string // names as package device has them; empty: auto. Runs of one seed go to devices of one kind
	Jobs    int      // runs side by side on the CPU, which share its threads; 0: 1
	Threads int      // of the CPU, in all; 0: its default
	Replace bool     // train runs again whose settings have changed, instead of refusing
	// Open opens a device; nil: device.Open. Workers call it at the same time.
	Open func(name string, threads int) (backend.Backend, error)
	// Watch is told what happens, one event at a time; nil: nobody is.
	Watch func(Event)

	Checkpoints bool // set by Execute
}

// Event is something that happened to a run.
type Event struct {
	Kind    EventKind
	Run     Run
	Device  string        // of EventStart and EventTurns
	Metrics train.Metrics // of EventStep
	Result  *RunResult    // of EventKept and EventDone
	Err     error         // of EventFailed
	Text    string        // of EventTurns: of what
}

// EventKind says what happened.
type EventKind int

// The kinds of events.
const (
	EventKept   EventKind = iota // the run was finished before
	EventStart                   // it begins
	EventStep                    // a step is done
	EventDone                    // the run is finished
	EventFailed                  // it ended with an error, and will be trained again next time
	EventTurns                   // steps of combinations are timed in turns: no run's
)

// IncompleteError says that some runs have no result: there is no table yet.
type IncompleteError struct {
	Done, All, Failed int
	First             error // of the failed runs; nil if none failed
}

func (e *IncompleteError) Error() string {
	s := fmt.Sprintf("%d of %d runs are finished", e.Done, e.All)
	if e.First != nil {
		s += fmt.Sprintf(", %d failed: %v", e.Failed, e.First)
	}
	return s
}

// Unwrap gives the first failure.
func (e *IncompleteError) Unwrap() error { return e.First }

// engine is a call of Execute.
type engine struct {
	*Matrix
	Options
	settings []map[string]string // by run
	results  []*RunResult        // by run; nil while there is none

	mu     sync.Mutex
	failed []error
}

// Execute trains every run that is not finished, and writes the results to the folder. When ctx is done it ends in order, with an error that wraps ctx's; the
// same call goes on from there. It may be killed at any time. Runs that fail do not keep the others from being trained: the error is an
// *IncompleteError. A *train.ConfigError says that the folder holds finished runs with other settings.
func Execute(ctx context.Context, m *Matrix, o Options) (*Results, error) {
	o.Checkpoints = m.Checkpoints
	e, unlock, err := newEngine(m, o, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := errors.Join(removeTemporary(o.Out), e.keepSource()); err != nil {
		return nil, err
	}
	if err := e.trainMissing(ctx); err != nil {
		return nil, err
	}
	if err := e.incomplete(ctx); err != nil {
		return nil, err
	}
	results := m.Summarize(e.results)
	if err := results.Write(o.Out); err != nil {
		return nil, err
	}
	return results, e.takeTurns(ctx) // last: what was trained is on the disk, whatever becomes of them
}

// State is where a run stands.
type State struct {
	Run     Run
	Result  *RunResult // nil unless it is finished
	Changed string     // how the settings of a finished run differ; empty if they do not
}

// Look says where each run stands, and leaves the folder as it is.
func Look(m *Matrix, o Options) ([]State, error) {
	o.Replace = true
	e := &engine{Matrix: m, Options: o}
	if err := e.hash(); err != nil {
		return nil, err
	}
	states := make([]State, len(m.Runs))
	for i, r := range m.Runs {
		result, changed, err := e.finished(i)
		if err != nil {
			return nil, err
		}
		states[i] = State{r, result, changed}
	}
	return states, nil
}

// newEngine locks the folder and finds what is finished.
func newEngine(m *Matrix, o Options, lock bool) (e *engine, unlock func(), err error) {
	if o.Jobs < 0 || o.Jobs > cpu.MaxThreads {
		return nil, nil, badf("", "jobs: %d is not possible: use 1 to %d", o.Jobs, cpu.MaxThreads)
	}
	if err := train.CheckFolder(o.Out); err != nil {
		if errors.Is(err, train.ErrHasRun) {
			return nil, nil, fmt.Errorf("%w: an experiment wants a folder of its own", err)
		}
		return nil, nil, err
	}
	e = &engine{Matrix: m, Options: o, results: make([]*RunResult, len(m.Runs))}
	if err := e.hash(); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Out, RunsFolder), 0o777); err != nil {
		return nil, nil, fmt.Errorf("the experiment's folder can't be made: %w", err)
	}
	if unlock, err = lockFolder(o.Out); err != nil {
		return nil, nil, err
	}
	if err := e.findFinished(); err != nil {
		unlock()
		return nil, nil, err
	}
	return e, unlock, nil
}

// lockFolder keeps other programs from running an experiment in a folder.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("the experiment's folder can't be locked: %w", err)
	}
	if !tryLock(f) {
		_ = f.Close()
		return nil, fmt.Errorf("%s is in use: another vktrain runs an experiment there", dir)
	}
	return func() { _ = f.Close() }, nil
}

// hash finds the settings of every run.
func (e *engine) hash() error {
	texts, documents := map[string]string{}, map[train.TasksConfig]string{}
	for _, r := range e.Runs {
		path := r.Config.Data.Path
		text, ok := texts[path]
		if !ok {
			var err error
			if text, err = textHash(path); err != nil {
				return err
			}
			texts[path] = text
		}
		scored, ok := documents[r.Config.Tasks]
		if !ok {
			var err error
			if scored, err = tasksHash(r.Config.Tasks); err != nil {
				return err
			}
			documents[r.Config.Tasks] = scored
		}
		s, err := settings(r.Config, text, scored)
		if err != nil {
			return err
		}
		e.settings = append(e.settings, s)
	}
	return nil
}

func (e *engine) dir(r Run) string { return filepath.Join(e.Out, RunsFolder, r.ID) }

// finished reads a run's result. changed says how its settings were others.
func (e *engine) finished(i int) (result *RunResult, changed string, err error) {
	result, err = readResult(e.dir(e.Runs[i]))
	if err != nil || result == nil {
		return nil, "", err
	}
	if result.Hash != hashOf(e.settings[i]) {
		return nil, changes(result.Settings, e.settings[i]), nil
	}
	return result, "", nil
}

func (e *engine) findFinished() error {
	other, first := 0, ""
	for i, r := range e.Runs {
		result, changed, err := e.finished(i)
		if err != nil {
			return err
		}
		if e.results[i] = result; result != nil {
			e.tell(Event{Kind: EventKept, Run: r, Result: result})
		}
		if changed != "" {
			if other++; first == "" {
				first = fmt.Sprintf("%s had %s", r.ID, changed)
			}
		}
	}
	if other > 0 && !e.Replace {
		return badf("", "%s holds %d finished runs with other settings (%s): give another --out, or --replace to train them again", e.Out, other, first)
	}
	return nil
}

// keepSource writes the experiment's file beside its results.
func (e *engine) keepSource() error {
	if e.Source == nil {
		return nil
	}
	return writeFile(filepath.Join(e.Out, ExperimentFile), e.Source)
}

func (e *engine) tell(event Event) {
	if e.Watch == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Watch(event)
}

// incomplete says what is missing, or nothing.
func (e *engine) incomplete(ctx context.Context) error {
	short := &IncompleteError{All: len(e.Runs), Failed: len(e.failed)}
	for _, r := range e.results {
		if r != nil {
			short.Done++
		}
	}
	if short.Done == short.All {
		return nil
	}
	if short.First = ctx.Err(); len(e.failed) > 0 {
		short.First = e.failed[0]
	}
	return short
}

// open opens a device for a worker.
func (e *engine) open(name string, threads int) (backend.Backend, error) {
	if e.Open != nil {
		return e.Open(name, threads)
	}
	dev, _, err := device.Open(name, device.Options{Threads: threads})
	return dev, err
}
