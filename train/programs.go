package train

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// Names of the programs' inputs, outputs and variables. Parameters are variables under their own names.
const (
	InputTokens   = "tokens"     // (B, T) i32
	InputTargets  = "targets"    // (B, T) i32; graph.IgnoreTarget leaves a position out
	InputInvCount = "inv_count"  // (1) f32: 1 / the number of targets kept in the whole step, over all its micro-batches
	InputHyper    = "hyper"      // (graph.HyperLen) f32
	InputRounding = "rounding"   // (graph.KeyLen) i32: the key of programs with masters in bf16; others have no such input
	InputScale    = "loss_scale" // (1) f32: what the gradients of programs in f16 are times; others have no such input
	InputRows     = "rows"       // (B) i32: which positions LogitsProgram gives, sequence*T + position

	OutputLoss     = "loss"      // (1) f32: the sum of the losses times inv_count, z-loss included
	OutputGradNorm = "grad_norm" // (1) f32: of all gradients together, before clipping
	OutputLosses   = "losses"    // B*T f32 from ScoreProgram: the loss of each position in nats, 0 where the target is ignored
	OutputLogits   = "logits"    // (B, T, V) f32 from a training program with Grads, (B, V) f32 from LogitsProgram

	PrefixM    = "adam.m." // variables: the first moment of a parameter
	PrefixV    = "adam.v." // the second
	PrefixGrad = "grad."   // variables of AccumulateProgram and ApplyProgram, outputs of StepProgram with Grads
)

// DecayRule says which parameters AdamW's weight decay acts on, by role.
type DecayRule string

const (
	DecayMatrices            DecayRule = "matrices"              // parameters with two axes, the embedding among them
	DecayMatricesNoEmbedding DecayRule = "matrices_no_embedding" // those without the embedding, which is also the head when tied
	DecayAll                 DecayRule = "all"                   // gains and QK scales too
	// Besides these, roles joined by + are those that decay: matrix+head+input_gain.
)

// Validate returns an error that names the rules that exist.
func (r DecayRule) Validate() error {
	switch r {
	case "", DecayMatrices, DecayMatricesNoEmbedding, DecayAll:
		return nil
	}
	var known []string
	for _, role := range model.Roles() {
		known = append(known, role.String())
	}
	names := strings.Split(string(r), "+")
	slices.Sort(names)
	for i, name := range names {
		if !slices.Contains(known, name) || i > 0 && name == names[i-1] {
			return fmt.Errorf("decay: %q is unknown: use %s, %s, %s, or roles joined by +, each once, of %s", string(r), DecayMatrices, DecayMatricesNoEmbedding, DecayAll,
				strings.Join(known, ", "))
		}
	}
	return nil
}

// Applies tells whether a parameter of the role is decayed.
func (r DecayRule) Applies(role model.Role) bool {
	switch r {
	case DecayAll:
		return true
	case DecayMatricesNoEmbedding:
		return role.IsMatrix() && role != model.RoleEmbedding
	case "", DecayMatrices:
		return role.IsMatrix()
	}
	return slices.Contains(strings.Split(string(r), "+"), role.String())
}

// ProgramOptions is what the programs of a model depend on besides its config.
type ProgramOptions struct {
	Batch   int       // sequences in a (micro-)batch
	SeqLen  int       // their length; 0: the config's
	MaxNorm float32   // clip the gradients to this global norm; 0: never
	ZLoss   float32   // coefficient of the squared log-sum-exp of the logits; 0: off
	Decay   DecayRule // empty: DecayMatrices
	// Recompute trades time for memory: which activations training programs compute again. Empty: none of them.
	Recompute model.Recompute
	// ChunkRows is how many tokens have their logits in memory at a time, a multiple of model.RowsUnit. 0: what model.LossOptions says.
	ChunkRows int
	// Storage is the format of activations and their gradients: f32, bf16 or f16. Matrices are cast to it once a program, if they are in another; gradients of
	// parameters, moments and gains are f32.
	Storage graph.DType
	// Masters is the format of the matrices' variables: f32, or bf16, which AdamW rounds stochastically.
	Masters graph.DType
	// Grads makes StepProgram give more outputs, for tests and diagnostics: "logits", "grad."+parameter (not clipped), and the activations "act.hidden.0" to
	// "act.hidden.N", "act.final" (B, T, D), and for each block i "act.layers.i.q_rope" (B, T, H*h), "act.layers.i.k_rope" (B, T, K*h)
	// and "act.layers.i.lse" (B, H, T).
	Grads bool
	// Diagnostics, where it is not nil, makes training programs measure what a Diagnosis tells, with the same bits in all else, and remembers how to read that.
	Diagnostics *Diagnostics

	nearest bool // masters in bf16 are rounded to nearest, for a comparison
}

