package report

import (
	"fmt"
	"math"

	"github.com/vktrain/vktrain/internal/chart"
	"github.com/vktrain/vktrain/train"
)

// figure is a chart in the page, or the reason why there is none.
type figure struct {
	name    string // of its files, and its anchor in the page
	title   string
	text    string // what it shows and how to read it
	missing string // why it is not there; empty: it is
	chart   chart.Figure

	perGroup int // panels of each group of variants
}

// section is a heading with figures.
type section struct {
	id, title, text string
	figures         []figure
}

// Axes that several figures have.
var (
	stepAxis  = chart.Axis{Label: "step", Key: "step", Whole: true}
	layerAxis = chart.Axis{Label: "layer", Key: "layer", Whole: true}
	lossAxis  = chart.Axis{Label: "loss (nats per token)", Key: "loss"}
)

// float16Limit is the largest number of float16.
var float16Limit = chart.Level{Name: "65,504: float16 ends", At: 65504}

const noDiagnosis = "No run has a diagnosed step: set diagnostics_every in the config, and train again."

// panels draws one panel for each of several things of the same axes.
func panel(title string, x, y chart.Axis, lines []chart.Line, levels ...chart.Level) chart.Panel {
	return chart.Panel{Title: title, X: x, Y: y, Lines: lines, Levels: levels}
}

// ratesSection has a table too.
const ratesSection = "rates"

// sections are all figures of the page in their order.
func sections(all groups, sweeps []*sweep) []section {
	return []section{
		{"loss", "Loss", "", []figure{trainingFigure(all), endFigure(all), gradNormFigure(all)}},
		{ratesSection, "Learning rates", "", []figure{sweepFigure(sweeps)}},
		{"stream", "The residual stream", "", []figure{varianceDepthFigure(all), varianceStepFigure(all), varianceHeatFigure(all), moduleFigure(all), angleFigure(all)}},
		{"gradients", "Gradients", "", []figure{gradHeatFigure(all), gradDepthFigure(all), lastGradFigure(all), modelDepthFigure(all), gradKindFigure(all), boundFigure(all)}},
		{"activations", "Activations against float16", "", []figure{activationFigure(all), activationDepthFigure(all), topFigure(all)}},
		{"attention", "Attention", "", []figure{attentionFigure(all), attentionDepthFigure(all)}},
		{"updates", "Updates and gains", "", []figure{ratioFigure(all), cosineFigure(all), gainFigure(all)}},
	}
}

// bin is how many steps of the longest run one point of a curve stands for.
func bin(all []*variant) int {
	longest := 0
	for _, v := range all {
		for _, r := range v.runs {
			longest = max(longest, len(r.Lines))
		}
	}
	return (longest + mostPoints - 1) / mostPoints
}

func perPoint(size int) string {
	if size > 1 {
		return fmt.Sprintf(" Each point is the mean of %d steps.", size)
	}
	return ""
}

func trainingFigure(all groups) figure {
	size := bin(all.all())
	f := figure{name: "loss", title: "Training loss", text: "The loss of each step's batch before its update, z-loss included." + perPoint(size)}
	floors, words := floorLevels(all.all())
	f.text += words
	f.add(all, "", stepAxis, lossAxis, size, byStep(func(m train.Metrics) (float64, bool) { return m.Loss, true }), floors...)
	return f.finish(all, "No run has a step yet.")
}

func endFigure(all groups) figure {
	size := bin(all.all())
	f := figure{name: "loss-end", title: "The second half of training, and the validation loss",
		text: "Left: the training loss of the second half of each run, on an axis of its own. Right: the loss over the validation text after the step."}
	second := func(r *Run) (p points) {
		steps := r.lastStep()
		if r.Config != nil {
			steps = r.Config.Steps
		}
		for _, m := range r.Lines {
			if 2*m.Step > steps {
				p.add(float64(m.Step), m.Loss)
			}
		}
		return p
	}
	floors, words := floorLevels(all.all())
	f.text += words
	f.add(all, "training, second half", stepAxis, lossAxis, size, second, floors...)
	evaluations := byStep(func(m train.Metrics) (float64, bool) { return m.ValLoss, m.Evaluated })
	for _, p := range f.add(all, "validation", stepAxis, lossAxis, 1, evaluations, floors...) {
		for i := range p.Lines {
			p.Lines[i].Points = len(p.Lines[i].X) < 40
		}
	}
	return f.finish(all, "No run has an evaluation, or half of its steps.")
}

func gradNormFigure(all groups) figure {
	size := bin(all.all())
	f := figure{name: "grad-norm", title: "Gradient norm", text: "Over all parameters, before clipping; steps that overflowed in float16 and were left out have none." + perPoint(size)}
	axis := chart.Axis{Label: "gradient norm", Key: "grad_norm", Log: true}
	f.add(all, "", stepAxis, axis, size, byStep(func(m train.Metrics) (float64, bool) { return m.GradNorm, !m.Skipped }))
	return f.finish(all, "No run has a step yet.")
}

// varianceAxis is of the hidden state.
var varianceAxis = chart.Axis{Label: "variance", Key: "variance", Log: true}

