package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// smallModel has the sizes of most golden models, whose kernels a device then has already.
func smallModel(change func(c *model.Config)) model.Config {
	c := model.Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF, c.SeqLen = 32, 16, 2, 2, 24, 8
	if change != nil {
		change(&c)
	}
	return c.Normalize()
}

// setParams gives machines a model's initial parameters, and no moments. Gains are spread about their mean, so that one that is left out
// shows.
func setParams(m machine, c model.Config) {
	for _, p := range c.Params() {
		h := fnv.New64a()
		h.Write([]byte(p.Name))
		r := rand.New(rand.NewPCG(h.Sum64(), 5))
		std := p.Std
		if std == 0 {
			std = 0.2
		}
		x := make([]float32, p.Shape.Elems())
		for i := range x {
			x[i] = float32(p.Mean + std*r.NormFloat64())
		}
		m.Set(p.Name, x)
	}
}

func clearMoments(m machine, c model.Config) {
	for _, p := range c.Params() {
		m.Set("adam.m."+p.Name, make([]float32, p.Shape.Elems()))
		m.Set("adam.v."+p.Name, make([]float32, p.Shape.Elems()))
	}
}

// text is a batch that can be learned: each token follows from the one before, but for one in eight.
func text(r *rand.Rand, t training) (tokens, targets []int32) {
	vocab := int32(t.config.VocabSize)
	for range t.batch {
		x := r.Int32N(vocab)
		for range t.config.SeqLen {
			tokens = append(tokens, x)
			if x = (5*x + 3) % vocab; r.IntN(8) == 0 {
				x = r.Int32N(vocab)
			}
			targets = append(targets, x)
		}
	}
	return tokens, targets
}

// modelCases are the programs that models are trained with.
func modelCases() []testCase {
	list := []testCase{
		scenarioCase("block", "peri rms GQA swiglu 2x33x64", func() (scenario, error) { return wideBlock(graph.F32) }),
		scenarioCase("block", "post layernorm gelu soft cap 3x17x30", func() (scenario, error) {
			c := model.Default()
			c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.NKVHeads, c.HeadDim, c.DFF, c.SeqLen = 17, 30, 1, 3, 1, 10, 41, 17
			c.Placement, c.Norm, c.QKNorm, c.MLP, c.AttnSoftcap = "post", model.NormLayer, model.QKNormLayerNorm, model.MLPGELU, 3
			return block(c.Normalize(), 3, graph.F32)
		}),
	}
	for _, s := range []struct {
		name   string
		change func(c *model.Config)
		zLoss  float32
	}{
		{"peri, z-loss and soft caps", func(c *model.Config) { c.AttnSoftcap, c.LogitSoftcap = 2, 5 }, 0.01},
		{"norms everywhere, frozen gains", func(c *model.Config) {
			c.Placement, c.Gain, c.EmbedNorm, c.Tied = "A+B+C", model.GainFrozen, true, true
		}, 0},
		{"no placement, no final norm", func(c *model.Config) {
			c.Placement, c.FinalNorm, c.MLP, c.QKNorm = "none", false, model.MLPReLU, model.QKNormL2
		}, 0},
	} {
		t := training{config: smallModel(s.change), batch: 2, maxNorm: 1, zLoss: s.zLoss}
		list = append(list, scenarioCase("step", s.name, t.steps))
	}
	chunks := training{config: smallModel(func(c *model.Config) { c.LogitSoftcap, c.SeqLen = 5, 53 }), batch: 6, maxNorm: 1, zLoss: 0.01, chunkRows: model.RowsUnit}
	t := training{config: smallModel(nil), batch: 2, maxNorm: 1}
	return append(list,
		scenarioCase("step", "logits in chunks of rows, z-loss and soft cap", chunks.steps),
		testCase{Case{"step", "the same bits run after run"}, t.sameBits},
		scenarioCase("step", "two micro-batches make the step of the whole batch", t.accumulated),
		scenarioCase("step", "training and evaluation share a store", t.evaluated),
		scenarioCase("curve", fmt.Sprintf("%d steps", curveSteps), t.curve))
}

