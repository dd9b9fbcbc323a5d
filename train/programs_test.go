package train_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// smallModel has two layers, and every size given and different from the others.
func smallModel() model.Config {
	c := model.Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.NKVHeads, c.HeadDim, c.DFF, c.SeqLen = 11, 12, 2, 4, 2, 6, 20, 5
	return c
}

// machine interprets a program in float64 over shared variables.
func machine(t *testing.T, vars reference.Vars, build func(model.Config, train.ProgramOptions) (*graph.Program, error), c model.Config, o train.ProgramOptions) *reference.Machine {
	t.Helper()
	p, err := build(c, o)
	require.NoError(t, err)
	return reference.NewOver(p, vars)
}

// randomVars gives each parameter values away from special ones.
func randomVars(c model.Config, rng *rand.Rand) reference.Vars {
	vars := reference.Vars{}
	for _, p := range c.Params() {
		x := make([]float64, p.Shape.Elems())
		for i := range x {
			if x[i] = 0.5 * rng.NormFloat64(); !p.Role.IsMatrix() {
				x[i] = 1 + 0.2*rng.NormFloat64()
			}
		}
		vars[p.Name] = x
	}
	return vars
}

// batch is tokens and targets of n sequences, some targets ignored.
type batch struct {
	tokens, targets []int32
	inv             []float64
}

func randomBatch(c model.Config, n int, rng *rand.Rand) batch {
	b := batch{tokens: make([]int32, n*c.SeqLen), targets: make([]int32, n*c.SeqLen)}
	kept := 0
	for i := range b.tokens {
		b.tokens[i], b.targets[i] = rng.Int32N(int32(c.VocabSize)), rng.Int32N(int32(c.VocabSize))
		if i%4 == 3 {
			b.targets[i] = graph.IgnoreTarget
			continue
		}
		kept++
	}
	b.inv = []float64{1 / float64(kept)}
	return b
}

func (b batch) feed(m *reference.Machine) {
	m.Set(train.InputTokens, b.tokens)
	m.Set(train.InputTargets, b.targets)
	m.Set(train.InputInvCount, b.inv)
}

// slice is the sequences from..to-1 as a micro-batch of the whole step.
func (b batch) slice(seqLen, from, to int) batch {
	return batch{b.tokens[from*seqLen : to*seqLen], b.targets[from*seqLen : to*seqLen], b.inv}
}

func hyper(lr, weightDecay float64, step int) []float64 {
	h := make([]float64, graph.HyperLen)
	h[graph.HyperLR], h[graph.HyperBeta1], h[graph.HyperBeta2], h[graph.HyperEps] = lr, 0.9, 0.95, 1e-8
	h[graph.HyperWeightDecay] = weightDecay
	h[graph.HyperBias1], h[graph.HyperBias2] = 1-math.Pow(0.9, float64(step)), 1-math.Pow(0.95, float64(step))
	return h
}

func clone(vars reference.Vars) reference.Vars {
	c := reference.Vars{}
	for name, x := range vars {
		c[name] = append([]float64{}, x...)
	}
	return c
}

func TestStepProgramText(t *testing.T) {
	c := smallModel()
	c.NLayers, c.EmbedNorm, c.Tied = 1, true, true
	p, err := train.StepProgram(c, train.ProgramOptions{Batch: 2, MaxNorm: 1})
	require.NoError(t, err)
	text := p.String() + "\n" + graph.NewPlan(p).String()
	path := filepath.Join("testdata", "step.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./train -update once the text is right")
	require.Equal(t, string(want), text)
}

