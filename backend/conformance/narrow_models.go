package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// narrowTrainings are the default model in training, and one that is the other way in each of its axes.
func narrowTrainings(storage graph.DType) (plain, axes training) {
	plain = training{config: smallModel(nil), batch: 2, maxNorm: 1, storage: storage}
	axes = plain
	axes.config = smallModel(func(c *model.Config) {
		c.Placement, c.QKNorm, c.MLP, c.Norm, c.Tied, c.EmbedNorm = "A+C", model.QKNormL2, model.MLPGELU, model.NormLayer, true, true
		c.AttnSoftcap, c.LogitSoftcap = 2, 5
	})
	axes.zLoss = 0.01
	return plain, axes
}

// narrowModelCases are programs with bf16 and f16 activations.
func narrowModelCases() []testCase {
	var list []testCase
	for _, storage := range []graph.DType{graph.BF16, graph.F16} {
		t, axes := narrowTrainings(storage)
		again := axes
		again.recompute = model.RecomputeBlock
		chunks := t
		chunks.config = smallModel(func(c *model.Config) { c.SeqLen = 53 })
		chunks.batch, chunks.chunkRows = 6, model.RowsUnit
		list = append(list,
			scenarioCase("block", storage.String()+" peri rms GQA swiglu 2x33x64", func() (scenario, error) { return wideBlock(storage) }),
			scenarioCase("step", storage.String()+" peri", t.steps),
			scenarioCase("step", storage.String()+" post and input norms, l2, gelu, soft caps, tied", axes.steps),
			testCase{Case{"step", storage.String() + " the same bits run after run"}, t.sameBits},
			scenarioCase("step", storage.String()+" two micro-batches make the step of the whole batch", t.accumulated),
			scenarioCase("curve", fmt.Sprintf("%s %d steps", storage, t.curveSteps()), t.curve))
		if storage == graph.BF16 {
			list = append(list, scenarioCase("step", storage.String()+" logits in chunks of rows", chunks.steps))
		} else {
			list = append(list, scenarioCase("step", storage.String()+" all axes, computed again", again.steps))
		}
	}
	t := training{config: smallModel(nil), batch: 2, maxNorm: 1, storage: graph.F16}
	return append(list, testCase{Case{"step", "f16 a step that overflows is left out"}, t.overflow})
}

// overflow is a step whose loss scale is too large, and which leaves parameters and moments as they are; then one that is taken.
func (t training) overflow(b backend.Backend, _ uint64) (res outcome) {
	p, err := t.step(false)
	if err != nil {
		return outcome{err: err}
	}
	devices, err := newDevices(b, []*graph.Program{p})
	if err != nil {
		return outcome{err: err}
	}
	d := devices[0]
	defer func() {
		if err := closeDevices(d.store, devices); res.err == nil {
			res.err = err
		}
	}()
	setParams(d, t.config)
	clearMoments(d, t.config)
	tokens, targets := text(rand.New(rand.NewPCG(13, 13)), t)
	for step, scale := range []float64{1024, 1e30, 1024} {
		before := t.state(d)
		t.feed(d, tokens, targets)
		t.setScale(d, scale)
		d.Set("hyper", t.hyper(step+1, 3e-3))
		must(d.Run())
		norm := d.Get("grad_norm")[0]
		taken := norm-norm == 0
		if taken != (scale == 1024) {
			return outcome{err: fmt.Errorf("with a loss scale of %g the gradient's norm is %g", scale, norm)}
		}
		for name, was := range before {
			res.checks++
			if is := d.bytes(name); !taken && !bytes.Equal(is, was) {
				return outcome{err: fmt.Errorf("%s changes in a step with a norm of %g", name, norm)}
			} else if taken && bytes.Equal(is, was) {
				return outcome{err: fmt.Errorf("%s does not change in a step with a norm of %g", name, norm)}
			}
		}
	}
	return res
}

// state is every parameter and moment.
func (t training) state(d *device) map[string][]byte {
	list := map[string][]byte{}
	for _, p := range t.config.Params() {
		for _, prefix := range []string{"", "adam.m.", "adam.v."} {
			list[prefix+p.Name] = d.bytes(prefix + p.Name)
		}
	}
	return list
}
