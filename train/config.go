package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/tasks"
)

// Config is a training run. Start from [FromPreset] or [Load]; change what differs, and hand it to [New]. The key of a field in
// YAML is its tag, after "model." or "data." for those two sections. Where a comment says so, a negative value asks for a
// default that follows from other keys; [Config.Resolve] fills it in.
type Config struct {
	Model ModelConfig `yaml:"model"`
	Data  DataConfig  `yaml:"data"`
	Tasks TasksConfig `yaml:"tasks"`

	SeqLen       int `yaml:"seq_len"`      // T, tokens in a sequence
	Batch        int `yaml:"batch"`        // B, sequences in a micro-batch
	Accumulation int `yaml:"accumulation"` // micro-batches in a step
	Steps        int `yaml:"steps"`

	LR       float64 `yaml:"lr"`       // the schedule's peak
	MinLR    float64 `yaml:"min_lr"`   // the schedule's end; negative: lr/10
	Warmup   int     `yaml:"warmup"`   // steps; negative: a tenth of all
	Schedule string  `yaml:"schedule"` // ScheduleCosine or ScheduleConstant

	Beta1       float64   `yaml:"beta1"`             // AdamW's decay of the first moment
	Beta2       float64   `yaml:"beta2"`             // and of the second
	Eps         float64   `yaml:"eps"`               // AdamW's, beside the root of the second moment
	WeightDecay float64   `yaml:"weight_decay"`      // decoupled: a step multiplies by 1 - lr weight_decay
	Decay       DecayRule `yaml:"decay"`             // which parameters decay
	Independent bool      `yaml:"independent_decay"` // a step multiplies by 1 - weight_decay lr(t)/lr, whatever the peak lr (Wortsman et al. 2023)
	Clip        float64   `yaml:"clip"`              // largest norm of the gradient; 0: not clipped
	ZLoss       float64   `yaml:"z_loss"`            // coefficient of log² Z (Chowdhery et al. 2022); 0: off

	Precision      string  `yaml:"precision"`        // of activations: PrecisionAuto, f32, bf16 or f16
	Masters        string  `yaml:"masters"`          // of matrices in the Store: f32, or bf16, rounded stochastically; gains are f32
	LossScale      float64 `yaml:"loss_scale"`       // in f16, what gradients are times in the first step
	LossScaleSteps int     `yaml:"loss_scale_steps"` // steps without an overflow after which it is doubled

	Moments   string          `yaml:"moments"`   // where AdamW's moments are: MomentsDevice or MomentsHost
	Recompute model.Recompute `yaml:"recompute"` // which activations the backward pass computes again, to save memory

	QKScalePercentile float64 `yaml:"qk_scale_percentile"` // of the training documents' lengths sets model.qk_scale_length (Henry et al. 2020: 97.5); 0: off

	Seed uint64 `yaml:"seed"` // of the initial parameters, the data's order and the samples

	EvalEvery    int `yaml:"eval_every"`    // steps; the last step is always evaluated; 0: only that; negative: a tenth of all, at least 25
	EvalBatches  int `yaml:"eval_batches"`  // most micro-batches of one evaluation; 0: the whole validation text
	SampleEvery  int `yaml:"sample_every"`  // steps; 0: never; negative: a quarter of all, at least 25
	SampleTokens int `yaml:"sample_tokens"` // length of those samples

	// DiagnosticsEvery is the number of steps between diagnosed ones (see Diagnosis); the first and the last step are diagnosed too. 0: none; negative: a fiftieth
	// of all, at least 50, and none where the device has no room for that.
	DiagnosticsEvery int `yaml:"diagnostics_every"`

	Device string `yaml:"device"` // auto, cpu, vulkan or vulkan:N, for whoever opens the backend
}

// ModelConfig is the model: a preset, and what differs from it.
type ModelConfig struct {
	Preset       string `yaml:"preset"` // its name, for the record: FromPreset has copied its fields
	model.Config `yaml:",inline"`
}

// DataConfig is the text and how it becomes tokens.
type DataConfig struct {
	Path        string  `yaml:"path"`         // text file, or folder of them; empty: the built-in corpus
	Tokenizer   string  `yaml:"tokenizer"`    // TokenizerAuto and so on
	VocabSize   int     `yaml:"vocab_size"`   // most tokens of a BPE that is trained
	ValFraction float64 `yaml:"val_fraction"` // the share of the text, at its end, that is kept for validation
}

