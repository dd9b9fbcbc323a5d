package train

import (
	"math"
	"strings"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// update measures gradients and the coming update of all parameters: squares are the partial sums of the gradients' squares, and stats records the operator for
// one parameter. It is called where no node stands between the sums and AdamW: neighbours of those may run as one.
func (d *Diagnostics) update(params []model.Param, squares *graph.Value, stats func(i int, dst *graph.Value), values []*graph.Value) {
	if d == nil {
		return
	}
	d.b.Output(squaresName, squares)
	d.output(squaresName)
	var reads []func(r *diagnosisReading, out *Diagnosis)
	for i, p := range params {
		dst, dots := d.room(graph.DotsLen)
		stats(i, dst)
		d.note(func(r *diagnosisReading, out *Diagnosis) {
			layer, name := layerOf(p.Name)
			group := &out.Outside
			if layer >= 0 {
				group = &out.Layers[layer].Parameters
			}
			group.add(name, r.squares(i), r.at(dots, graph.DotsProduct), r.at(dots, graph.DotsU), r.at(dots, graph.DotsV), r.scale)
		})
		if layer, name := layerOf(p.Name); layer >= 0 && !p.Role.IsMatrix() {
			all, n := d.summary(values[i], nil, 0), float64(p.Shape.Elems())
			reads = append(reads, func(r *diagnosisReading, out *Diagnosis) {
				l := &out.Layers[layer]
				l.Gains = append(l.Gains, GainStats{
					Name: name, Mean: Number(r.at(all, graph.SummarySum) / n), Min: Number(r.at(all, graph.SummaryMin)), Max: Number(r.at(all, graph.SummaryMax)),
				})
			})
		}
	}
	d.notes = append(d.notes, reads...)
	d.gradientBound(params, values)
}

// squares is |gradient|² of a parameter.
func (r *diagnosisReading) squares(i int) float64 {
	sum := 0.0
	for _, s := range r.pages[squaresName][i*graph.SumSquaresParts : (i+1)*graph.SumSquaresParts] {
		sum += float64(s)
	}
	return sum
}

// add takes a parameter in: |gradient|², which is that of the loss times scale, update·parameter, |update|² and |parameter|².
func (p *Parameters) add(name string, gradient, product, update, parameter, scale float64) {
	if p.Kinds == nil {
		p.Kinds = map[string]ParameterStats{}
	}
	size := math.Sqrt(parameter)
	p.Kinds[name] = ParameterStats{
		GradNorm: Number(math.Sqrt(gradient) / scale), Norm: Number(size),
		UpdateRatio: Number(math.Sqrt(update) / size), UpdateCos: Number(product / (math.Sqrt(update) * size)),
	}
	p.GradNorm = Number(math.Hypot(float64(p.GradNorm), math.Sqrt(gradient)/scale))
}

// boundNodes are what the GradientBound is made of.
type boundNodes struct {
	hidden, output *graph.Value // (R) |h| and |a|; output is nil where no output norm follows
	sum, gradient  *graph.Value // the residual stream after the last MLP is added, and its gradient
	width, layer   int
	means          func(r *diagnosisReading) (hidden, output Number)
}

// wants measures |h| and |a| of the last MLP, and gives the values whose gradients are wanted.
func (d *Diagnostics) wants(cfg model.Config, f *model.Forward) []*graph.Value {
	if d == nil {
		return nil
	}
	mlp := f.Blocks[len(f.Blocks)-1].MLP
	if mlp.Output != nil && cfg.Norm == model.NormLayer {
		return nil // the derivative of that norm is over |a - mean|, of which the proposition does not tell
	}
	hidden, output := d.b.RowNorms(mlp.Inner, nil, nil, graph.RowNormsAttr{}), d.b.RowNorms(mlp.OutputAlone(), nil, nil, graph.RowNormsAttr{})
	h, a := d.mean(hidden), d.mean(output)
	d.bound = boundNodes{
		hidden: hidden, sum: mlp.Sum, width: cfg.DModel, layer: len(f.Blocks) - 1,
		means: func(r *diagnosisReading) (Number, Number) { return h(r), a(r) },
	}
	if mlp.Output != nil {
		d.bound.output = output
	}
	return []*graph.Value{d.bound.sum}
}

// backward takes the gradients of what it wants.
func (d *Diagnostics) backward(grads []*graph.Value) {
	if d != nil && len(grads) > 0 {
		d.bound.gradient = grads[0]
	}
}

// gradientBound sums over tokens |h| |dL/do|, over |a| where an output norm follows.
func (d *Diagnostics) gradientBound(params []model.Param, values []*graph.Value) {
	n := d.bound
	if n.gradient == nil {
		return
	}
	column := func(v *graph.Value) *graph.Value {
		if v == nil {
			return nil
		}
		return d.b.View(v, 0, v.Elems(), 1)
	}
	sum := d.summary(d.b.RowNorms(n.gradient, column(n.hidden), column(n.output), graph.RowNormsAttr{}), nil, 0)
	factor := func(*diagnosisReading) float64 { return 1 }
	if n.output != nil {
		factor = func(*diagnosisReading) float64 { return math.Sqrt(float64(n.width)) }
		for i, p := range params {
			if layer, name := layerOf(p.Name); layer == n.layer && p.Role == model.RoleOutputGain && strings.HasPrefix(name, "mlp_") {
				gain := d.summary(values[i], nil, 0)
				factor = func(r *diagnosisReading) float64 {
					return r.at(gain, graph.SummaryMagnitude) * math.Sqrt(float64(n.width))
				}
			}
		}
	}
	d.note(func(r *diagnosisReading, out *Diagnosis) {
		h, a := n.means(r)
		out.Bound = &GradientBound{
			Hidden: h, Output: a, GradNorm: out.Layers[n.layer].Kinds["mlp.down_proj.weight"].GradNorm,
			Bound: Number(factor(r) * r.at(sum, graph.SummarySum) / r.scale),
		}
	})
}
