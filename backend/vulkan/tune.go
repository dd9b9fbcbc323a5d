//go:build cgo

package vulkan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

const (
	// tuneBudget bounds what tuning adds to a first run. Shapes that it leaves out get the rule's kernel from then on, so that later runs have the same
	// bits; Tune has no such bound.
	tuneBudget = 10 * time.Second
	// tuneRuns is how often a kernel is timed after it has run once.
	tuneRuns = 5
	// tuneEnough: a kernel that has run so long is not timed again.
	tuneEnough = 50 * time.Millisecond
	// tuneGain is how much faster than the rule's kernel another must be: clocks waver by less.
	tuneGain = 1.03
)

// tuner measures the kernels that a node can choose from.
type tuner struct {
	b       *Backend
	file    tuningFile
	conform func(b backend.Backend, n *graph.Node) error
	seconds func(e *Executable) (float64, error) // of a program of one node
	budget  time.Duration

	mu    sync.Mutex // around a measurement
	table sync.Mutex // around known
	known tuning
}

// shapeOf is a node with its kernels.
type shapeOf struct {
	node  *graph.Node
	shape string
	names []string
	rule  string
}

func (s *shapeOf) op() string { return s.node.Op.String() }

// start reads what is known and lets lowerings ask for it. Options.Tuning is not nil.
func (t *tuner) start(b *Backend) {
	t.b, t.file, t.conform, t.budget = b, newTuningFile(b.opts, &b.physical.DeviceInfo), b.opts.Tuning.Conform, tuneBudget
	t.known = t.file.read()
	t.known.Device = b.physical.Name
	t.seconds = func(e *Executable) (float64, error) { return run(e) }
	b.caps.chosen = t.chosen
}

// chosen is what a lowering is told.
func (t *tuner) chosen(n *graph.Node, shape string, names []string) string {
	t.table.Lock()
	defer t.table.Unlock()
	if c := t.known.find(n.Op.String(), shape, names[0]); c != nil {
		return c.Kernel
	}
	return ""
}

// shapes are those of programs for which there is a choice.
func (t *tuner) shapes(programs ...*graph.Program) []shapeOf {
	var list []shapeOf
	caps := t.b.capsNow()
	caps.chosen = func(n *graph.Node, shape string, names []string) string {
		same := func(s shapeOf) bool { return s.node.Op == n.Op && s.shape == shape }
		if len(names) > 1 && !slices.ContainsFunc(list, same) {
			list = append(list, shapeOf{n, shape, names, names[0]})
		}
		return ""
	}
	for _, p := range programs {
		for _, n := range p.Nodes() {
			_, _ = t.b.lower(caps, n) // an error is Compile's to tell
		}
	}
	return list
}

