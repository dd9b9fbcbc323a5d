package train

import (
	"context"
	"sync"
)

// Control lets other goroutines pause a run, take it step by step, and have something done between two of its steps: see Hooks.Control. The
// zero value lets the run go. None of it changes what the run computes.
type Control struct {
	mu     sync.Mutex
	paused bool
	steps  int // to take all the same
	asked  []func() error
	wake   chan struct{} // closed when one of these has changed; nil while nobody waits
}

// Pause holds the run before its next step. Each step that was taken is reported first.
func (c *Control) Pause() { c.change(func() { c.paused, c.steps = true, 0 }) }

// Continue lets a paused run go on.
func (c *Control) Continue() { c.change(func() { c.paused, c.steps = false, 0 }) }

// Step lets one more step through, and pauses the run that is not paused.
func (c *Control) Step() {
	c.change(func() {
		if c.paused {
			c.steps++
		}
		c.paused = true
	})
}

// Paused says whether the run is held, or will be at its next step.
func (c *Control) Paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused && c.steps == 0
}

// Do asks for a function to be called once between two steps, in Run's goroutine: it may use the Trainer, to save a checkpoint for instance. The step before
// it has been reported. Its error ends the run. A run that is paused calls it at once, one that ends well at its end.
func (c *Control) Do(f func() error) { c.change(func() { c.asked = append(c.asked, f) }) }

func (c *Control) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// next takes what is to be done before the next step: functions to call, or a channel to wait for, or neither.
func (c *Control) next() (asked []func() error, wait <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.asked) > 0:
		asked, c.asked = c.asked, nil
		return asked, nil
	case !c.paused:
		return nil, nil
	case c.steps > 0:
		c.steps--
		return nil, nil
	}
	if c.wake == nil {
		c.wake = make(chan struct{})
	}
	return nil, c.wake
}

// between does what was asked for and holds the run, until it may go on or ctx is done. It calls settle before either, and nothing where there is nothing to do.
func (c *Control) between(ctx context.Context, settle func() error) error {
	for settled := false; ; settled = true {
		asked, wait := c.next()
		if asked == nil && wait == nil {
			return nil
		}
		if !settled {
			if err := settle(); err != nil {
				return err
			}
		}
		if err := callAll(asked); err != nil {
			return err
		}
		if wait == nil {
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil
		}
	}
}

// finish does what was asked for during the last step.
func (c *Control) finish() error {
	c.mu.Lock()
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	return callAll(asked)
}

func callAll(list []func() error) error {
	for _, f := range list {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