func (o ProgramOptions) check(cfg model.Config) (model.Config, ProgramOptions, error) {
	if err := cfg.Validate(); err != nil {
		return cfg, o, err
	}
	cfg = cfg.Normalize()
	if o.SeqLen == 0 {
		o.SeqLen = cfg.SeqLen
	}
	switch {
	case o.Storage == graph.I32:
		return cfg, o, errors.New("ProgramOptions.Storage: i32 is not possible: use f32, bf16 or f16")
	case o.Masters != graph.F32 && o.Masters != graph.BF16:
		return cfg, o, fmt.Errorf("masters: %s is not possible: use f32 or bf16", o.Masters)
	case o.Batch < 1:
		return cfg, o, fmt.Errorf("batch: %d is too small: use at least 1", o.Batch)
	case o.SeqLen < 1:
		return cfg, o, fmt.Errorf("seq_len: %d is too small: use at least 1", o.SeqLen)
	case !(o.MaxNorm >= 0) || math.IsInf(float64(o.MaxNorm), 0):
		return cfg, o, fmt.Errorf("ProgramOptions.MaxNorm: %g is not possible: use a positive number, or 0 for no clipping", o.MaxNorm)
	case !(o.ZLoss >= 0) || math.IsInf(float64(o.ZLoss), 0):
		return cfg, o, fmt.Errorf("z_loss: %g is not possible: use a positive number, or 0 for off", o.ZLoss)
	}
	if o.ChunkRows < 0 || o.ChunkRows%model.RowsUnit != 0 {
		return cfg, o, fmt.Errorf("ProgramOptions.ChunkRows: %d is not possible: use a multiple of %d, or 0 to have it chosen", o.ChunkRows, model.RowsUnit)
	}
	if err := errors.Join(o.Decay.Validate(), o.Recompute.Validate()); err != nil {
		return cfg, o, err
	}
	widest := max(cfg.VocabSize, cfg.DFF, cfg.NHeads*cfg.HeadDim, cfg.DModel)
	if o.Batch > model.MaxElems/o.SeqLen || o.Batch*o.SeqLen > model.MaxElems/widest {
		return cfg, o, fmt.Errorf("batch: %d sequences of %d tokens times %d (the widest of vocab_size, d_ff, d_model and the heads) are too many elements for one tensor: use a smaller batch and accumulate", o.Batch, o.SeqLen, widest)
	}
	return cfg, o, nil
}

// pass is a program being recorded: the forward pass but for the head, and what the loss needs.
type pass struct {
	cfg               model.Config
	b                 *graph.Builder
	f                 *model.Forward
	targets, invCount *graph.Value
	loss              model.LossOptions
}

func newPass(cfg model.Config, o ProgramOptions, zloss float32) *pass {
	b := graph.NewBuilder()
	tokens := b.Input(InputTokens, graph.I32, o.Batch, o.SeqLen)
	targets := b.Input(InputTargets, graph.I32, o.Batch, o.SeqLen)
	invCount := b.Input(InputInvCount, graph.F32, 1)
	p := &pass{cfg: cfg, b: b, targets: targets, invCount: invCount}
	p.f = cfg.ObservedTrunk(b, tokens, o.Storage, o.Masters, o.Diagnostics.observer(b, cfg))
	o.Diagnostics.trunk(p.f)
	p.loss = model.LossOptions{ZLoss: zloss, ChunkRows: o.ChunkRows, Logits: o.Grads}
	p.f.Recompute(b, o.Recompute)
	return p
}

