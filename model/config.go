package model

import (
	"fmt"
	"math"
	"strconv"
)

// Config is a model. Its zero value is not valid; start from [Default] or [Preset]. Names in JSON and YAML are those of the tags.
type Config struct {
	VocabSize int `json:"vocab_size" yaml:"vocab_size"` // V; 0 in a preset: the tokenizer's
	DModel    int `json:"d_model" yaml:"d_model"`       // D, the residual stream's width
	NLayers   int `json:"n_layers" yaml:"n_layers"`     // N
	NHeads    int `json:"n_heads" yaml:"n_heads"`       // H, query heads
	NKVHeads  int `json:"n_kv_heads" yaml:"n_kv_heads"` // K, key and value heads, a divisor of H; 0: H
	HeadDim   int `json:"head_dim" yaml:"head_dim"`     // h, even; 0: D/H
	DFF       int `json:"d_ff" yaml:"d_ff"`             // F, the MLP's inner width; 0: 8D/3 for swiglu, rounded up to a multiple of 32, and 4D for the others
	SeqLen    int `json:"seq_len" yaml:"seq_len"`       // T in training; for qk_norm l2 it sets the initial scale too, unless qk_scale_length does

	Placement string `json:"placement" yaml:"placement"` // post, pre, peri, olmo2, none, or positions such as A+B+C: see ParsePlacement
	QKNorm    string `json:"qk_norm" yaml:"qk_norm"`     // QKNormNone and so on
	Norm      string `json:"norm" yaml:"norm"`           // NormRMS or NormLayer: the placements', the embedding's and the final norm
	Gain      string `json:"gain" yaml:"gain"`           // GainLearnable or GainFrozen, for every norm
	MLP       string `json:"mlp" yaml:"mlp"`             // MLPSwiGLU and so on
	EmbedNorm bool   `json:"embed_norm" yaml:"embed_norm"`
	FinalNorm bool   `json:"final_norm" yaml:"final_norm"`
	Tied      bool   `json:"tied" yaml:"tied"` // the head is the embedding matrix

	NormEps      float64 `json:"norm_eps" yaml:"norm_eps"`           // inside the root; 0: 1e-6
	L2Eps        float64 `json:"l2_eps" yaml:"l2_eps"`               // added to the sum of squares of qk_norm l2; 0: 1e-12
	RoPETheta    float64 `json:"rope_theta" yaml:"rope_theta"`       // RoPE's base; 0: 10000
	AttnSoftcap  float64 `json:"attn_softcap" yaml:"attn_softcap"`   // c tanh(s/c) on attention's logits; 0: off
	LogitSoftcap float64 `json:"logit_softcap" yaml:"logit_softcap"` // the same on the head's logits; 0: off

	Init              string `json:"init" yaml:"init"`                               // InitInvSqrtD and so on, or a/d
	ScaleResidualInit bool   `json:"scale_residual_init" yaml:"scale_residual_init"` // o_proj and down_proj times 1/sqrt(2N)
	OutputGainInit    string `json:"output_gain_init" yaml:"output_gain_init"`       // OutputGainOne and so on, or a number, for the norms at position B

	// The scale of qk_norm l2; the others have none.
	QKScale       string  `json:"qk_scale" yaml:"qk_scale"`               // GainLearnable, or GainFrozen: its initial value, and no parameter
	QKScaleInit   float64 `json:"qk_scale_init" yaml:"qk_scale_init"`     // its initial value; 0: log2(L² - L)
	QKScaleLength int     `json:"qk_scale_length" yaml:"qk_scale_length"` // that L; 0: seq_len
}

// Normalisations of queries and keys, before RoPE (qk_norm).
const (
	QKNormNone      = "none"
	QKNormRMS       = "rms"       // RMSNorm over each head (Gemma 3, Qwen 3)
	QKNormRMSFull   = "rms_full"  // RMSNorm over the whole projection (OLMo 2)
	QKNormLayerNorm = "layernorm" // LayerNorm over each head, scale only (ViT-22B, Dehghani et al. 2023)
	QKNormL2        = "l2"        // unit vectors, and a learnable scale in the place of 1/sqrt(h) (Henry et al. 2020)
)

// Kinds of norm (norm).
const (
	NormRMS   = "rms"
	NormLayer = "layernorm" // without a bias
)

// Gains of norms (gain).
const (
	GainLearnable = "learnable"
	GainFrozen    = "frozen" // 1, and no parameter
)

// Kinds of MLP (mlp).
const (
	MLPSwiGLU = "swiglu" // Wd (silu(Wg x) * (Wu x))
	MLPGELU   = "gelu"   // Wd gelu(Wu x), exact
	MLPReLU   = "relu"   // Wd relu(Wu x)
)

// Standard deviations of the initial weights (init); all are normal. Besides these names, a/d with a number a is the variance a over the width.
const (
	InitInvSqrtD  = "inv_sqrt_d" // 1/sqrt(D): the same as 1/d
	InitNormal002 = "normal_002" // 0.02 whatever the width
	InitXavier    = "xavier"     // sqrt(2/(in+out)); these three leave the embedding at 1/sqrt(D), for a look-up has no fan-in
	InitHe        = "he"         // sqrt(2/in)
	InitLeCun     = "lecun"      // sqrt(1/in)
)

