package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/train"
	"github.com/vktrain/vktrain/train/device"
)

// worker trains one run after another on a device of its own.
type worker struct {
	device  string
	threads int
	dev     backend.Backend
}

// group is the workers on devices of one kind, whose bits are the same.
type group struct {
	kind    string // the devices' name in results
	info    backend.Info
	workers []*worker
	queue   []int // runs, by their index
}

// groups opens the devices. The CPU has as many workers as there are jobs, and they share its threads.
func (e *engine) groups() (all []*group, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(all))
		}
	}()
	names := e.Devices
	if len(names) == 0 {
		names = []string{device.Auto}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return all, badf("", "devices: %s is there twice: use jobs for runs side by side on the CPU", name)
		}
		first, err := e.start(&all, name, e.share(name))
		if err != nil {
			return all, err
		}
		if first.Backend != device.CPU {
			continue
		}
		for range max(1, e.Jobs) - 1 {
			if _, err := e.start(&all, name, e.share(device.CPU)); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// share is how many threads of the CPU a worker gets.
func (e *engine) share(name string) int {
	if e.Jobs <= 1 || name != device.CPU && name != device.Auto {
		return e.Threads
	}
	all := e.Threads
	if all == 0 {
		all = cpu.DefaultThreads()
	}
	return max(1, all/e.Jobs)
}

// start opens a device for a new worker, and puts that into its group.
func (e *engine) start(all *[]*group, name string, threads int) (backend.Info, error) {
	dev, err := e.open(name, threads)
	if err != nil {
		return backend.Info{}, err
	}
	info := dev.Info()
	kind := deviceName(info)
	i := slices.IndexFunc(*all, func(g *group) bool { return g.kind == kind })
	if i < 0 {
		i = len(*all)
		*all = append(*all, &group{kind: kind, info: info})
	}
	g := (*all)[i]
	g.workers = append(g.workers, &worker{name, threads, dev})
	return info, nil
}

func closeAll(all []*group) error {
	var errs []error
	for _, g := range all {
		for _, w := range g.workers {
			if w.dev != nil {
				errs = append(errs, w.dev.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// groupOf gives the group of a seed: its runs are compared with each other, and so they are all of one kind of device.
func (m *Matrix) groupOf(seed uint64, groups int) int { return slices.Index(m.Seeds, seed) % groups }

// trainMissing trains what has no result yet.
func (e *engine) trainMissing(ctx context.Context) (err error) {
	if !slices.Contains(e.results, nil) {
		return nil
	}
	if e.Cost > 0 {
		if err := removeCost(e.Out); err != nil {
			return err
		}
	}
	groups, err := e.groups()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(groups)) }()
	if err := e.checkPrecision(groups); err != nil {
		return err
	}
	e.enqueue(groups)
	if err := e.checkTogether(groups); err != nil {
		return err
	}
	var workers sync.WaitGroup
	for _, g := range groups {
		for _, w := range g.workers {
			workers.Go(func() { e.work(ctx, g, w) })
		}
	}
	workers.Wait()
	return nil
}

// enqueue gives each group the runs that have no result.
func (e *engine) enqueue(groups []*group) {
	for i, r := range e.Runs {
		if e.results[i] == nil {
			g := groups[e.groupOf(r.Seed, len(groups))]
			g.queue = append(g.queue, i)
		}
	}
}

// checkPrecision refuses auto where it means different formats.
func (e *engine) checkPrecision(groups []*group) error {
	for _, c := range e.Combinations {
		first, err := train.Storage(c.Config.Precision, groups[0].info.Kind)
		if err != nil {
			return err
		}
		for _, g := range groups[1:] {
			if other, err := train.Storage(c.Config.Precision, g.info.Kind); err != nil || other != first {
				return errors.Join(err, badf("", "precision: %s is %s on %s and %s on %s: set it in base", c.Config.Precision, first, groups[0].kind, other, g.kind))
			}
		}
	}
	return nil
}

// work trains runs of the group's queue until it is empty or ctx is done.
func (e *engine) work(ctx context.Context, g *group, w *worker) {
	next := func() (int, bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(g.queue) == 0 || ctx.Err() != nil {
			return 0, false
		}
		i := g.queue[0]
		g.queue = g.queue[1:]
		return i, true
	}
	for i, ok := next(); ok; i, ok = next() {
		r := e.Runs[i]
		result, err := e.attempt(ctx, w, i)
		switch {
		case err == nil:
			e.results[i] = result // each run is one worker's
			e.tell(Event{Kind: EventDone, Run: r, Result: result})
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return
		default:
			err = fmt.Errorf("%s: %w", r.ID, err)
			e.mu.Lock()
			e.failed = append(e.failed, err)
			e.mu.Unlock()
			e.tell(Event{Kind: EventFailed, Run: r, Err: err})
		}
	}
}

// attempt trains a run. After an error the worker's device is opened anew, for it may be lost.
func (e *engine) attempt(ctx context.Context, w *worker, i int) (*RunResult, error) {
	r := e.Runs[i]
	if w.dev == nil {
		var err error
		if w.dev, err = e.open(w.device, w.threads); err != nil {
			return nil, err
		}
	}
	e.tell(Event{Kind: EventStart, Run: r, Device: w.device})
	r.Config.Device = w.device
	result, err := runOne(ctx, w.dev, r, e.settings[i], e.dir(r), e.Options, func(m train.Metrics) {
		e.tell(Event{Kind: EventStep, Run: r, Metrics: m})
	})
	if err != nil {
		err = errors.Join(err, w.dev.Close())
		w.dev = nil
	}
	return result, err
}