// lossScale is an input of programs in f16, below whose smallest numbers most gradients would be; nil in others.
func (o ProgramOptions) lossScale(b *graph.Builder) *graph.Value {
	if o.Storage != graph.F16 {
		return nil
	}
	return b.Input(InputScale, graph.F32, 1)
}

// backward records the loss and its gradients times the scale (nil for 1) for all parameters, added into into's accumulators where it has them.
func (p *pass) backward(scale *graph.Value, into map[*graph.Value]*graph.Value) ([]*graph.Value, error) {
	if scale == nil {
		scale = p.b.Fill(p.b.Temp("seed", graph.F32, 1), 1)
	}
	loss, grads, err := p.cfg.LossAndGrads(p.b, p.f, p.targets, p.invCount, scale, into, p.loss)
	if err == nil {
		p.b.Output(OutputLoss, loss)
	}
	return grads, err
}

// StepProgram is a whole training step: forward, backward, clipping, AdamW.
func StepProgram(cfg model.Config, o ProgramOptions) (*graph.Program, error) {
	cfg, o, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	p := newPass(cfg, o, o.ZLoss)
	params := cfg.Params()
	scale := o.lossScale(p.b)
	p.loss.Wrt = o.Diagnostics.wants(cfg, p.f, false)
	grads, err := p.backward(scale, nil)
	if err != nil {
		return nil, err
	}
	o.Diagnostics.backward(grads[len(params):], false)
	grads = grads[:len(params)]
	values := make([]*graph.Value, len(params))
	for i, q := range params {
		values[i] = p.f.Params[q.Name]
	}
	update(p.b, o, params, values, grads, scale)
	if o.Grads {
		p.expose(params, grads)
	}
	return p.b.Build("step"), nil
}

// AccumulateProgram adds a micro-batch's gradients to the accumulators. Its loss is the micro-batch's part of the step's loss.
func AccumulateProgram(cfg model.Config, o ProgramOptions) (*graph.Program, error) {
	cfg, o, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	p := newPass(cfg, o, o.ZLoss)
	params := cfg.Params()
	into := map[*graph.Value]*graph.Value{}
	for _, q := range params {
		into[p.f.Params[q.Name]] = p.b.Var(PrefixGrad+q.Name, graph.F32, q.Shape...)
	}
	p.loss.Wrt = o.Diagnostics.wants(cfg, p.f, true)
	grads, err := p.backward(o.lossScale(p.b), into)
	if err != nil {
		return nil, err
	}
	o.Diagnostics.backward(grads[len(params):], true)
	return p.b.Build("accumulate"), nil
}

// ApplyProgram clips the accumulated gradients, takes the AdamW step, and sets the accumulators back to zero.
func ApplyProgram(cfg model.Config, o ProgramOptions) (*graph.Program, error) {
	cfg, o, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder()
	o.Diagnostics.beginApply(b)
	params := cfg.Params()
	values, grads := make([]*graph.Value, len(params)), make([]*graph.Value, len(params))
	for i, q := range params {
		values[i] = q.Var(b, o.Masters)
	}
	for i, q := range params {
		grads[i] = b.Var(PrefixGrad+q.Name, graph.F32, q.Shape...)
	}
	update(b, o, params, values, grads, o.lossScale(b))
	for _, g := range grads {
		b.Fill(g, 0)
	}
	return b.Build("apply"), nil
}

// EvalProgram gives the loss alone, and never with z-loss.
func EvalProgram(cfg model.Config, o ProgramOptions) (*graph.Program, error) {
	cfg, o, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	o.Grads, o.Diagnostics = false, nil
	p := newPass(cfg, o, 0)
	p.b.Output(OutputLoss, cfg.Loss(p.b, p.f, p.targets, p.invCount, p.loss))
	return p.b.Build("eval"), nil
}