// TestGradientsAgainstCentralDifferences takes every placement with every QK-Norm; the other axes alternate.
func TestGradientsAgainstCentralDifferences(t *testing.T) {
	i := 0
	for _, placement := range []string{"none", "A", "B", "C", "A+B", "A+C", "B+C", "A+B+C"} {
		for _, qk := range []string{model.QKNormNone, model.QKNormRMS, model.QKNormRMSFull, model.QKNormLayerNorm, model.QKNormL2} {
			c := smallModel()
			c.Placement, c.QKNorm, c.NLayers = placement, qk, 1+i%2
			c.Norm = []string{model.NormRMS, model.NormLayer}[i%2]
			c.MLP = []string{model.MLPSwiGLU, model.MLPGELU, model.MLPReLU}[i%3]
			c.Gain = []string{model.GainLearnable, model.GainLearnable, model.GainLearnable, model.GainFrozen}[i%4]
			c.EmbedNorm, c.FinalNorm, c.Tied = i%3 == 0, i%4 != 1, i%5 < 2
			c.AttnSoftcap, c.LogitSoftcap = []float64{0, 2}[i%2], []float64{0, 0, 3}[i%3]
			zloss := []float32{0, 0.01}[i%2]
			i++
			t.Run(placement+" "+qk, func(t *testing.T) { checkGradients(t, c, zloss) })
		}
	}
}

func checkGradients(t *testing.T, c model.Config, zloss float32) {
	const h = 1e-5
	rng := rand.New(rand.NewPCG(1, 2))
	vars := randomVars(c, rng)
	m := machine(t, vars, train.AccumulateProgram, c, train.ProgramOptions{Batch: 2, ZLoss: zloss})
	randomBatch(c, 2, rng).feed(m)
	require.NoError(t, m.Run())
	grads := clone(vars)
	loss := func() float64 {
		require.NoError(t, m.Run())
		return m.Get(train.OutputLoss)[0]
	}
	for _, p := range c.Params() {
		x, g := vars[p.Name], grads[train.PrefixGrad+p.Name]
		largest := 0.0
		for _, v := range g {
			largest = math.Max(largest, math.Abs(v))
		}
		require.NotZero(t, largest, p.Name)
		for range 2 {
			j := rng.IntN(len(x))
			old := x[j]
			x[j] = old + h
			up := loss()
			x[j] = old - h
			down := loss()
			x[j] = old
			// The difference's own error is about h² times a third derivative, and 1e-16/h from rounding.
			require.InDelta(t, (up-down)/(2*h), g[j], 1e-6*largest+1e-10, "%s[%d] of %+v", p.Name, j, c)
		}
	}
}

func TestAccumulationIsTheWholeBatch(t *testing.T) {
	c := smallModel()
	rng := rand.New(rand.NewPCG(3, 4))
	whole := randomVars(c, rng)
	parts := clone(whole)
	o := train.ProgramOptions{Batch: 3, MaxNorm: 0.5, ZLoss: 0.001}
	one := o
	one.Batch = 1
	step := machine(t, whole, train.StepProgram, c, o)
	accumulate := machine(t, parts, train.AccumulateProgram, c, one)
	apply := machine(t, parts, train.ApplyProgram, c, one)
	for s := 1; s <= 3; s++ {
		b := randomBatch(c, 3, rng)
		b.feed(step)
		step.Set(train.InputHyper, hyper(0.01, 0.1, s))
		require.NoError(t, step.Run())
		loss := 0.0
		for i := range 3 {
			b.slice(c.SeqLen, i, i+1).feed(accumulate)
			require.NoError(t, accumulate.Run())
			loss += accumulate.Get(train.OutputLoss)[0]
		}
		apply.Set(train.InputHyper, hyper(0.01, 0.1, s))
		require.NoError(t, apply.Run())
		require.InEpsilon(t, step.Get(train.OutputLoss)[0], loss, 1e-12)
		require.InEpsilon(t, step.Get(train.OutputGradNorm)[0], apply.Get(train.OutputGradNorm)[0], 1e-12)
		require.Greater(t, step.Get(train.OutputGradNorm)[0], 0.5, "the gradients should be clipped in this test")
	}
	for _, p := range c.Params() {
		require.InDeltaSlice(t, whole[p.Name], parts[p.Name], 1e-10, p.Name)
		require.Equal(t, make([]float64, p.Shape.Elems()), parts[train.PrefixGrad+p.Name], "the accumulator of %s is not empty", p.Name)
	}
}

