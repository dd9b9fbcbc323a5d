package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan"
	"github.com/vktrain/vktrain/report/window"
	"github.com/vktrain/vktrain/train"
)

// windowFlags are --window and --window-ends-run.
type windowFlags struct{ show, endsRun bool }

func (f *windowFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.show, "window", false, "show the run while it trains, in a window that stays until it is closed; needs a program built with -tags window")
	c.Flags().BoolVar(&f.endsRun, "window-ends-run", false, "closing the window ends the run, as Ctrl-C does; without it the run goes on")
}

// check finds what is wrong before anything is opened.
func (f *windowFlags) check() error {
	if !f.show {
		if f.endsRun {
			return usagef("--window-ends-run says what closing the window does: give --window too, or leave it out")
		}
		return nil
	}
	if err := window.Available(); err != nil {
		return usagef("--window: %v", err)
	}
	return nil
}

// runWindow is the window of a run. A nil one is none.
type runWindow struct {
	*window.Window
	held *train.Control
}

// open opens the window of a run where the flags ask for one. The run's context is done when ctx is, or when the window is closed and that is to end the run.
func (f *windowFlags) open(ctx context.Context, bar *progress, dev backend.Backend, t *train.Trainer, folder *train.Folder) (*runWindow, context.Context, error) {
	if !f.show {
		return nil, ctx, nil
	}
	control := &train.Control{}
	opts := window.Options{
		Title: "vktrain: " + filepath.Base(folder.Dir) + " on " + dev.Info().Name, Steps: t.Config().Steps, Control: control,
		Checkpoint: func() error { return t.Save(folder.Dir) },
		Picture:    folder.WritePicture,
		Warn:       func(s string) { bar.say("window: %s", s) },
	}
	if gpu, ok := dev.(*vulkan.Backend); ok {
		opts.UUID = gpu.Device().UUID
	}
	var cancel context.CancelFunc
	if f.endsRun {
		ctx, cancel = context.WithCancel(ctx)
		opts.Closed = cancel
	}
	w, err := window.Open(opts)
	if err != nil {
		if cancel != nil {
			cancel()
		}
		return nil, nil, err
	}
	return &runWindow{w, control}, ctx, nil
}

func (w *runWindow) control() *train.Control {
	if w == nil {
		return nil
	}
	return w.held
}

func (w *runWindow) step(m train.Metrics) {
	if w != nil {
		w.Add(m)
	}
}

// stay leaves the window there after the run until somebody closes it, or ctx is done.
func (w *runWindow) stay(ctx context.Context, out io.Writer) {
	if w == nil {
		return
	}
	w.End()
	if !w.IsClosed() {
		row(out, "window", "close it, or press Ctrl-C, to end")
	}
	w.Wait(ctx)
}

func (w *runWindow) close() {
	if w != nil {
		w.Close()
	}
}
