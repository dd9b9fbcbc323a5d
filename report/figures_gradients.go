package report

import (
	"maps"
	"math"
	"slices"

	"github.com/vktrain/vktrain/internal/chart"
	"github.com/vktrain/vktrain/train"
)

// lastDown is the parameter whose gradient in the last layer proposition 3.1 of the Peri-LN paper bounds.
const lastDown = "mlp.down_proj.weight"

// gradAxis is of norms of gradients.
var gradAxis = chart.Axis{Label: "gradient norm", Key: "grad_norm", Log: true}

func gradHeatFigure(all groups) figure {
	return heatFigure(all, figure{name: "grad-heat", title: "Gradient norm of each layer over training", text: "Over all parameters of the layer, before clipping; mean over the seeds. One scale of colours for all."},
		gradAxis, func(l *train.LayerDiagnosis) float64 { return float64(l.GradNorm) })
}

func gradDepthFigure(all groups) figure {
	f := figure{name: "grad-depth", title: "Gradient norm over depth", text: "How even the gradient is over the layers (Kim et al. 2025, figure 5). Over all parameters of the layer, before clipping."}
	for _, k := range differentPicks(all.all(), pickFirst, pickMiddle, pickLast) {
		f.add(all, k.title(all.all()), layerAxis, gradAxis, 1, byLayer(k, func(l *train.LayerDiagnosis) (float64, bool) { return number(l.GradNorm) }))
	}
	f.chart.SameY = true
	return f.finish(all, noDiagnosis)
}

func lastGradFigure(all groups) figure {
	f := figure{name: "grad-last", title: "Gradient of the last layer's down projection", text: "|dL/dW₂| of the last MLP, before clipping: what the papers compare between placements at initialisation and during training."}
	f.add(all, "", stepAxis, gradAxis, 1, byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
		k, ok := d.Layers[len(d.Layers)-1].Kinds[lastDown]
		return float64(k.GradNorm), ok
	}))
	return f.finish(all, noDiagnosis)
}

// kindsOf are the names of the layers' parameters, those with an output last in the order of the forward pass.
func kindsOf(all []*variant) []string {
	found := map[string]bool{}
	for _, v := range all {
		for _, r := range v.runs {
			if m := pickLast.of(r); m != nil {
				for _, l := range m.Diagnosis.Layers {
					for k := range l.Kinds {
						found[k] = true
					}
				}
			}
		}
	}
	var kinds []string
	for _, k := range []string{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", lastDown} {
		if found[k] {
			kinds = append(kinds, k)
			delete(found, k)
		}
	}
	return append(kinds, slices.Sorted(maps.Keys(found))...)
}

// matrices are the kinds that are no gains, which are few numbers and have a figure of their own.
func matrices(kinds []string) []string {
	var all []string
	for _, k := range kinds {
		if slices.Contains([]string{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", lastDown}, k) {
			all = append(all, k)
		}
	}
	return all
}

// perKind has a panel for each kind of matrix; join puts the layers' numbers together.
func perKind(all groups, f figure, y chart.Axis, of func(k train.ParameterStats) float64, join func([]float64) float64) figure {
	for _, kind := range matrices(kindsOf(all.all())) {
		f.add(all, kind, stepAxis, y, 1, byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
			var list []float64
			for _, l := range d.Layers {
				if k, ok := l.Kinds[kind]; ok {
					list = append(list, of(k))
				}
			}
			return join(list), len(list) > 0
		}))
	}
	f.chart.SameY = true
	return f.finish(all, noDiagnosis)
}

// together is the norm of parts whose norms are given.
func together(norms []float64) float64 {
	sum := 0.0
	for _, n := range norms {
		sum += n * n
	}
	return math.Sqrt(sum)
}

func gradKindFigure(all groups) figure {
	return perKind(all, figure{name: "grad-kinds", title: "Gradient norm of each kind of matrix", text: "Over all layers together, before clipping."},
		gradAxis, func(k train.ParameterStats) float64 { return float64(k.GradNorm) }, together)
}

func ratioFigure(all groups) figure {
	return perKind(all, figure{name: "update-ratio", title: "Updates against weights", text: "|update| / |weights| of each kind of matrix, weight decay included; mean over the layers."},
		chart.Axis{Label: "update / weights", Key: "update_ratio", Log: true}, func(k train.ParameterStats) float64 { return float64(k.UpdateRatio) }, mean)
}