func scenarioCase(group, name string, make func() (scenario, error)) testCase {
	return testCase{Case{group, name}, func(b backend.Backend, _ uint64) outcome {
		s, err := make()
		if err != nil {
			return outcome{err: err}
		}
		return s.check(b)
	}}
}

// wideBlock is the block with the longest sums.
func wideBlock(storage graph.DType) (scenario, error) {
	c := model.Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.NKVHeads, c.DFF, c.SeqLen = 17, 64, 1, 4, 2, 96, 33
	return block(c.Normalize(), 2, storage)
}

// block is one block's output and the gradient of a random linear form of it.
func block(c model.Config, batch int, storage graph.DType) (scenario, error) {
	c.FinalNorm = false
	b := graph.NewBuilder()
	tokens := b.Input("tokens", graph.I32, batch, c.SeqLen)
	f := c.Trunk(b, tokens, storage, graph.F32)
	y := f.Hidden[1]
	b.Output("y", y)
	columns, rows := b.Var("columns", graph.F32, 1, c.DModel), b.Var("rows", graph.F32, batch*c.SeqLen, 1)
	form := b.MatMul(b.Linear(y, columns, nil), rows, nil, nil, graph.MatMulAttr{TransA: true})
	var wrt []*graph.Value
	var names []string
	for _, p := range c.Params() {
		if p.Role != model.RoleHead {
			wrt, names = append(wrt, f.Params[p.Name]), append(names, "grad."+p.Name)
		}
	}
	grads, err := b.Grad(form, b.Fill(b.Temp("seed", graph.F32, 1), 1), wrt, nil)
	if err != nil {
		return scenario{}, err
	}
	for i, g := range grads {
		b.Output(names[i], g)
	}
	run := func(m []machine, see func(string, []float64)) {
		r := rand.New(rand.NewPCG(8, 8))
		setParams(m[0], c)
		for _, name := range []string{"columns", "rows"} {
			x := make([]float32, c.DModel)
			if name == "rows" {
				x = make([]float32, batch*c.SeqLen)
			}
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			m[0].Set(name, x)
		}
		ids, _ := text(r, training{config: c, batch: batch})
		m[0].Set("tokens", ids)
		must(m[0].Run())
		for _, name := range append([]string{"y"}, names...) {
			see(name, m[0].Get(name))
		}
	}
	return scenario{programs: []*graph.Program{b.Build("block")}, run: run, storage: storage}, nil
}

// steps are three whole steps, with every gradient of each and the parameters in the end.
func (t training) steps() (scenario, error) {
	p, err := t.step(true)
	run := func(m []machine, see func(string, []float64)) {
		r := rand.New(rand.NewPCG(9, 9))
		setParams(m[0], t.config)
		clearMoments(m[0], t.config)
		for step := range 3 {
			tokens, targets := text(r, t)
			targets[step], targets[step+3] = graph.IgnoreTarget, int32(t.config.VocabSize)
			t.feed(m[0], tokens, targets)
			m[0].Set("hyper", t.hyper(step+1, 3e-3))
			must(m[0].Run())
			for _, o := range p.Outputs() {
				see(fmt.Sprintf("%s of step %d", o.Name, step+1), m[0].Get(o.Name))
			}
		}
		for _, q := range t.config.Params() {
			see(q.Name+" after", m[0].Get(q.Name))
		}
	}
	return scenario{programs: []*graph.Program{p}, run: run, storage: t.storage}, err
}

// sameBits runs three steps twice from the start, on two compilations of the program, and compares every bit that is left.
func (t training) sameBits(b backend.Backend, _ uint64) (res outcome) {
	s, err := t.steps()
	if err != nil {
		return outcome{err: err}
	}
	var runs [2]map[string][]byte
	for i := range runs {
		runs[i] = map[string][]byte{}
		err := s.on(b, func(name string, x []float64) { runs[i][name] = encode(x, graph.F32) })
		if err != nil {
			return outcome{err: err}
		}
	}
	res.checks = 1
	for _, name := range sortedKeys(runs[0]) {
		if !bytes.Equal(runs[0][name], runs[1][name]) {
			res.err = errors.Join(res.err, fmt.Errorf("%s has other bits in a second run", name))
		}
	}
	return res
}

