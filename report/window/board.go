package window

import (
	"fmt"
	"math"
	"sync"

	"github.com/vktrain/vktrain/train"
)

// Board collects what is shown of a run. Several goroutines may use it.
type Board struct {
	mu    sync.Mutex
	shown picture
	news  int // changes so far
}

// NewBoard is of a run of so many steps.
func NewBoard(title string, steps int) *Board {
	return &Board{shown: picture{title: title, steps: steps, closing: "leaves the run alone"}}
}

// mostPoints of each curve and mostColumns of the heat map are kept, evenly over the steps.
const (
	mostPoints  = 2000
	mostColumns = 1000
)

// picture is what a picture is drawn of.
type picture struct {
	title, note  string
	closing      string // what closing the window does
	steps        int
	last         train.Metrics // without its diagnosis
	val          float64       // of the last evaluation
	floor        float64       // the least that val could be; 0: it is not known
	evaluated    bool
	training     thinned[point]
	validation   thinned[point]
	gradients    thinned[column]
	first, newer profile
	paused, over bool
}

type point struct{ x, y float64 }

// column is the gradients' norms of one step, by layer.
type column struct {
	step  float64
	norms []float64
}

// profile is the variance of the hidden state by depth: after the embedding, and after each layer's attention and MLP, half a layer further each.
type profile struct {
	step     int
	variance []float64
}

// Add notes a step.
func (b *Board) Add(m train.Metrics) {
	b.change(func(p *picture) {
		x := float64(m.Step)
		p.training.add(point{x, m.Loss}, mostPoints)
		if m.Evaluated {
			p.validation.add(point{x, m.ValLoss}, mostPoints)
			p.val, p.floor, p.evaluated = m.ValLoss, m.ValFloor, true
		}
		if d := m.Diagnosis; d != nil {
			p.gradients.add(columnOf(m.Step, d), mostColumns)
			p.newer = profileOf(m.Step, d)
			if p.first.variance == nil {
				p.first = p.newer
			}
		}
		m.Diagnosis = nil // it is large
		p.last = m
	})
}

func columnOf(step int, d *train.Diagnosis) column {
	c := column{step: float64(step)}
	for i := range d.Layers {
		c.norms = append(c.norms, float64(d.Layers[i].GradNorm))
	}
	return c
}

func profileOf(step int, d *train.Diagnosis) profile {
	v := []float64{float64(d.Embedding.Variance)}
	for i := range d.Layers {
		v = append(v, float64(d.Layers[i].Attention.Variance), float64(d.Layers[i].MLP.Variance))
	}
	return profile{step, v}
}

// Say shows a line of text, until the next.
func (b *Board) Say(format string, args ...any) {
	b.change(func(p *picture) { p.note = fmt.Sprintf(format, args...) })
}

// setPaused shows whether the run is held.
func (b *Board) setPaused(paused bool) { b.change(func(p *picture) { p.paused = paused }) }

// end shows that the run is over.
func (b *Board) end() { b.change(func(p *picture) { p.over, p.paused = true, false }) }

func (b *Board) change(f func(*picture)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.shown)
	b.news++
}

// copy gives what is to be drawn, which later changes leave alone: what a column or profile holds is never changed.
func (b *Board) copy() (picture, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.shown
	p.training, p.validation, p.gradients = p.training.copy(), p.validation.copy(), p.gradients.copy()
	return p, b.news
}

// thinned keeps every so manyth of a long row of things, evenly.
type thinned[T any] struct {
	every, seen int
	kept        []T
}

// add keeps one more, if its turn is now. With more than most, every second one goes.
func (t *thinned[T]) add(x T, most int) {
	t.every = max(t.every, 1)
	if t.seen%t.every == 0 {
		t.kept = append(t.kept, x)
	}
	t.seen++
	if len(t.kept) <= most {
		return
	}
	half := t.kept[:0]
	for i := 0; i < len(t.kept); i += 2 {
		half = append(half, t.kept[i])
	}
	clear(t.kept[len(half):])
	t.kept, t.every = half, 2*t.every
}

func (t thinned[T]) copy() thinned[T] {
	t.kept = append([]T(nil), t.kept...)
	return t
}

// headline says where the run is.
func (p *picture) headline() string {
	if p.last.Step == 0 {
		return p.title
	}
	s := fmt.Sprintf("%s    step %d of %d    loss %s", p.title, p.last.Step, p.steps, digits(p.last.Loss))
	if p.evaluated {
		s += "    validation " + digits(p.val)
		if p.floor > 0 {
			s += " (floor " + digits(p.floor) + ")"
		}
	}
	if p.last.TokensPerSec > 0 {
		s += fmt.Sprintf("    %.0f tokens/s", p.last.TokensPerSec)
	}
	return s
}

// state is a word for what the run does.
func (p *picture) state() string {
	switch {
	case p.over:
		return "over"
	case p.paused:
		return "paused"
	}
	return "training"
}

func digits(x float64) string {
	if math.Abs(x) >= 1e6 {
		return fmt.Sprintf("%.3g", x)
	}
	return fmt.Sprintf("%.4f", x)
}

func (b *Board) isPaused() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown.paused
}

func (b *Board) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown.over
}

// step is the last that was reported.
func (b *Board) step() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown.last.Step
}