// Initial gains of the norms at position B (output_gain_init).
const (
	OutputGainOne       = "one"
	OutputGainInvSqrtN  = "inv_sqrt_n"  // 1/sqrt(N), as in sandwich norms that are scaled with the depth
	OutputGainInvSqrt2N = "inv_sqrt_2n" // 1/sqrt(2N)
)

// Default is a config with every axis at its default and no sizes: Peri-LN with per-head RMS QK-Norm.
func Default() Config {
	return Config{FinalNorm: true}.withDefaults()
}

// Normalize fills what was left out: empty names, and zero sizes that follow from others.
func (c Config) Normalize() Config {
	c = c.withDefaults()
	if c.NKVHeads == 0 {
		c.NKVHeads = c.NHeads
	}
	if c.HeadDim == 0 && c.NHeads > 0 && c.DModel%c.NHeads == 0 {
		c.HeadDim = c.DModel / c.NHeads
	}
	if c.DFF == 0 && c.DModel > 0 && c.DModel <= maxDim {
		if c.DFF = 4 * c.DModel; c.MLP == MLPSwiGLU {
			c.DFF = (8*c.DModel/3 + 31) / 32 * 32
		}
	}
	return c
}

func (c Config) withDefaults() Config {
	name := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	number := func(x *float64, def float64) {
		if *x == 0 {
			*x = def
		}
	}
	name(&c.Placement, "peri")
	name(&c.QKNorm, QKNormRMS)
	name(&c.Norm, NormRMS)
	name(&c.Gain, GainLearnable)
	name(&c.MLP, MLPSwiGLU)
	name(&c.Init, InitInvSqrtD)
	name(&c.OutputGainInit, OutputGainOne)
	name(&c.QKScale, GainLearnable)
	number(&c.NormEps, 1e-6)
	number(&c.L2Eps, 1e-12)
	number(&c.RoPETheta, 10000)
	return c
}

// valid is the normalized config, for methods that a program calls after Validate.
func (c Config) valid() (Config, Positions) {
	if err := c.Validate(); err != nil {
		panic("model: config not validated: " + err.Error())
	}
	c = c.Normalize()
	pos, _ := ParsePlacement(c.Placement)
	return c, pos
}

// initialScale is g0 of qk_norm l2: qk_scale_init, or log2(L² - L) (Henry et al. 2020, eq. 4).
func (c Config) initialScale() float64 {
	if c.QKScaleInit != 0 {
		return c.QKScaleInit
	}
	l := float64(c.scaleLength())
	return math.Log2(l*l - l)
}

// scaleLength is the L of initialScale.
func (c Config) scaleLength() int {
	if c.QKScaleLength != 0 {
		return c.QKScaleLength
	}
	return c.SeqLen
}

// outputGain is the initial gain of the norms at position B, or an error that names the key.
func (c Config) outputGain() (float64, error) {
	switch c.OutputGainInit {
	case OutputGainOne:
		return 1, nil
	case OutputGainInvSqrtN:
		return 1 / math.Sqrt(float64(c.NLayers)), nil
	case OutputGainInvSqrt2N:
		return 1 / math.Sqrt(2*float64(c.NLayers)), nil
	}
	if x, err := strconv.ParseFloat(c.OutputGainInit, 64); err == nil && x > 0 && x <= math.MaxFloat32 && float32(x) > 0 {
		return x, nil
	}
	return 0, fmt.Errorf("output_gain_init: %q is unknown: use one, inv_sqrt_n, inv_sqrt_2n, or a positive number such as 0.5", c.OutputGainInit)
}

// FLOPsPerToken is the work of a training step per token of sequences of seqLen: 6 for each weight of a matrix multiplication (2 forward,
// 4 backward) and 12 N T H h for attention's two products over the whole sequence, causal or not (Chowdhery et al. 2022,
// appendix B). The head counts, tied or not; the embedding's look-up, norms and what attention computes again do not.
func (c Config) FLOPsPerToken(seqLen int) float64 {
	c, _ = c.valid()
	return c.matMulFLOPs() + 2*c.causalFLOPs(seqLen)
}

// CausalFLOPsPerToken is FLOPsPerToken with the half of attention's products that a causal mask leaves: 6 N T H h in the place of 12.
func (c Config) CausalFLOPsPerToken(seqLen int) float64 {
	c, _ = c.valid()
	return c.matMulFLOPs() + c.causalFLOPs(seqLen)
}

func (c Config) causalFLOPs(seqLen int) float64 {
	return 6 * float64(c.NLayers) * float64(seqLen) * float64(c.NHeads*c.HeadDim)
}

func (c Config) matMulFLOPs() float64 {
	d, attn := float64(c.DModel), float64(c.NHeads*c.HeadDim)
	kv, ff := float64(c.NKVHeads*c.HeadDim), float64(c.DFF)
	mlp := 2 * d * ff
	if c.MLP == MLPSwiGLU {
		mlp = 3 * d * ff
	}
	return 6 * (float64(c.NLayers)*(2*d*attn+2*d*kv+mlp) + d*float64(c.VocabSize))
}
