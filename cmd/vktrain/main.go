// Vktrain trains small language models on the GPU that is there, or on the CPU.
//
//	vktrain train                        trains a small model on built-in stories, in about two minutes
//	vktrain train --data book.txt        trains on a text of yours
//	vktrain generate runs/nano-stories-1 lets a model write
//	vktrain eval runs/book --tasks FILE  scores a model on multiple-choice tasks
//	vktrain compare FILE.yaml            trains a matrix of settings with several seeds, and compares them
//	vktrain sweep                        how much the loss depends on the learning rate
//	vktrain devices                      lists what it could train on
//	vktrain conformance                  proves that a device computes what it should
//	vktrain plan                         shows what a training step needs
//	vktrain bench step                   measures how fast a training step is
//	vktrain tune                         measures which kernels a GPU runs fastest
//	vktrain report FOLDER                draws what a run or an experiment measured
//
// The exit status is 0 for success, 1 for a failure, 2 for a command line or config that cannot be, and 130 when interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/vktrain/vktrain/backend/vulkan"
	"github.com/vktrain/vktrain/report/window"
	"github.com/vktrain/vktrain/train"
	"github.com/vktrain/vktrain/train/device"
)

// Exit statuses.
const (
	statusFailure     = 1
	statusUsage       = 2
	statusInterrupted = 130 // as a shell gives for Ctrl-C
)

// processStart is when the program began, but for what the system's loader did before.
var processStart = time.Now()

func main() {
	vulkan.ProbeMain()
	// A write to a pipe that nobody reads any more is an error like others: it must not end a run whose model is not saved.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
	cancelOnSignal(cancel)
	os.Exit(window.Main(func() int { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) }))
}

// cancelOnSignal lets the first signal ask for an orderly end, and a second one kill; but not SIGHUP, for a terminal that closes may send two.
func cancelOnSignal(cancel func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup wants it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		cancel()
	}()
}

// run is the program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "vktrain: internal error: %s: please report it with the command line\n", oneLine(fmt.Sprint(p)))
			status = statusFailure
		}
	}()
	out := &output{w: stdout}
	root := newRoot(out, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		if errors.Is(out.err, syscall.EPIPE) {
			return 0 // the reader has seen enough
		}
		err = fmt.Errorf("the output can't be written: %w", out.err)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted), ctx.Err() != nil && errors.Is(err, context.Canceled):
		return statusInterrupted
	}
	fmt.Fprintf(stderr, "vktrain: %s\n", oneLine(err.Error()))
	if isUsage(err) {
		return statusUsage
	}
	return statusFailure
}

// output remembers the first error of writing to the standard output, so that commands need not look at each.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// errInterrupted ends a command that Ctrl-C has stopped, and that has said so.
var errInterrupted = errors.New("interrupted")

// usageError is a command line that cannot be.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// isUsage tells errors of what was asked for from those of the world.
func isUsage(err error) bool {
	return errors.As(err, new(*usageError)) || errors.As(err, new(*train.ConfigError)) || errors.As(err, new(*device.NameError))
}

// oneLine joins lines, for errors that other packages spread over several.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}