// prepare measures the shapes of a program that are new, on a device that is tuned by itself: one that is no CPU, has a clock, and whose choices are
// kept, since to choose anew each time could give each run other bits.
func (t *tuner) prepare(p *graph.Program) error {
	if t.b == nil || t.file.path == "" || t.b.physical.Limits.TimestampNanos == 0 {
		return nil
	}
	if o := t.b.opts.Tuning; !o.Measure || t.b.physical.Kind == backend.Software && !o.Software {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	missing := slices.DeleteFunc(t.shapes(p), func(s shapeOf) bool { return t.known.find(s.op(), s.shape, s.rule) != nil })
	if len(missing) == 0 {
		return nil
	}
	_, err := t.measureAll(t.b.opts.Context, missing, time.Now().Add(t.budget))
	return err
}

// Tune measures every kernel that the nodes of programs can choose from, whatever is known, and keeps the result for this and later runs. It needs
// Options.Tuning. When ctx is done it ends after the kernel in progress, with ctx's error, and what was known of the shapes that are left stays.
func (b *Backend) Tune(ctx context.Context, programs ...*graph.Program) ([]Choice, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	t := &b.tuner
	switch {
	case t.b == nil:
		return nil, errors.New("vulkan: tuning is turned off")
	case t.file.path == "" && !b.opts.NoCache:
		return nil, errors.New("vulkan: there is no folder to keep what is measured: set HOME or XDG_CACHE_HOME")
	case b.physical.Limits.TimestampNanos == 0:
		return nil, fmt.Errorf("vulkan: %s has %w", b.physical.Name, ErrNoTimestamps)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file.path != "" { // before minutes are spent on what cannot be kept
		if err := t.file.write(t.known); err != nil {
			return nil, fmt.Errorf("vulkan: what is measured cannot be kept, and runs would not take it: %w", err)
		}
	}
	t.table.Lock()
	t.known.Tests = map[string]string{}
	t.table.Unlock()
	return t.measureAll(ctx, t.shapes(programs...), time.Time{})
}

// Choices are the kernels that the nodes of programs get.
func (b *Backend) Choices(programs ...*graph.Program) []Choice {
	t := tuner{b: b}
	var list []Choice
	for _, s := range t.shapes(programs...) {
		c := Choice{Op: s.op(), Shape: s.shape, Kernel: s.rule, Rule: s.rule, Why: "not measured"}
		b.tuner.table.Lock()
		if known := b.tuner.known.find(c.Op, c.Shape, c.Rule); known != nil && b.tuner.b != nil && slices.Contains(s.names, known.Kernel) {
			c = *known
		}
		b.tuner.table.Unlock()
		list = append(list, c)
	}
	return list
}

// measureAll measures shapes until a time, if it is not zero; those that are left get the rule's kernel.
func (t *tuner) measureAll(ctx context.Context, shapes []shapeOf, until time.Time) ([]Choice, error) {
	total, done := 0, 0
	for _, s := range shapes {
		total += len(s.names)
	}
	step := func() {
		if t.b.opts.Tuning.Progress != nil {
			t.b.opts.Tuning.Progress(done, total)
		}
		done++
	}
	list := make([]Choice, len(shapes))
	for i, s := range shapes {
		c := Choice{Op: s.op(), Shape: s.shape, Kernel: s.rule, Rule: s.rule, Why: "not measured: there was no time"}
		if until.IsZero() || time.Now().Before(until) {
			var err error
			if c, err = t.measure(ctx, s, step); err != nil {
				if passing(err) && t.file.path != "" {
					_ = t.file.write(t.known) // with the shapes before
				}
				return nil, err
			}
		}
		list[i] = c
		t.table.Lock()
		t.known.set(c)
		t.table.Unlock()
	}
	if t.b.opts.Tuning.Progress != nil {
		t.b.opts.Tuning.Progress(total, total)
	}
	if t.file.path != "" {
		_ = t.file.write(t.known) // what cannot be kept is measured again
	}
	return list, nil
}

// measure times the kernels for a shape and takes the fastest that conforms. An error is a lost device's, or ctx's.
func (t *tuner) measure(ctx context.Context, s shapeOf, step func()) (Choice, error) {
	c := Choice{Op: s.op(), Shape: s.shape, Kernel: s.rule, Rule: s.rule}
	p := graph.Alone(s.node)
	store, err := t.b.NewStore(p.Vars())
	if err != nil {
		c.Why = fmt.Sprintf("not measured: %v", err)
		return c, t.b.usable()
	}
	defer store.Close()
	for _, name := range s.names {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		step()
		k := KernelTime{Kernel: name}
		if k.Seconds, err = t.time(p, store, name); err != nil {
			k.Refused = err.Error()
		}
		if err := errors.Join(t.b.usable(), t.b.opts.Context.Err()); err != nil {
			return c, err
		}
		c.Times = append(c.Times, k)
	}
	rank := func(k KernelTime) float64 {
		switch {
		case k.Refused != "":
			return math.Inf(1)
		case k.Kernel == s.rule:
			return k.Seconds / tuneGain
		}
		return k.Seconds
	}
	slices.SortStableFunc(c.Times, func(a, b KernelTime) int { return cmp.Compare(rank(a), rank(b)) })
	for i := range c.Times {
		k := &c.Times[i]
		if k.Refused != "" {
			break
		}
		if err := ctx.Err(); err != nil {
			return c, err
		}
		if k.Refused = t.verdict(s.node, k.Kernel); k.Refused == "" {
			c.Kernel = k.Kernel
			return c, t.b.usable()
		}
		if err := t.b.opts.Context.Err(); err != nil { // why it was refused
			return c, err
		}
	}
	c.Why = "every kernel was refused"
	return c, t.b.usable()
}

// time gives the least time of a kernel, in seconds.
func (t *tuner) time(p *graph.Program, store backend.Store, name string) (best float64, err error) {
	e, err := t.b.compile(p, store, t.b.capsNow(), t.b.forced(name, false))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for i, spent := 0, 0.0; i <= tuneRuns && (i < 2 || spent < tuneEnough.Seconds()); i++ {
		seconds, err := t.seconds(e)
		if err != nil {
			return 0, err
		}
		if spent += seconds; i == 1 || i > 1 && seconds < best { // the first run may have compiled the kernel
			best = seconds
		}
	}
	return best, nil
}

// verdict says why a kernel does not conform, "" if it does.
func (t *tuner) verdict(n *graph.Node, name string) string {
	key := n.Op.String() + " " + name + " " + formats(n)
	why, ok := t.known.Tests[key]
	if !ok {
		if err := t.conform(&forcedBackend{t.b, t.b.forced(name, true)}, n); err != nil {
			why = cmp.Or(err.Error(), "it does not conform")
			if passing(err) || t.b.opts.Context.Err() != nil {
				return why
			}
		}
		t.table.Lock()
		t.known.Tests[key] = why
		t.table.Unlock()
	}
	return why
}

// forced is the backend's lowering with one kernel wherever there is a choice; strict refuses nodes for which there is none, and those of which the kernel
// would get float32 stand-ins.
func (b *Backend) forced(name string, strict bool) lowerFunc {
	return func(_ *deviceCaps, n *graph.Node) ([]dispatch, error) {
		caps, had := b.capsNow(), false
		caps.chosen = func(*graph.Node, string, []string) string {
			had = true
			return name
		}
		if strict && caps.needsWide(n) {
			return nil, caps.unsupported(n, "kernel %s does not take it as it is", name)
		}
		list, err := b.lower(caps, n)
		if strict && err == nil && !had {
			return nil, caps.unsupported(n, "kernel %s does not take it", name)
		}
		return list, err
	}
}

// forcedBackend compiles with a lowering of its own.
type forcedBackend struct {
	*Backend
	own lowerFunc
}

func (f *forcedBackend) ScratchBytes(p *graph.Program) int64 {
	scratch, tables := f.scratchBytes(p, f.capsNow(), f.own)
	return scratch + tables
}

func (f *forcedBackend) SharedBytes(programs ...*graph.Program) int64 {
	return f.sharedBytes(programs, func(*graph.Program) (*deviceCaps, error) { return f.capsNow(), nil }, f.own)
}

func (f *forcedBackend) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	e, err := f.compile(p, s, f.capsNow(), f.own)
	if err != nil {
		return nil, err
	}
	return e, nil
}
