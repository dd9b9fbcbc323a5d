package train

import (
	"math"

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
		if layer, name := layerOf(p.Name); !p.Role.IsMatrix() {
			all, n := d.summary(values[i], nil, 0), float64(p.Shape.Elems())
			reads = append(reads, func(r *diagnosisReading, out *Diagnosis) {
				to := &out.Gains
				if layer >= 0 {
					to = &out.Layers[layer].Gains
				}
				*to = append(*to, GainStats{
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