func TestEvalLeavesZLossOutAndParametersAlone(t *testing.T) {
	c := smallModel()
	rng := rand.New(rand.NewPCG(5, 6))
	vars := randomVars(c, rng)
	before := clone(vars)
	b := randomBatch(c, 2, rng)
	o := train.ProgramOptions{Batch: 2, ZLoss: 0.1, Grads: true}
	eval := machine(t, vars, train.EvalProgram, c, o)
	b.feed(eval)
	require.NoError(t, eval.Run())
	require.Equal(t, before, vars)

	step := machine(t, clone(vars), train.StepProgram, c, o)
	b.feed(step)
	step.Set(train.InputHyper, hyper(0, 0, 1))
	require.NoError(t, step.Run())
	nll, z := 0.0, 0.0
	logits := step.Get(train.OutputLogits)
	for r, target := range b.targets {
		if target == graph.IgnoreTarget {
			continue
		}
		sum := 0.0
		for _, x := range logits[r*c.VocabSize : (r+1)*c.VocabSize] {
			sum += math.Exp(x)
		}
		lse := math.Log(sum)
		nll += lse - logits[r*c.VocabSize+int(target)]
		z += lse * lse
	}
	require.InEpsilon(t, nll*b.inv[0], eval.Get(train.OutputLoss)[0], 1e-12)
	require.InEpsilon(t, (nll+float64(o.ZLoss)*z)*b.inv[0], step.Get(train.OutputLoss)[0], 1e-12)
}

func TestLogitsProgramGivesTheRowsAskedFor(t *testing.T) {
	for _, tied := range []bool{false, true} {
		c := smallModel()
		c.Tied, c.LogitSoftcap = tied, 4
		rng := rand.New(rand.NewPCG(7, 8))
		vars := randomVars(c, rng)
		b := randomBatch(c, 2, rng)
		o := train.ProgramOptions{Batch: 2, Grads: true}
		step := machine(t, clone(vars), train.StepProgram, c, o)
		b.feed(step)
		step.Set(train.InputHyper, hyper(0, 0, 1))
		require.NoError(t, step.Run())
		all := step.Get(train.OutputLogits)

		m := machine(t, vars, train.LogitsProgram, c, o)
		m.Set(train.InputTokens, b.tokens)
		rows := []int32{3, int32(c.SeqLen) + 1} // position 3 of the first sequence, 1 of the second
		m.Set(train.InputRows, rows)
		require.NoError(t, m.Run())
		got := m.Get(train.OutputLogits)
		for i, r := range rows {
			v := c.VocabSize
			require.InDeltaSlice(t, all[int(r)*v:int(r+1)*v], got[i*v:(i+1)*v], 1e-12)
		}
	}
}

func TestDecayGoesByRole(t *testing.T) {
	for rule, want := range map[train.DecayRule]map[model.Role]bool{
		"":                             {model.RoleEmbedding: true, model.RoleHead: true, model.RoleMatrix: true},
		train.DecayMatrices:            {model.RoleEmbedding: true, model.RoleHead: true, model.RoleMatrix: true},
		"matrix+input_gain":            {model.RoleMatrix: true, model.RoleInputGain: true},
		train.DecayMatricesNoEmbedding: {model.RoleHead: true, model.RoleMatrix: true},
		train.DecayAll: {
			model.RoleEmbedding: true, model.RoleHead: true, model.RoleMatrix: true, model.RoleInputGain: true, model.RoleOutputGain: true,
			model.RoleFinalGain: true, model.RoleQKGain: true,
		},
	} {
		c := smallModel()
		p, err := train.StepProgram(c, train.ProgramOptions{Batch: 1, Decay: rule})
		require.NoError(t, err)
		decayed := map[string]bool{}
		for _, n := range p.Nodes() {
			if n.Op == graph.OpAdamW {
				decayed[n.In[0].Name()] = graph.AttrOf[graph.AdamWAttr](n).Decay == 1
			}
		}
		require.Len(t, decayed, len(c.Params()))
		for _, q := range c.Params() {
			require.Equal(t, want[q.Role], decayed[q.Name], "%s under %q", q.Name, rule)
		}
	}
}

