package main

import (
	"fmt"
	"io"
	"time"

	"github.com/vktrain/vktrain/experiment"
)

// matrixProgress shows how far many runs are: a bar on a terminal, else a line for each run. Events come one at a time.
type matrixProgress struct {
	progress
	all, done, kept int
	work            float64            // of the runs that were not finished
	part            map[string]float64 // by run, what is done of it
	began           time.Time
}

// matrixLineEvery is the least time between plain lines about runs that are not finished.
const matrixLineEvery = 30 * time.Second

// barSteps is how finely the bar of many runs is divided.
const barSteps = 1000

func newMatrixProgress(out io.Writer, m *experiment.Matrix) *matrixProgress {
	p := &matrixProgress{all: len(m.Runs), part: map[string]float64{}, began: time.Now()}
	p.shown = p.began
	p.out = out
	p.bar = newBar(out, barSteps)
	for _, r := range m.Runs {
		p.work += r.Work()
	}
	return p
}

// event shows an event.
func (p *matrixProgress) event(e experiment.Event) {
	switch e.Kind {
	case experiment.EventKept:
		p.kept++
		p.done++
		p.work -= e.Run.Work()
	case experiment.EventStart:
		if p.kept > 0 {
			p.say("%d of %s are finished already", p.kept, counted(p.all, "run"))
			p.kept = 0
		}
		p.part[e.Run.ID] = 0
	case experiment.EventStep:
		p.part[e.Run.ID] = e.Run.Work() * float64(e.Metrics.Step) / float64(e.Run.Config.Steps)
		p.draw(fmt.Sprintf("%s %d/%d  loss %.4f", e.Run.ID, e.Metrics.Step, e.Run.Config.Steps, e.Metrics.Loss))
	case experiment.EventDone:
		p.done++
		p.part[e.Run.ID] = e.Run.Work()
		p.say("%s: %s  %d of %d, %s left", e.Run.ID, outcome(e.Result), p.done, p.all, p.left())
	case experiment.EventTurns:
		p.say("timing %s on %s", e.Text, e.Device)
	case experiment.EventFailed:
		p.say("%s failed: %s", e.Run.ID, oneLine(e.Err.Error()))
	}
}

func outcome(r *experiment.RunResult) string {
	if r.Broken != nil {
		return fmt.Sprintf("%s at step %d", r.Broken.What, r.Broken.Step)
	}
	return fmt.Sprintf("val %.4f", r.Figures[experiment.MetricValLoss])
}

// share is how much of the work is done.
func (p *matrixProgress) share() float64 {
	sum := 0.0
	for _, part := range p.part {
		sum += part
	}
	return sum / p.work
}

// left is the time to the end at the pace so far.
func (p *matrixProgress) left() time.Duration {
	s := p.share()
	return time.Duration(float64(time.Since(p.began)) * max(0, 1-s) / s).Round(time.Second)
}

func (p *matrixProgress) draw(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = fmt.Sprintf("%d/%d runs, %s left  %s", p.done, p.all, p.left(), text)
	if p.bar == nil {
		if now := time.Now(); now.Sub(p.shown) >= matrixLineEvery {
			fmt.Fprintln(p.out, text)
			p.shown = now
		}
		return
	}
	p.bar.Describe(shorten(text, textColumns-1))
	_ = p.bar.Set(int(barSteps * p.share())) // drawing is a courtesy
}
