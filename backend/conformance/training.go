package conformance

import (
	"fmt"
	"math"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// training describes a model's training programs. They are written here from a model's forward pass, since package train stands above the
// backends; names are the same.
type training struct {
	config  model.Config // normalized
	batch   int
	maxNorm float32
	zLoss   float32

	recompute model.Recompute
	chunkRows int
	storage   graph.DType // of activations; f16 has a loss scale
}

// forward records the trunk and gives what the loss needs: it is the mean over the kept targets.
func (t training) forward(b *graph.Builder) (f *model.Forward, targets, invCount *graph.Value) {
	tokens := b.Input("tokens", graph.I32, t.batch, t.config.SeqLen)
	targets = b.Input("targets", graph.I32, t.batch, t.config.SeqLen)
	invCount = b.Input("inv_count", graph.F32, 1)
	f = t.config.Trunk(b, tokens, t.storage, graph.F32)
	f.Recompute(b, t.recompute)
	return f, targets, invCount
}

// lossScale is what multiplies all gradients, nil where nothing does.
func (t training) lossScale(b *graph.Builder) *graph.Value {
	if t.storage != graph.F16 {
		return nil
	}
	return b.Input("loss_scale", graph.F32, 1)
}

// forwardBackward records the loss and the gradients of all parameters times the scale, in their order. With full, f.Logits are there in any case.
func (t training) forwardBackward(b *graph.Builder, scale *graph.Value, full bool, into func(f *model.Forward) map[*graph.Value]*graph.Value) (*model.Forward, []*graph.Value, error) {
	f, targets, invCount := t.forward(b)
	seed := scale
	if seed == nil {
		seed = b.Fill(b.Temp("seed", graph.F32, 1), 1)
	}
	loss, grads, err := t.config.LossAndGrads(b, f, targets, invCount, seed, into(f), t.loss(full))
	if err == nil {
		b.Output("loss", loss)
	}
	return f, grads, err
}

func (t training) loss(logits bool) model.LossOptions {
	return model.LossOptions{ZLoss: t.zLoss, ChunkRows: t.chunkRows, Logits: logits}
}

// update records clipping and AdamW.
func (t training) update(b *graph.Builder, values, grads []*graph.Value, scale *graph.Value) {
	hyper := b.Input("hyper", graph.F32, graph.HyperLen)
	partials := b.Temp("partials", graph.F32, len(grads), graph.SumSquaresParts)
	for i, g := range grads {
		b.SumSquares(g, b.View(partials, i*graph.SumSquaresParts, graph.SumSquaresParts))
	}
	norm, clip := b.ClipNorm(partials, scale, t.maxNorm)
	b.Output("grad_norm", norm)
	for i, p := range t.config.Params() {
		m, v := b.Var("adam.m."+p.Name, graph.F32, p.Shape...), b.Var("adam.v."+p.Name, graph.F32, p.Shape...)
		var attr graph.AdamWAttr
		if p.Role.IsMatrix() {
			attr.Decay = 1
		}
		b.AdamW(values[i], m, v, grads[i], hyper, clip, nil, attr)
	}
}

// step is a whole training step. With full, logits, gradients and activations are outputs too.
func (t training) step(full bool) (*graph.Program, error) {
	b := graph.NewBuilder()
	scale := t.lossScale(b)
	f, grads, err := t.forwardBackward(b, scale, full, func(*model.Forward) map[*graph.Value]*graph.Value { return nil })
	if err != nil {
		return nil, err
	}
	var values []*graph.Value
	for _, p := range t.config.Params() {
		values = append(values, f.Params[p.Name])
	}
	t.update(b, values, grads, scale)
	if full {
		t.expose(b, f, grads)
	}
	return b.Build("step"), nil
}

func (t training) expose(b *graph.Builder, f *model.Forward, grads []*graph.Value) {
	b.Output("logits", f.Logits)
	for i, p := range t.config.Params() {
		b.Output("grad."+p.Name, grads[i])
	}
	for i, h := range f.Hidden {
		b.Output(fmt.Sprintf("act.hidden.%d", i), h)
	}
	b.Output("act.final", f.Final)
	for i := range f.QRope {
		layer := fmt.Sprintf("act.layers.%d.", i)
		b.Output(layer+"q_rope", f.QRope[i])
		b.Output(layer+"k_rope", f.KRope[i])
		b.Output(layer+"lse", f.LSE[i])
	}
}

// accumulate adds a micro-batch's gradients to the variables "grad."+name.
func (t training) accumulate() (*graph.Program, error) {
	b := graph.NewBuilder()
	_, _, err := t.forwardBackward(b, t.lossScale(b), false, func(f *model.Forward) map[*graph.Value]*graph.Value {
		into := map[*graph.Value]*graph.Value{}
		for _, p := range t.config.Params() {
			into[f.Params[p.Name]] = b.Var("grad."+p.Name, graph.F32, p.Shape...)
		}
		return into
	})
	if err != nil {
		return nil, err
	}
	return b.Build("accumulate"), nil
}

// apply takes the step that was accumulated, and clears the accumulators.
func (t training) apply() *graph.Program {
	b := graph.NewBuilder()
	var values, grads []*graph.Value
	for _, p := range t.config.Params() {
		values = append(values, b.Var(p.Name, graph.F32, p.Shape...))
		grads = append(grads, b.Var("grad."+p.Name, graph.F32, p.Shape...))
	}
	t.update(b, values, grads, t.lossScale(b))
	for _, g := range grads {
		b.Fill(g, 0)
	}
	return b.Build("apply")
}

// eval gives the loss alone.
func (t training) eval() *graph.Program {
	b := graph.NewBuilder()
	f, targets, invCount := t.forward(b)
	b.Output("loss", t.config.Loss(b, f, targets, invCount, t.loss(false)))
	return b.Build("eval")
}

// narrowEps is AdamW's eps in programs of 16 bits, whose gradients are clipped to a norm of 1, about 0.016 an element. With 1e-8 the first steps are as long
// for a gradient of nearly nothing as for another, and go to the other side with its rounding: a parameter is then off by twice the learning rate in some
// runs and not in others, which no bound that is worth something can allow. With this one a step moves by no more than lr/eps times the gradient.
const narrowEps = 0.03

// hyper is AdamW's operand at a step of the training.
func (t training) hyper(step int, lr float64) []float64 {
	eps := 1e-8
	if t.storage.Size() == 2 {
		eps = narrowEps
	}
	return hyper(step, lr, 0.9, 0.95, eps, 0.1)
}

// hyper is AdamW's operand at a step, 1 for the first.
func hyper(step int, lr, beta1, beta2, eps, decay float64) []float64 {
	h := make([]float64, graph.HyperLen)
	h[graph.HyperLR], h[graph.HyperBeta1], h[graph.HyperBeta2] = lr, beta1, beta2
	h[graph.HyperEps], h[graph.HyperWeightDecay] = eps, decay
	h[graph.HyperBias1], h[graph.HyperBias2] = 1-math.Pow(beta1, float64(step)), 1-math.Pow(beta2, float64(step))
	return h
}

// feed gives a machine a batch.
func (t training) feed(m machine, tokens, targets []int32) {
	kept := 0
	for _, x := range targets {
		if x >= 0 && int(x) < t.config.VocabSize {
			kept++
		}
	}
	m.Set("tokens", tokens)
	m.Set("targets", targets)
	m.Set("inv_count", []float64{1 / float64(kept)})
	t.setScale(m, 1024)
}

// setScale feeds the loss scale of a program that has one.
func (t training) setScale(m machine, scale float64) {
	if t.storage == graph.F16 {
		m.Set("loss_scale", []float64{scale})
	}
}