func TestProgramsRefuseWhatCannotBe(t *testing.T) {
	good := train.ProgramOptions{Batch: 1}
	for _, x := range []struct {
		change func(c *model.Config, o *train.ProgramOptions)
		want   string
	}{
		{func(c *model.Config, _ *train.ProgramOptions) { c.NHeads = 3 }, "n_kv_heads: 2 does not divide n_heads 3: use 1 or 3"},
		{func(_ *model.Config, o *train.ProgramOptions) { o.Batch = 0 }, "batch: 0 is too small: use at least 1"},
		{func(_ *model.Config, o *train.ProgramOptions) { o.SeqLen = -1 }, "seq_len: -1 is too small: use at least 1"},
		{func(_ *model.Config, o *train.ProgramOptions) { o.MaxNorm = -1 }, "ProgramOptions.MaxNorm: -1 is not possible: use a positive number, or 0 for no clipping"},
		{func(_ *model.Config, o *train.ProgramOptions) { o.ZLoss = float32(math.NaN()) }, "z_loss: NaN is not possible: use a positive number, or 0 for off"},
		{func(_ *model.Config, o *train.ProgramOptions) { o.Decay = "some" }, `decay: "some" is unknown: use matrices, matrices_no_embedding, all, or roles joined by +, each once, of embedding, head, matrix, embed_gain, input_gain, output_gain, sum_gain, final_gain, qk_gain, qk_scale`},
		{func(_ *model.Config, o *train.ProgramOptions) { o.Batch = 1 << 40 }, "batch: 1099511627776 sequences of 5 tokens times 24 (the widest of vocab_size, d_ff, d_model and the heads) are too many elements for one tensor: use a smaller batch and accumulate"},
	} {
		c, o := smallModel(), good
		x.change(&c, &o)
		for _, build := range []func(model.Config, train.ProgramOptions) (*graph.Program, error){
			train.StepProgram, train.AccumulateProgram, train.ApplyProgram, train.EvalProgram, train.LogitsProgram,
		} {
			_, err := build(c, o)
			require.EqualError(t, err, x.want)
		}
	}
}

func TestVarsOfProgramsThatShareAStore(t *testing.T) {
	c, o := smallModel(), train.ProgramOptions{Batch: 1}
	accumulate, err := train.AccumulateProgram(c, o)
	require.NoError(t, err)
	apply, err := train.ApplyProgram(c, o)
	require.NoError(t, err)
	vars := train.Vars(accumulate, apply)
	require.Len(t, vars, 4*len(c.Params()))
	for i, p := range c.Params() {
		require.Equal(t, graph.Var{Name: p.Name, DType: graph.F32, Shape: p.Shape}, vars[i])
	}
}

func TestGradsAreOutputs(t *testing.T) {
	c := smallModel()
	p, err := train.StepProgram(c, train.ProgramOptions{Batch: 2, SeqLen: 3, Grads: true})
	require.NoError(t, err)
	for name, shape := range map[string]graph.Shape{
		train.OutputLoss: {1}, train.OutputGradNorm: {1}, train.OutputLogits: {2, 3, 11}, "act.final": {2, 3, 12},
		"act.hidden.0": {2, 3, 12}, "act.hidden.2": {2, 3, 12},
		"act.layers.1.q_rope": {2, 3, 24}, "act.layers.1.k_rope": {2, 3, 12}, "act.layers.1.lse": {2, 4, 3},
	} {
		require.NotNil(t, p.Output(name), name)
		require.Equal(t, shape, p.Output(name).Shape(), name)
	}
	for _, q := range c.Params() {
		require.NotNil(t, p.Output(train.PrefixGrad+q.Name), fmt.Sprintf("no gradient of %s", q.Name))
	}
}
