package train

import (
	"math"
	"strings"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// boundNodes are what the GradientBound is made of.
type boundNodes struct {
	inner          *graph.Value // (B, T, F) h
	hidden, output *graph.Value // (R) |h|, and |a| or |a - mean(a)|; output is nil where no output norm follows
	width, layer   int
	means          func(r *diagnosisReading) (hidden, output Number)
	sum            place                             // over tokens of |h| |dL/do|, over output
	alone          func(r *diagnosisReading) float64 // |dL/dW2| of this micro-batch; nil in steps that have one
}

// wants measures |h| and |a| of the last MLP, and gives the values whose gradients are wanted: the stream after it, and a where an output norm follows and alone says
// that the program adds its gradients to those of others.
func (d *Diagnostics) wants(cfg model.Config, f *model.Forward, alone bool) []*graph.Value {
	if d == nil {
		return nil
	}
	mlp := f.Blocks[len(f.Blocks)-1].MLP
	hidden := d.b.RowNorms(mlp.Inner, nil, nil, graph.RowNormsAttr{})
	output := d.b.RowNorms(mlp.OutputAlone(), nil, nil, graph.RowNormsAttr{Centered: mlp.Output != nil && cfg.Norm == model.NormLayer})
	h, a := d.mean(hidden), d.mean(output)
	d.bound = boundNodes{
		inner: mlp.Inner, hidden: hidden, width: cfg.DModel, layer: len(f.Blocks) - 1,
		means: func(r *diagnosisReading) (Number, Number) { return h(r), a(r) },
	}
	wanted := []*graph.Value{mlp.Sum}
	if mlp.Output != nil {
		d.bound.output = output
		if alone {
			wanted = append(wanted, mlp.Output)
		}
	}
	return wanted
}

// backward takes the gradients of what it wants, and sums over tokens |h| |dL/do|, over |a| where an output norm follows.
func (d *Diagnostics) backward(grads []*graph.Value, alone bool) {
	if d == nil {
		return
	}
	n := &d.bound
	column := func(v *graph.Value) *graph.Value {
		if v == nil {
			return nil
		}
		return d.b.View(v, 0, v.Elems(), 1)
	}
	n.sum = d.summary(d.b.RowNorms(grads[0], column(n.hidden), column(n.output), graph.RowNormsAttr{}), nil, 0)
	if !alone {
		return
	}
	// dL/dW2 = (dL/da)ᵀ h again, where the program has only added it to that of other micro-batches.
	w := d.b.Temp("grad.alone", graph.F32, n.width, n.inner.Shape().Last())
	d.b.MatMul(grads[len(grads)-1], n.inner, nil, w, graph.MatMulAttr{TransA: true})
	dst, at := d.room(graph.DotsLen)
	d.b.Dots(w, w, dst)
	n.alone = func(r *diagnosisReading) float64 { return math.Sqrt(r.at(at, graph.DotsU)) / r.scale }
}

// gradientBound reads the bound, with the gain of the output norm that is there before the update.
func (d *Diagnostics) gradientBound(params []model.Param, values []*graph.Value) {
	n := d.bound
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
		measured := out.Layers[n.layer].Kinds["mlp.down_proj.weight"].GradNorm
		if n.alone != nil {
			measured = Number(n.alone(r))
		}
		out.Bound = &GradientBound{Hidden: h, Output: a, GradNorm: measured, Bound: Number(factor(r) * r.at(n.sum, graph.SummarySum) / r.scale)}
	})
}