func cosineFigure(all groups) figure {
	return perKind(all, figure{name: "update-cosine", title: "Direction of the updates", text: "Cosine of the update and the weights, weight decay included; mean over the layers. Below 0 the update shortens the weights."},
		chart.Axis{Label: "cosine", Key: "update_cosine"}, func(k train.ParameterStats) float64 { return float64(k.UpdateCos) }, mean)
}

func boundFigure(all groups) figure {
	f := figure{name: "bound", title: "Proposition 3.1 in the last MLP",
		text: "Left: the measured |dL/dW₂| as a share of its bound, a sum over tokens of |h| |dL/do|, times γ √D / |a| where an output norm follows (Kim et al. 2025; per token, which is our form of it; |a - mean(a)| for a LayerNorm). It can't be over 1. " +
			"Middle and right: |h|, what the down projection multiplies, and |a|, its output (or |a - mean(a)|), means over tokens. Of several micro-batches all is of the last one."}
	bound := func(of func(b *train.GradientBound) train.Number) func(r *Run) points {
		return byDiagnosis(func(d *train.Diagnosis) (float64, bool) {
			if d.Bound == nil {
				return 0, false
			}
			return number(of(d.Bound))
		})
	}
	share := chart.Axis{Label: "measured / bound", Key: "share_of_bound", Log: true}
	size := func(what string) chart.Axis { return chart.Axis{Label: what, Key: "norm", Log: true} }
	f.add(all, "gradient against its bound", stepAxis, share, 1, bound(func(b *train.GradientBound) train.Number { return b.GradNorm / b.Bound }), chart.Level{Name: "the bound", At: 1})
	f.add(all, "|h|", stepAxis, size("|h|"), 1, bound(func(b *train.GradientBound) train.Number { return b.Hidden }))
	f.add(all, "|a|", stepAxis, size("|a|"), 1, bound(func(b *train.GradientBound) train.Number { return b.Output }))
	return f.finish(all, "No run has the proposition's quantities.")
}

func gainFigure(all groups) figure {
	f := figure{name: "gains", title: "Gains of the norms over depth", text: "In the last diagnosed step. The line is the mean over a gain's channels and the seeds. Gains start at 1 unless the config says otherwise."}
	few := true // so that there is room for three lines each
	for _, each := range all.list {
		few = few && len(each.variants) <= 4
	}
	if few {
		f.text += " Thin lines are the smallest and the largest channel."
	}
	names := map[string]bool{}
	for _, v := range all.all() {
		for _, r := range v.runs {
			if m := pickLast.of(r); m != nil {
				for _, l := range m.Diagnosis.Layers {
					for _, g := range l.Gains {
						names[g.Name] = true
					}
				}
			}
		}
	}
	axis := chart.Axis{Label: "gain", Key: "gain"}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		gain := func(of func(g train.GainStats) train.Number) func(r *Run) points {
			return byLayer(pickLast, func(l *train.LayerDiagnosis) (float64, bool) {
				i := slices.IndexFunc(l.Gains, func(g train.GainStats) bool { return g.Name == name })
				if i < 0 {
					return 0, false
				}
				return number(of(l.Gains[i]))
			})
		}
		panels := f.add(all, name, layerAxis, axis, 1, gain(func(g train.GainStats) train.Number { return g.Mean }), chart.Level{Name: "1: no gain", At: 1})
		for i := range panels {
			if few {
				v, lines := all.list[i].variants, &panels[i].Lines
				*lines = append(*lines, edge("smallest", curves(v, 1, gain(func(g train.GainStats) train.Number { return g.Min })))...)
				*lines = append(*lines, edge("largest", curves(v, 1, gain(func(g train.GainStats) train.Number { return g.Max })))...)
			}
		}
	}
	why := noDiagnosis
	for _, v := range all.all() {
		for _, r := range v.runs {
			if pickLast.of(r) != nil {
				why = "The norms of these runs have no gains."
			}
		}
	}
	return f.finish(all, why)
}

// edge makes curves the thin companions of others, without names in the legend, bands and ends; those of runs that are in no mean are left out.
func edge(what string, lines []chart.Line) []chart.Line {
	lines = slices.DeleteFunc(lines, func(l chart.Line) bool { return l.End != chart.SignNone })
	for i := range lines {
		l := &lines[i]
		l.Key += ", " + what + " channel"
		l.Name, l.Style.Thin, l.Low, l.High = "", true, nil, nil
	}
	return lines
}
