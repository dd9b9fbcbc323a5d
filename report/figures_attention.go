package report

import (
	"github.com/vktrain/vktrain/internal/chart"
	"github.com/vktrain/vktrain/train"
)

// magnitudeAxis is of activations.
var magnitudeAxis = chart.Axis{Label: "largest magnitude", Key: "largest", Log: true}

// top is the largest magnitude of a stream, if it is told.
func top(s train.Stream) (float64, bool) {
	if len(s.Largest) == 0 {
		return 0, false
	}
	return number(s.Largest[0])
}

// streams are all states of the residual stream.
func streams(d *train.Diagnosis) []train.Stream {
	all := []train.Stream{d.Embedding}
	for _, l := range d.Layers {
		all = append(all, l.Attention.Stream, l.MLP.Stream)
	}
	return all
}

func activationFigure(all groups) figure {
	f := figure{name: "activations", title: "Largest activation over training",
		text: "The largest magnitude in the residual stream, over all layers, tokens and channels of the diagnosed batch. Float16 ends at 65,504: above it a run in that format overflows. This counts what is there; it promises nothing of other batches."}
	largestOf := byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
		var list []float64
		for _, s := range streams(d) {
			if t, ok := top(s); ok {
				list = append(list, t)
			}
		}
		return largest(list), len(list) > 0
	})
	if !anyPositive(curves(all.all(), 1, byDiagnosis(overflows))) {
		f.add(all, "", stepAxis, magnitudeAxis, 1, largestOf, float16Limit)
		return f.finish(all, noDiagnosis)
	}
	f.add(all, "largest", stepAxis, magnitudeAxis, 1, largestOf, float16Limit)
	f.add(all, "beyond float16", stepAxis, chart.Axis{Label: "values over 65,504 or not finite", Key: "overflows"}, 1, byDiagnosis(overflows))
	f.text += " Beyond float16: how many values are over it, or not finite, in the whole stream."
	return f.finish(all, noDiagnosis)
}

func overflows(d *train.Diagnosis) (float64, bool) {
	sum := 0.0
	for _, s := range streams(d) {
		sum += float64(s.Overflow)
	}
	return sum, true
}

func anyPositive(lines []chart.Line) bool {
	for _, l := range lines {
		for _, y := range l.Y {
			if y > 0 {
				return true
			}
		}
	}
	return false
}

func activationDepthFigure(all groups) figure {
	f := figure{name: "activations-depth", title: "Largest activation over depth", text: "The largest magnitude in the residual stream after each layer."}
	for _, k := range differentPicks(all.all(), pickFirst, pickLast) {
		f.add(all, k.title(all.all()), layerAxis, magnitudeAxis, 1, byLayer(k, func(l *train.LayerDiagnosis) (float64, bool) { return top(l.MLP.Stream) }), float16Limit)
	}
	f.chart.SameY = true
	return f.finish(all, noDiagnosis)
}

func topFigure(all groups) figure {
	f := figure{name: "activations-top", title: "The 100 largest activations", text: "After the last layer, in the last diagnosed step, from the largest. A steep start means that few values stand far above the others (massive activations, Sun et al. 2024)."}
	axis := chart.Axis{Label: "rank", Key: "rank", Log: true}
	f.add(all, "", axis, chart.Axis{Label: "magnitude", Key: "magnitude", Log: true}, 1, func(r *Run) (p points) {
		if m := pickLast.of(r); m != nil {
			for i, v := range m.Diagnosis.Layers[len(m.Diagnosis.Layers)-1].MLP.Largest {
				p.add(float64(i+1), float64(v))
			}
		}
		return p
	}, float16Limit)
	return f.finish(all, noDiagnosis)
}

// attentionParts are the three numbers of a layer's attention, and how layers are put together.
var attentionParts = []struct {
	title string
	axis  chart.Axis
	of    func(a train.Attention) train.Number
	join  func([]float64) float64
}{
	{"largest logit", chart.Axis{Label: "largest logit", Key: "largest_logit", Log: true}, func(a train.Attention) train.Number { return a.LargestLogit }, largest},
	{"entropy", chart.Axis{Label: "entropy (nats)", Key: "entropy"}, func(a train.Attention) train.Number { return a.Entropy }, mean},
	{"nearly one-hot rows", chart.Axis{Label: "share of rows", Key: "one_hot"}, func(a train.Attention) train.Number { return a.OneHot }, mean},
}

func attentionFigure(all groups) figure {
	f := figure{name: "attention", title: "Attention over training",
		text: "Left: the largest logit of all layers. Middle: the entropy of a row of attention, mean over rows, heads and layers. Right: the share of rows whose largest probability is at least 0.99, mean over layers. " +
			"Entropy that falls to 0 is attention that has collapsed (Dehghani et al. 2023)."}
	for _, p := range attentionParts {
		f.add(all, p.title, stepAxis, p.axis, 1, byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
			return p.join(overLayers(d, func(l *train.LayerDiagnosis) float64 { return float64(p.of(l.Logits)) })), true
		}))
	}
	return f.finish(all, noDiagnosis)
}

func attentionDepthFigure(all groups) figure {
	f := figure{name: "attention-depth", title: "Attention over depth", text: "Of each layer, in the last diagnosed step."}
	for _, p := range attentionParts {
		f.add(all, p.title, layerAxis, p.axis, 1, byLayer(pickLast, func(l *train.LayerDiagnosis) (float64, bool) { return number(p.of(l.Logits)) }))
	}
	return f.finish(all, noDiagnosis)
}
