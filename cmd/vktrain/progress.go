package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/vktrain/vktrain/train"
)

// progress shows how far training is: a bar on a terminal, else a line now and then. Several goroutines may use it.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	steps int
	bar   *progressbar.ProgressBar // nil if out is no terminal
	val   string                   // the last validation loss
	shown time.Time                // the last plain line

	skipped int // steps that were left out
}

// lineEvery is the least time between plain lines, except for evaluations, which always show.
const lineEvery = 5 * time.Second

// textColumns is what a bar's line takes beside the bar: a longer line would wrap, and leave its traces.
const textColumns = 70

func newProgress(out io.Writer, steps int) *progress {
	return &progress{out: out, steps: steps, bar: newBar(out, steps)}
}

// newBar is nil if out is no terminal.
func newBar(out io.Writer, steps int) *progressbar.ProgressBar {
	if !isTerminal(out) {
		return nil
	}
	columns, _, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil {
		columns = 80
	}
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(min(20, max(3, columns-textColumns))), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "=", SaucerHead: ">", SaucerPadding: " ", BarStart: "[", BarEnd: "]"}))
}

// step shows a step's metrics.
func (p *progress) step(m train.Metrics) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Evaluated {
		p.val = fmt.Sprintf("  val %.4f", m.ValLoss)
	}
	if m.Skipped {
		p.skipped++
	}
	text := fmt.Sprintf("%d/%d  loss %.4f%s  %s tok/s  %s left", m.Step, p.steps, m.Loss, p.val, grouped(int64(m.TokensPerSec)), p.left(m))
	if p.bar != nil {
		p.bar.Describe(text)
		_ = p.bar.Set(m.Step) // drawing is a courtesy
		return
	}
	if now := time.Now(); m.Step == 1 || m.Evaluated || m.Step == p.steps || now.Sub(p.shown) >= lineEvery {
		fmt.Fprintln(p.out, "step "+text+p.overflows())
		p.shown = now
	}
}

// overflows says how many steps were left out. It is for plain lines: a bar's has no room.
func (p *progress) overflows() string {
	if p.skipped == 0 {
		return ""
	}
	return fmt.Sprintf("  %d overflowed", p.skipped)
}

// left is the time to the last step at the mean pace so far.
func (p *progress) left(m train.Metrics) time.Duration {
	return time.Duration(m.Elapsed / float64(m.Step) * float64(p.steps-m.Step) * float64(time.Second)).Round(time.Second)
}

// say prints lines above the bar.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// end takes the bar away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// grouped prints 1234567 as 1,234,567.
func grouped(n int64) string {
	if n < 0 {
		return "-" + grouped(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
