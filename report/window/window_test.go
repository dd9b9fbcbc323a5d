package window

import (
	"context"
	"errors"
	"image"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/train"
)

// smallRun trains a tiny model in another goroutine, to its end when the test has one.
func smallRun(t *testing.T, w func(*train.Control) *Window) (*Window, chan train.Result) {
	t.Helper()
	var all []train.Assignment
	for _, s := range []string{"model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.n_kv_heads=1", "model.head_dim=8", "model.d_ff=24", "data.vocab_size=280",
		"seq_len=16", "batch=2", "steps=6", "warmup=2", "eval_every=3", "eval_batches=2", "sample_every=0"} {
		a, err := train.ParseAssignment(s)
		require.NoError(t, err)
		all = append(all, a)
	}
	cfg, err := train.Load(all)
	require.NoError(t, err)
	dev, err := cpu.New(cpu.Options{Threads: 1})
	require.NoError(t, err)
	tr, err := train.New(context.Background(), cfg, dev)
	require.NoError(t, err)
	c := &train.Control{}
	c.Pause()
	win := w(c)
	done, ended := make(chan train.Result, 1), make(chan struct{})
	go func() {
		defer close(ended)
		r, err := tr.Run(context.Background(), train.Hooks{Control: c, Step: func(m train.Metrics) error { win.Add(m); return nil }})
		if err == nil {
			done <- r
		}
		close(done)
	}()
	t.Cleanup(func() {
		c.Continue()
		<-ended
		require.NoError(t, errors.Join(tr.Close(), dev.Close()))
	})
	return win, done
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 20*time.Second, 10*time.Millisecond, what)
}

func (b *Board) notes(s string) func() bool {
	return func() bool { p, _ := b.copy(); return p.note == s }
}

// What the keys stand for, with a run that obeys.
func TestActions(t *testing.T) {
	saved := make(chan int, 1)
	var w *Window
	w, done := smallRun(t, func(c *train.Control) *Window {
		w = newWindow(Options{Steps: 6, Control: c, Checkpoint: func() error { saved <- w.step(); return nil }})
		return w
	})
	w.followControl()
	require.True(t, w.isPaused())
	w.act(oneStep, nil)
	w.act(oneStep, nil)
	eventually(t, "two steps", func() bool { return w.step() == 2 })
	w.act(saveCheckpoint, nil)
	require.Equal(t, 2, <-saved, "while the run is paused")
	eventually(t, "word of it", w.notes("checkpoint of step 2 is saved"))
	w.act(pauseOrContinue, nil)
	require.Equal(t, 6, (<-done).Steps)
	w.End()
	w.act(pauseOrContinue, nil)
	require.True(t, w.notes("the run is over")())
	require.False(t, w.opts.Control.Paused())
	p, _ := w.copy()
	require.Equal(t, "over", p.state())
}

// What can't be saved is told in the window and does not end the run.
func TestActionsThatFail(t *testing.T) {
	full := errors.New("no space left")
	warned := make(chan string, 1)
	w, done := smallRun(t, func(c *train.Control) *Window {
		return newWindow(Options{Control: c, Checkpoint: func() error { return full }, Warn: func(s string) { warned <- s },
			Picture: func(int, image.Image) (string, error) { return "", full }})
	})
	w.act(saveCheckpoint, nil)
	require.Contains(t, <-warned, "no space left")
	eventually(t, "word of it", w.notes("the checkpoint is not saved: no space left"))
	w.act(savePicture, nil)
	require.True(t, w.notes("no place for pictures")(), "there is none yet")
	w.act(savePicture, image.NewRGBA(image.Rect(0, 0, 1, 1)))
	require.True(t, w.notes("the picture is not saved: no space left")())
	w.act(pauseOrContinue, nil)
	require.Equal(t, 6, (<-done).Steps)
}

// A window that is closed lets a paused run go on; only one that is told to, and not after the run, ends it.
func TestClosing(t *testing.T) {
	for _, ends := range []bool{false, true} {
		w := newWindow(Options{Control: &train.Control{}})
		ended := 0
		if ends {
			w = newWindow(Options{Control: &train.Control{}, Closed: func() { ended++ }})
		}
		w.opts.Control.Pause()
		w.closedBySomebody()
		require.False(t, w.opts.Control.Paused())
		w.End()
		w.closedBySomebody()
		require.Equal(t, ends, ended == 1, "ended %d times", ended)
		p, _ := w.copy()
		require.Equal(t, map[bool]string{false: "leaves the run alone", true: "ends the run"}[ends], p.closing)
	}
}

// Pictures take a small part of the time, however slow they are.
func TestPace(t *testing.T) {
	var p pace
	began := time.Unix(1000, 0)
	require.False(t, began.Before(p.next), "the first may come at once")
	p.drew(began, began.Add(time.Millisecond))
	require.Equal(t, began.Add(time.Millisecond+soonest), p.next)
	p.drew(began, began.Add(time.Second))
	require.Equal(t, began.Add(31*time.Second), p.next)
}
