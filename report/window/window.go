package window

import (
	"context"
	"fmt"
	"image"
	"sync/atomic"
	"time"

	"github.com/vktrain/vktrain/train"
)

// Options says what a window shows and what its keys do. Each function may be nil.
type Options struct {
	Title string
	Steps int    // of the run
	UUID  string // of the Vulkan device that shows it, if it can: see vulkan.DeviceInfo

	Control    *train.Control                                  // of the run, which the keys pause; it also has the checkpoints saved
	Checkpoint func() error                                    // saves one; called between two steps, in the run's goroutine
	Picture    func(step int, img image.Image) (string, error) // saves a picture, and says where; called in the window's thread
	Closed     func()                                          // called when somebody closes the window while the run goes on, to end that
	Warn       func(string)                                    // is told what goes wrong with the window, and does no harm to the run
	Validate   bool                                            // turns Vulkan's validation layer on, as VKTRAIN_VALIDATE=1 does
}

// Window is a board that is seen. It is used by the run's goroutine.
type Window struct {
	*Board
	opts Options
	quit atomic.Bool
	gone chan struct{}       // closed when the window is
	do   chan func(*display) // tests call what only the window's thread may
}

func newWindow(opts Options) *Window {
	w := &Window{Board: NewBoard(opts.Title, opts.Steps), opts: opts, gone: make(chan struct{}), do: make(chan func(*display))}
	if opts.Closed != nil {
		w.shown.closing = "ends the run"
	}
	return w
}

// End shows that the run is over.
func (w *Window) End() { w.end() }

// Wait returns when somebody closes the window, or when ctx is done.
func (w *Window) Wait(ctx context.Context) {
	select {
	case <-w.gone:
	case <-ctx.Done():
	}
}

// IsClosed says whether the window is gone.
func (w *Window) IsClosed() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// Close closes the window, if nobody has.
func (w *Window) Close() {
	w.quit.Store(true)
	<-w.gone
}

func (w *Window) warn(err error) {
	if w.opts.Warn != nil {
		w.opts.Warn(err.Error())
	}
}

// closedBySomebody ends the run, or lets it go on.
func (w *Window) closedBySomebody() {
	if w.opts.Closed != nil && !w.isOver() {
		w.opts.Closed()
	}
	w.letGo()
}

// letGo lets a paused run go on: there is nothing left to do that with.
func (w *Window) letGo() {
	if w.opts.Control != nil {
		w.opts.Control.Continue()
	}
}

// Actions of the keys.
type action int

const (
	pauseOrContinue action = iota
	oneStep
	savePicture
	saveCheckpoint
)

// act does what a key asks for; img is the picture that is shown, nil before the first.
func (w *Window) act(a action, img image.Image) {
	c := w.opts.Control
	switch {
	case a == savePicture:
		w.savePicture(img)
	case w.isOver():
		w.Say("the run is over")
	case c == nil:
		w.Say("this run can't be paused")
	case a == oneStep:
		c.Step()
	case a == saveCheckpoint:
		w.askForCheckpoint(c)
	case c.Paused():
		c.Continue()
	default:
		c.Pause()
	}
	w.followControl()
}

// followControl shows whether the run is paused.
func (w *Window) followControl() {
	if c := w.opts.Control; c != nil && c.Paused() != w.isPaused() && !w.isOver() {
		w.setPaused(c.Paused())
	}
}

func (w *Window) savePicture(img image.Image) {
	if w.opts.Picture == nil || img == nil {
		w.Say("no place for pictures")
		return
	}
	path, err := w.opts.Picture(w.step(), img)
	if err != nil {
		w.Say("the picture is not saved: %v", err)
		return
	}
	w.Say("picture: %s", path)
}

// askForCheckpoint has one saved before the next step. One that fails is no reason to end the run.
func (w *Window) askForCheckpoint(c *train.Control) {
	if w.opts.Checkpoint == nil {
		w.Say("no place for checkpoints")
		return
	}
	w.Say("a checkpoint will be saved after this step")
	c.Do(func() error {
		if err := w.opts.Checkpoint(); err != nil {
			w.Say("the checkpoint is not saved: %v", err)
			w.warn(fmt.Errorf("the checkpoint is not saved: %w", err))
			return nil
		}
		w.Say("checkpoint of step %d is saved", w.step())
		return nil
	})
}

// A picture is drawn when there is news, but not within soonest of the one before, nor within share times what that one took to draw.
const (
	soonest = 250 * time.Millisecond
	share   = 30
)

// pace says when the next picture may be drawn.
type pace struct{ next time.Time }

func (p *pace) drew(began, ended time.Time) {
	p.next = ended.Add(max(soonest, share*ended.Sub(began)))
}