// LogitsProgram gives the logits of one position of each sequence, for sampling: the rows input names it. Attention is causal, so what stands after
// the position does not matter.
func LogitsProgram(cfg model.Config, o ProgramOptions) (*graph.Program, error) {
	cfg, o, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder()
	tokens := b.Input(InputTokens, graph.I32, o.Batch, o.SeqLen)
	rows := b.Input(InputRows, graph.I32, o.Batch)
	f := cfg.Trunk(b, tokens, o.Storage, o.Masters)
	final := b.View(f.Final, 0, o.Batch*o.SeqLen, cfg.DModel)
	logits := cfg.Head(b, f, b.Embedding(final, rows))
	if logits.DType() != graph.F32 {
		logits = b.Cast(logits, graph.F32)
	}
	b.Output(OutputLogits, logits)
	return b.Build("logits"), nil
}

// update clips the gradients by their norm together and updates the parameters. The gradients are times a scale, unless it is nil.
func update(b *graph.Builder, o ProgramOptions, params []model.Param, values, grads []*graph.Value, scale *graph.Value) {
	hyper := b.Input(InputHyper, graph.F32, graph.HyperLen)
	var rounding *graph.Value
	if o.Masters == graph.BF16 && !o.nearest {
		rounding = b.Input(InputRounding, graph.I32, graph.KeyLen)
	}
	m, v := make([]*graph.Value, len(params)), make([]*graph.Value, len(params))
	for i, q := range params {
		m[i] = b.Var(PrefixM+q.Name, graph.F32, q.Shape...)
		v[i] = b.Var(PrefixV+q.Name, graph.F32, q.Shape...)
	}
	partials := b.Temp("partials", graph.F32, len(grads)*graph.SumSquaresParts)
	for i, g := range grads {
		b.SumSquares(g, b.View(partials, i*graph.SumSquaresParts, graph.SumSquaresParts))
	}
	norm, clip := b.ClipNorm(partials, scale, o.MaxNorm)
	b.Output(OutputGradNorm, norm)
	attrOf := func(i int) (attr graph.AdamWAttr) {
		if o.Decay.Applies(params[i].Role) {
			attr.Decay = 1
		}
		return attr
	}
	o.Diagnostics.update(params, partials, func(i int, dst *graph.Value) {
		b.AdamWStats(values[i], m[i], v[i], grads[i], hyper, clip, dst, attrOf(i))
	}, values)
	adamW := func(i int, key *graph.Value) {
		attr := attrOf(i)
		if key != nil {
			attr.Tensor = uint32(i)
		}
		b.AdamW(values[i], m[i], v[i], grads[i], hyper, clip, key, attr)
	}
	var narrow []int // stand behind the others, which a device may update together where they are neighbours
	for i, p := range values {
		if p.DType() == graph.F32 {
			adamW(i, nil)
		} else {
			narrow = append(narrow, i)
		}
	}
	for _, i := range narrow {
		adamW(i, rounding)
	}
}

// expose gives gradients and activations as outputs.
func (p *pass) expose(params []model.Param, grads []*graph.Value) {
	p.b.Output(OutputLogits, p.f.Logits)
	for i, q := range params {
		p.b.Output(PrefixGrad+q.Name, grads[i])
	}
	for i, h := range p.f.Hidden {
		p.b.Output(fmt.Sprintf("act.hidden.%d", i), h)
	}
	p.b.Output("act.final", p.f.Final)
	for i := range p.f.QRope {
		p.b.Output(fmt.Sprintf("act.layers.%d.q_rope", i), p.f.QRope[i])
		p.b.Output(fmt.Sprintf("act.layers.%d.k_rope", i), p.f.KRope[i])
		p.b.Output(fmt.Sprintf("act.layers.%d.lse", i), p.f.LSE[i])
	}
}

// Vars lists the variables of programs that share a store, each once, in the order in which they first appear.
func Vars(programs ...*graph.Program) []graph.Var {
	var vars []graph.Var
	seen := map[string]bool{}
	for _, p := range programs {
		for _, v := range p.Vars() {
			if !seen[v.Name] {
				seen[v.Name] = true
				vars = append(vars, v)
			}
		}
	}
	return slices.Clip(vars)
}
