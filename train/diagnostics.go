package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

const (
	largestCount = 100   // of Stream.Largest
	f16Limit     = 65504 // the largest float16
	oneHotShare  = 0.99  // of Attention.OneHot
	pageSlots    = 64    // of an output that results lie in
	slotElems    = graph.ViewAlign / 4
	squaresName  = "diagnostics.squares"
)

// Diagnostics records what a Diagnosis tells into the programs of a training step, and reads it from what they give. The zero value is ready; give it to one
// ProgramOptions, from which StepperPrograms records. Its nodes only read what the step computes, and stand where they part no two nodes that a device may run as
// one, so that the step's bits are those without them.
//
// Results are small and many, so they lie in slots of a few outputs, the pages.
type Diagnostics struct {
	b     *graph.Builder
	page  *graph.Value
	used  int // slots of it
	pages int

	outputs []string                                  // to fetch
	notes   []func(r *diagnosisReading, d *Diagnosis) // each reads a part
	layers  int
	applies bool            // the program being recorded is an ApplyProgram
	inApply map[string]bool // outputs of that

	bound boundNodes
}

// place is where a result lies.
type place struct {
	page  string
	at, n int
}

// begin starts recording into a program.
func (d *Diagnostics) begin(b *graph.Builder) {
	if d != nil {
		d.b, d.page, d.used, d.applies = b, nil, 0, false
	}
}

// beginApply starts recording into the second program of a step.
func (d *Diagnostics) beginApply(b *graph.Builder) {
	if d != nil {
		d.begin(b)
		d.applies, d.inApply = true, map[string]bool{}
	}
}

// output notes that an output is to be fetched, and of which program it is.
func (d *Diagnostics) output(name string) {
	d.outputs = append(d.outputs, name)
	if d.applies {
		d.inApply[name] = true
	}
}

// room gives where n numbers go.
func (d *Diagnostics) room(n int) (*graph.Value, place) {
	slots := (n + slotElems - 1) / slotElems
	if d.page == nil || d.used+slots > pageSlots {
		name := fmt.Sprintf("diagnostics.%d", d.pages)
		d.page, d.used = d.b.Temp(name, graph.F32, pageSlots*slotElems), 0
		d.b.Output(name, d.page)
		d.output(name)
		d.pages++
	}
	at := d.used * slotElems
	d.used += slots
	return d.b.View(d.page, at, n), place{fmt.Sprintf("diagnostics.%d", d.pages-1), at, n}
}

func (d *Diagnostics) summary(x, minus *graph.Value, threshold float32) place {
	dst, at := d.room(graph.SummaryLen)
	d.b.Summary(x, minus, dst, threshold)
	return at
}

// mean is of all elements of a tensor.
func (d *Diagnostics) mean(x *graph.Value) func(r *diagnosisReading) Number {
	at, n := d.summary(x, nil, 0), float64(x.Elems())
	return func(r *diagnosisReading) Number { return Number(r.at(at, graph.SummarySum) / n) }
}

func (d *Diagnostics) variance(x *graph.Value) func(r *diagnosisReading) Number {
	_, variance := d.b.RowMoments(x)
	return d.mean(variance)
}

func (d *Diagnostics) stream(x *graph.Value) func(r *diagnosisReading) Stream {
	variance, all := d.variance(x), d.summary(x, nil, f16Limit)
	dst, largest := d.room(largestCount)
	d.b.TopMagnitudes(x, dst, largestCount)
	count := min(largestCount, x.Elems())
	return func(r *diagnosisReading) Stream {
		s := Stream{Variance: variance(r), Overflow: Number(r.at(all, graph.SummaryOver))}
		for i := range count {
			s.Largest = append(s.Largest, Number(r.at(largest, i)))
		}
		s.F16Share = s.Largest[0] / f16Limit
		return s
	}
}

func (d *Diagnostics) sublayer(m model.Module) func(r *diagnosisReading) Sublayer {
	stream, output := d.stream(m.Stream), d.variance(m.OutputAlone())
	var normed func(r *diagnosisReading) Number
	if x := m.NormedAlone(); x != nil {
		normed = d.variance(x)
	}
	return func(r *diagnosisReading) Sublayer {
		s := Sublayer{Stream: stream(r), Output: output(r)}
		if normed != nil {
			n := normed(r)
			s.Normed = &n
		}
		return s
	}
}