func varianceDepthFigure(all groups) figure {
	f := figure{name: "variance-depth", title: "Variance of the residual stream over depth",
		text: "Over the channels of a token, averaged over tokens: at 0 after the embedding, at each half after attention, at each whole number after the layer."}
	axis := chart.Axis{Label: "depth (layers)", Key: "depth", Whole: true}
	for _, k := range differentPicks(all.all(), pickFirst, pickMiddle, pickLast) {
		f.add(all, k.title(all.all()), axis, varianceAxis, 1, func(r *Run) (p points) {
			m := k.of(r)
			if m == nil {
				return p
			}
			p.add(0, float64(m.Diagnosis.Embedding.Variance))
			for i, l := range m.Diagnosis.Layers {
				p.add(float64(i)+0.5, float64(l.Attention.Variance))
				p.add(float64(i)+1, float64(l.MLP.Variance))
			}
			return p
		})
	}
	f.chart.SameY = true
	return f.finish(all, noDiagnosis)
}

func varianceStepFigure(all groups) figure {
	f := figure{name: "variance-steps", title: "Variance of the residual stream over training", text: "After the first, the middle and the last layer."}
	for _, at := range []struct {
		title string
		layer func(n int) int
	}{{"first layer", func(int) int { return 0 }}, {"middle layer", func(n int) int { return n / 2 }}, {"last layer", func(n int) int { return n - 1 }}} {
		f.add(all, at.title, stepAxis, varianceAxis, 1, byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
			return number(d.Layers[at.layer(len(d.Layers))].MLP.Variance)
		}))
	}
	f.chart.SameY = true
	return f.finish(all, noDiagnosis)
}

func moduleFigure(all groups) figure {
	f := figure{name: "modules", title: "Variance of the modules' outputs", text: "In the last diagnosed step: what attention and the MLP give before their output norm, and after it where there is one (Peri-LN, OLMo 2)."}
	axis := chart.Axis{Label: "variance", Key: "variance", Log: true}
	for _, p := range []struct {
		title string
		of    func(l *train.LayerDiagnosis) (float64, bool)
	}{
		{"attention, before its output norm", func(l *train.LayerDiagnosis) (float64, bool) { return number(l.Attention.Output) }},
		{"MLP, before its output norm", func(l *train.LayerDiagnosis) (float64, bool) { return number(l.MLP.Output) }},
		{"attention, after its output norm", func(l *train.LayerDiagnosis) (float64, bool) { return optional(l.Attention.Normed) }},
		{"MLP, after its output norm", func(l *train.LayerDiagnosis) (float64, bool) { return optional(l.MLP.Normed) }},
	} {
		f.add(all, p.title, layerAxis, axis, 1, byLayer(pickLast, p.of))
	}
	return f.finish(all, noDiagnosis)
}

func optional(n *train.Number) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func angleFigure(all groups) figure {
	f := figure{name: "angle", title: "How much a layer turns its input",
		text: "Angular distance arccos(cos(x, x')) / π between a layer's input and its output, mean over tokens: 0 is the same direction, 0.5 a right angle. A layer near 0 is redundant (Gromov et al. 2024)."}
	axis := chart.Axis{Label: "angular distance (π rad)", Key: "angle"}
	for _, k := range differentPicks(all.all(), pickFirst, pickLast) {
		f.add(all, k.title(all.all()), layerAxis, axis, 1, byLayer(k, func(l *train.LayerDiagnosis) (float64, bool) { return number(l.Angle) }))
	}
	f.chart.SameY = true
	return f.finish(all, noDiagnosis)
}

// heatFigure is a map of layer and step for each variant: the mean of the runs that stand for it.
func heatFigure(all groups, f figure, scale chart.Axis, of func(l *train.LayerDiagnosis) float64) figure {
	list, columns := all.grid()
	for _, v := range list {
		if h := heatOf(v, of); h != nil {
			f.chart.Panels = append(f.chart.Panels, chart.Panel{Title: v.name, X: stepAxis, Y: layerAxis, Heat: h})
		}
	}
	if len(f.chart.Panels) == 0 {
		f.missing = noDiagnosis
	}
	f.chart.Title, f.chart.Scale, f.chart.Columns = f.title, scale, columns
	return f
}

// heatOf is nil where no run is diagnosed.
func heatOf(v *variant, of func(l *train.LayerDiagnosis) float64) *chart.Heat {
	layers := 0
	for _, r := range v.shown() {
		if m := pickFirst.of(r); m != nil {
			layers = max(layers, len(m.Diagnosis.Layers))
		}
	}
	if layers == 0 {
		return nil
	}
	h := &chart.Heat{}
	for i := range layers {
		var runs []points
		for _, r := range v.shown() {
			p := byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
				if i >= len(d.Layers) {
					return math.NaN(), true
				}
				return of(&d.Layers[i]), true
			})(r)
			if len(p.x) > 0 {
				runs = append(runs, p)
			}
		}
		mean := meanOf(runs)
		h.X, h.Y, h.Z = mean.X, append(h.Y, float64(i+1)), append(h.Z, mean.Y)
	}
	return h
}

func varianceHeatFigure(all groups) figure {
	return heatFigure(all, figure{name: "variance-heat", title: "Variance of the residual stream after each layer", text: "Mean over the seeds. One scale of colours for all."},
		varianceAxis, func(l *train.LayerDiagnosis) float64 { return float64(l.MLP.Variance) })
}