// TasksConfig is what the model is scored on after the last step (package tasks).
type TasksConfig struct {
	Files string `yaml:"files"` // paths, joined by commas; empty: none
	Limit int    `yaml:"limit"` // the first so many documents of each; 0: all
}

// Paths are the files.
func (c TasksConfig) Paths() []string {
	if strings.TrimSpace(c.Files) == "" {
		return nil
	}
	all := strings.Split(c.Files, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// Load reads the files.
func (c TasksConfig) Load() ([]tasks.Task, error) {
	all, err := tasks.Load(c.Paths(), c.Limit)
	if err != nil {
		return nil, fmt.Errorf("tasks.files: %w", err)
	}
	return all, nil
}

// defaultTaskLimit is few documents, so that scoring takes little of a run's time: the standard error of an accuracy is then up to 0.05.
const defaultTaskLimit = 100

// Tokenizers (DataConfig.Tokenizer).
const (
	TokenizerAuto = "auto" // bpe, or byte where the text is too short to train a BPE on
	TokenizerByte = "byte" // a token is a byte
	TokenizerBPE  = "bpe"  // byte pair encoding, trained on the training text
)

// ConfigError is a value that cannot be.
type ConfigError struct {
	Key    string // as in YAML; empty if no single one is to blame
	Reason string // and what to do
}

func (e *ConfigError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + ": " + e.Reason
}

func badKey(key, format string, args ...any) error {
	return &ConfigError{key, fmt.Sprintf(format, args...)}
}

// recipe is what a preset sets besides the model.
type recipe struct {
	batch, accumulation, steps int
	lr, weightDecay            float64
	vocab                      int // of a BPE
	evalBatches                int
}

// recipes hold the training settings of model presets. Those of the paper's models are its table 2: 256 sequences a step, 14,400 steps,
// weight decay 0.033, the best learning rate.
var recipes = map[string]recipe{
	"nano":  {batch: 8, accumulation: 1, steps: 700, lr: 7e-3, weightDecay: 0.05, vocab: 1024, evalBatches: 16},
	"tiny":  {batch: 8, accumulation: 1, steps: 1000, lr: 5e-3, weightDecay: 0.1, vocab: 1024, evalBatches: 16},
	"small": {batch: 16, accumulation: 1, steps: 3000, lr: 3e-3, weightDecay: 0.1, vocab: 2048, evalBatches: 32},
	"gpt2":  {batch: 4, accumulation: 8, steps: 10000, lr: 2e-3, weightDecay: 0.1, vocab: 16384, evalBatches: 64},

	"peri-400m": {batch: 1, accumulation: 256, steps: 14400, lr: 2e-3, weightDecay: 0.033, vocab: 32768, evalBatches: 256},
	"peri-1.5b": {batch: 1, accumulation: 256, steps: 14400, lr: 2e-3, weightDecay: 0.033, vocab: 32768, evalBatches: 256},
	"peri-3.2b": {batch: 1, accumulation: 256, steps: 14400, lr: 2e-3, weightDecay: 0.033, vocab: 32768, evalBatches: 256},

	"bench-a": {batch: 16, accumulation: 1, steps: 1000, lr: 5e-3, weightDecay: 0.1, vocab: minVocab, evalBatches: 16},
	"bench-b": {batch: 8, accumulation: 1, steps: 1000, lr: 3e-3, weightDecay: 0.1, vocab: 4096, evalBatches: 16},
	"bench-g": {batch: 4, accumulation: 1, steps: 1000, lr: 3e-3, weightDecay: 0.1, vocab: 2048, evalBatches: 16},
	"bench-c": {batch: 2, accumulation: 1, steps: 1000, lr: 2e-3, weightDecay: 0.1, vocab: 16384, evalBatches: 16},
}

// DefaultPreset is the model of a run that names none.
const DefaultPreset = "nano"

// FromPreset returns the settings of one of model.PresetNames, or a *ConfigError.
func FromPreset(name string) (Config, error) {
	m, err := model.Preset(name)
	r, ok := recipes[name]
	if err != nil || !ok {
		return Config{}, badKey("model.preset", "%q is unknown: use %s", name, orList(model.PresetNames()))
	}
	return Config{
		Model:  ModelConfig{Preset: name, Config: m},
		Data:   DataConfig{Tokenizer: TokenizerAuto, VocabSize: r.vocab, ValFraction: 0.1},
		SeqLen: m.SeqLen, Batch: r.batch, Accumulation: r.accumulation, Steps: r.steps,
		LR: r.lr, MinLR: -1, Warmup: -1, Schedule: ScheduleCosine,
		Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: r.weightDecay, Decay: DecayMatrices, Clip: 1, Moments: MomentsDevice, Recompute: model.RecomputeNone,
		Precision: PrecisionAuto, Masters: graph.F32.String(), LossScale: defaultLossScale, LossScaleSteps: defaultScaleGrowth,
		EvalEvery: -1, EvalBatches: r.evalBatches, SampleEvery: -1, SampleTokens: 48, DiagnosticsEvery: -1,
		Tasks: TasksConfig{Limit: defaultTaskLimit}, Seed: 1, Device: "auto",
	}, nil
}

// leastPause is how many steps lie between evaluations or samples that nobody has asked for: a short run is not to spend its time on them.
const leastPause = 25

// leastDiagnosis is how many steps lie between diagnosed ones that nobody has asked for: one takes up to half as long again, so that all cost under 2%.
const leastDiagnosis = 50

// Resolve fills in the defaults that follow from other keys, so that the result, written as YAML, shows every value.
func (c Config) Resolve() Config {
	c.Model.SeqLen = c.SeqLen
	c.Model.Config = c.Model.Normalize()
	if c.MinLR < 0 {
		c.MinLR = c.LR / 10
	}
	derive := func(n *int, steps int) {
		if *n < 0 {
			*n = steps
		}
	}
	derive(&c.Warmup, c.Steps/10)
	derive(&c.EvalEvery, max(leastPause, c.Steps/10))
	derive(&c.SampleEvery, max(leastPause, c.Steps/4))
	derive(&c.DiagnosticsEvery, max(leastDiagnosis, c.Steps/50))
	return c
}

// LearningRates is the schedule.
func (c Config) LearningRates() Schedule {
	return Schedule{Kind: c.Schedule, Peak: c.LR, Min: c.MinLR, Warmup: c.Warmup, Steps: c.Steps}
}

// decayPerLR is what AdamW multiplies by a step's learning rate to decay.
func (c Config) decayPerLR() float64 {
	if c.Independent {
		return c.WeightDecay / c.LR
	}
	return c.WeightDecay
}

// TokensPerStep counts the tokens that one step reads.
func (c Config) TokensPerStep() int { return c.SeqLen * c.Batch * c.Accumulation }

const (
	minVocab  = 257     // 256 bytes and the end of text
	maxVocab  = 1 << 20 // of a BPE
	maxCount  = 1 << 30 // steps, sequences
	maxTokens = 1 << 30 // of a micro-batch: positions are 32 bits wide on devices
)

// Validate checks the config as Resolve completes it; the model's vocabulary may be 0, which takes the tokenizer's. Errors are
// *ConfigError: the key, its value, and what would do.
func (c Config) Validate() error {
	if err := c.checkModelZeros(); err != nil {
		return err
	}
	c = c.Resolve()
	for _, check := range []func() error{c.checkCounts, c.checkNumbers, c.checkNames, c.checkModel} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkCounts() error {
	for _, n := range []struct {
		key          string
		value, least int
	}{
		{"seq_len", c.SeqLen, 1}, {"batch", c.Batch, 1}, {"accumulation", c.Accumulation, 1}, {"steps", c.Steps, 1},
		{"warmup", c.Warmup, 0}, {"eval_every", c.EvalEvery, 0}, {"eval_batches", c.EvalBatches, 0},
		{"sample_every", c.SampleEvery, 0}, {"diagnostics_every", c.DiagnosticsEvery, 0}, {"sample_tokens", c.SampleTokens, 1},
		{"data.vocab_size", c.Data.VocabSize, minVocab}, {"loss_scale_steps", c.LossScaleSteps, 1}, {"tasks.limit", c.Tasks.Limit, 0},
	} {
		if n.value < n.least {
			return badKey(n.key, "%d is too small: use at least %d", n.value, n.least)
		}
		if n.value > maxCount {
			return badKey(n.key, "%d is too large: use at most %d", n.value, maxCount)
		}
	}
	if c.Data.VocabSize > maxVocab {
		return badKey("data.vocab_size", "%d is too large: use at most %d", c.Data.VocabSize, maxVocab)
	}
	if c.Batch > maxTokens/c.SeqLen {
		return badKey("batch", "%d sequences of %d tokens are too many for one micro-batch: use a smaller batch and more accumulation", c.Batch, c.SeqLen)
	}
	return nil
}

func (c Config) checkNumbers() error {
	for _, n := range []struct {
		key   string
		value float64
		zero  bool // allowed
	}{
		{"lr", c.LR, false}, {"min_lr", c.MinLR, true}, {"eps", c.Eps, false}, {"weight_decay", c.WeightDecay, true},
		{"clip", c.Clip, true}, {"z_loss", c.ZLoss, true},
	} {
		switch {
		case n.value > 0 && n.value <= math.MaxFloat32 && float32(n.value) > 0, n.zero && n.value == 0:
		case n.zero:
			return badKey(n.key, "%g is not possible: use a positive number or 0", n.value)
		default:
			return badKey(n.key, "%g is not possible: use a positive number", n.value)
		}
	}
	if !(c.LossScale >= leastLossScale && c.LossScale <= largestLossScale) {
		return badKey("loss_scale", "%g is not possible: use a number from %g to %d, such as %d", c.LossScale, leastLossScale, largestLossScale, defaultLossScale)
	}
	if c.MinLR > c.LR {
		return badKey("min_lr", "%g is over lr %g: lower it, or use -1 for lr/10", c.MinLR, c.LR)
	}
	for i, beta := range []float64{c.Beta1, c.Beta2} {
		if !(beta >= 0 && float32(beta) < 1) {
			return badKey(fmt.Sprintf("beta%d", i+1), "%g is not possible: use a number from 0 to below 1, such as 0.9 for beta1 and 0.95 for beta2", beta)
		}
	}
	if p := c.QKScalePercentile; !(p >= 0 && p <= 100) {
		return badKey("qk_scale_percentile", "%g is not possible: use a percentage such as 97.5, or 0 for none", p)
	}
	if c.Independent && !(float32(c.WeightDecay/c.LR) <= math.MaxFloat32) {
		return badKey("weight_decay", "%g over lr %g is more than float32 can hold: lower it, or use independent_decay: false", c.WeightDecay, c.LR)
	}
	if f := c.Data.ValFraction; !(f > 0 && f < 1) {
		return badKey("data.val_fraction", "%g is not possible: use a share between 0 and 1, such as 0.1", f)
	}
	return nil
}

func (c Config) checkNames() error {
	for _, n := range []struct {
		key, value string
		known      []string
	}{
		{"schedule", c.Schedule, []string{ScheduleCosine, ScheduleConstant}},
		{"moments", c.Moments, []string{MomentsDevice, MomentsHost}},
		{"recompute", string(c.Recompute), model.RecomputeNames()},
		{"precision", c.Precision, PrecisionNames()},
		{"masters", c.Masters, mastersNames},
		{"data.tokenizer", c.Data.Tokenizer, []string{TokenizerAuto, TokenizerByte, TokenizerBPE}},
	} {
		if !slices.Contains(n.known, n.value) {
			return badKey(n.key, "%q is unknown: use %s", n.value, orList(n.known))
		}
	}
	if slices.Contains(c.Tasks.Paths(), "") {
		return badKey("tasks.files", "%q has an empty path: join paths by commas, one between two", c.Tasks.Files)
	}
	if c.Decay == "" {
		return badKey("decay", "it is empty: use %s", DecayMatrices)
	}
	if err := c.Decay.Validate(); err != nil {
		return &ConfigError{"", err.Error()}
	}
	return nil
}

// checkModelZeros refuses the zeros for which [model.Config.Normalize] takes defaults: presets have those already, so that somebody has set the zero.
func (c Config) checkModelZeros() error {
	for _, n := range []struct {
		key   string
		value float64
	}{{"norm_eps", c.Model.NormEps}, {"l2_eps", c.Model.L2Eps}, {"rope_theta", c.Model.RoPETheta}} {
		if n.value == 0 {
			return badKey("model."+n.key, "0 is not possible: use a positive number")
		}
	}
	return nil
}

func (c Config) checkModel() error {
	m := c.Model.Config
	switch {
	case m.VocabSize == 0:
		m.VocabSize = c.Data.VocabSize
	case m.VocabSize < 2:
		return badKey("model.vocab_size", "%d is too small: use 0 for the tokenizer's size, or at least 2", m.VocabSize)
	}
	if err := m.Validate(); err != nil {
		return &ConfigError{"", "model." + err.Error()}
	}
	return nil
}

// orList joins words as a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last <= 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