// attention is a second attention over the same operands: the one that the step goes on with stays what it is without diagnostics.
func (d *Diagnostics) attention(f *model.Forward, i int) func(r *diagnosisReading) Attention {
	block := f.Blocks[i]
	_, lse, top, entropy := d.b.AttentionStats(f.QRope[i], f.KRope[i], block.V, block.Scale, block.Attr)
	logits, mean := d.summary(top, nil, 0), d.mean(entropy)
	less := d.summary(lse, top, float32(-math.Log(oneHotShare))) // the largest probability's logarithm, times -1
	rows, alone := float64(lse.Elems()), float64(lse.Shape()[0]*lse.Shape()[1])
	return func(r *diagnosisReading) Attention {
		oneHot := (rows - r.at(less, graph.SummaryOver) - alone) / (rows - alone)
		return Attention{LargestLogit: Number(r.at(logits, graph.SummaryMax)), Entropy: mean(r), OneHot: Number(oneHot)}
	}
}

// observer gives what is called with each block of a trunk, nil without diagnostics.
func (d *Diagnostics) observer(b *graph.Builder, cfg model.Config) func(f *model.Forward, i int) {
	if d == nil {
		return nil
	}
	d.begin(b)
	d.layers = cfg.NLayers
	return func(f *model.Forward, i int) { d.block(f, i) }
}

func (d *Diagnostics) block(f *model.Forward, i int) {
	if i == 0 {
		embedding := d.stream(f.Hidden[0])
		d.note(func(r *diagnosisReading, out *Diagnosis) { out.Embedding = embedding(r) })
	}
	attn, mlp, logits := d.sublayer(f.Blocks[i].Attention), d.sublayer(f.Blocks[i].MLP), d.attention(f, i)
	angle := d.mean(d.b.RowAngle(f.Hidden[i], f.Hidden[i+1]))
	d.note(func(r *diagnosisReading, out *Diagnosis) {
		l := &out.Layers[i]
		l.Attention, l.MLP, l.Logits, l.Angle = attn(r), mlp(r), logits(r), angle(r)
	})
}

func (d *Diagnostics) note(read func(r *diagnosisReading, out *Diagnosis)) {
	d.notes = append(d.notes, read)
}

// trunk looks at the end of a forward pass.
func (d *Diagnostics) trunk(f *model.Forward) {
	if d == nil {
		return
	}
	final := d.stream(f.Final)
	d.note(func(r *diagnosisReading, out *Diagnosis) { out.Final = final(r) })
}

// diagnosisReading is what the programs of one step gave.
type diagnosisReading struct {
	pages map[string][]float32
	scale float64 // of the loss
}

func (r *diagnosisReading) at(p place, i int) float64 { return float64(r.pages[p.page][p.at+i]) }

// read makes the Diagnosis of a step from its programs' outputs; scale is the step's loss scale, 1 where there is none.
func (d *Diagnostics) read(fetch func(output string) ([]byte, error), scale float64) (*Diagnosis, error) {
	r := &diagnosisReading{pages: map[string][]float32{}, scale: scale}
	for _, name := range d.outputs {
		raw, err := fetch(name)
		if err != nil {
			return nil, err
		}
		page := make([]float32, len(raw)/4)
		if _, err := binary.Decode(raw, binary.LittleEndian, page); err != nil {
			return nil, fmt.Errorf("the output %s: %w", name, err)
		}
		r.pages[name] = page
	}
	out := &Diagnosis{Layers: make([]LayerDiagnosis, d.layers)}
	for _, read := range d.notes {
		read(r, out)
	}
	return out, nil
}

// layerOf gives the layer of a parameter, -1 if it is in none, and its name within that.
func layerOf(name string) (layer int, within string) {
	if rest, ok := strings.CutPrefix(name, "model.layers."); ok {
		number, within, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(number); err == nil {
			return i, within
		}
	}
	return -1, name
}