// accumulated is two micro-batches of one sequence each and the step that they make: the gradients of both together, their norm and the parameters must be
// those of float64, where they agree with the step of both at once.
func (t training) accumulated() (scenario, error) {
	half := t
	half.batch = 1
	micro, err := half.accumulate()
	run := func(m []machine, see func(string, []float64)) {
		setParams(m[0], t.config)
		for _, p := range t.config.Params() {
			m[0].Set("grad."+p.Name, make([]float32, p.Shape.Elems()))
		}
		clearMoments(m[1], t.config)
		r := rand.New(rand.NewPCG(10, 10))
		for step := range 2 {
			tokens, targets := text(r, t)
			seq, loss := t.config.SeqLen, 0.0
			for i := range t.batch {
				m[0].Set("tokens", tokens[i*seq:(i+1)*seq])
				m[0].Set("targets", targets[i*seq:(i+1)*seq])
				m[0].Set("inv_count", []float64{1 / float64(len(targets))})
				t.setScale(m[0], 1024)
				must(m[0].Run())
				loss += m[0].Get("loss")[0]
			}
			for _, p := range t.config.Params() { // after AdamW their sizes are gone
				see(fmt.Sprintf("grad.%s of step %d", p.Name, step+1), m[0].Get("grad."+p.Name))
			}
			m[1].Set("hyper", t.hyper(step+1, 3e-3))
			t.setScale(m[1], 1024)
			must(m[1].Run())
			see(fmt.Sprintf("loss of step %d", step+1), []float64{loss})
			see(fmt.Sprintf("grad_norm of step %d", step+1), m[1].Get("grad_norm"))
		}
		for _, p := range t.config.Params() {
			see(p.Name+" after", m[1].Get(p.Name))
			see("grad."+p.Name+" cleared", m[1].Get("grad."+p.Name))
		}
	}
	return scenario{programs: []*graph.Program{micro, half.apply()}, run: run, storage: t.storage}, err
}

// evaluated submits an evaluation after each step without waiting for the step.
func (t training) evaluated() (scenario, error) {
	p, err := t.step(false)
	run := func(m []machine, see func(string, []float64)) {
		r := rand.New(rand.NewPCG(11, 11))
		setParams(m[0], t.config)
		clearMoments(m[0], t.config)
		held, heldTargets := text(r, t)
		t.feed(m[1], held, heldTargets)
		for step := range 3 {
			tokens, targets := text(r, t)
			t.feed(m[0], tokens, targets)
			m[0].Set("hyper", t.hyper(step+1, 1e-2))
			must(m[0].Run())
			must(m[1].Run())
			see(fmt.Sprintf("evaluation after step %d", step+1), m[1].Get("loss"))
		}
	}
	return scenario{programs: []*graph.Program{p, t.eval()}, run: run, storage: t.storage}, err
}

const (
	curveSteps   = 100
	curveSamples = 3
	curveRate    = 3e-3 // at 1e-2 noise grows a hundred times more over the steps
)

// narrowCurveSteps are fewer, for each has more samples; from some tens of steps on they say no more, and noise grows.
const narrowCurveSteps = 30

func (t training) curveSteps() int {
	if t.storage.Size() == 2 {
		return narrowCurveSteps
	}
	return curveSteps
}

// curve is the loss over a training run. Errors feed on themselves from step to step, so each step's bound is what noise has made of
// any step so far.
func (t training) curve() (scenario, error) {
	p, err := t.step(false)
	run := func(m []machine, see func(string, []float64)) {
		r := rand.New(rand.NewPCG(12, 12))
		setParams(m[0], t.config)
		clearMoments(m[0], t.config)
		losses := make([]float64, t.curveSteps())
		for step := range losses {
			tokens, targets := text(r, t)
			t.feed(m[0], tokens, targets)
			m[0].Set("hyper", t.hyper(step+1, curveRate))
			must(m[0].Run())
			losses[step] = m[0].Get("loss")[0]
			if (step+1)%10 == 0 {
				see(fmt.Sprintf("losses to step %d", step+1), losses[:step+1])
			}
		}
	}
	samples := curveSamples
	if t.storage.Size() == 2 {
		samples = narrowSamples // see spread.bound
	}
	return scenario{programs: []*graph.Program{p}, run: run, samples: samples, storage: t.storage}, err
}
