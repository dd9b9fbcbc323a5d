package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxDim bounds every dimension, and MaxElems the elements of a parameter: indices are 32 bits wide on most devices.
const (
	maxDim    = 1 << 24
	maxLayers = 1 << 10 // a training step has some 70 nodes a layer

	MaxElems = math.MaxInt32
)

// Validate checks the config as Normalize completes it. The error is one line: the key, its value, and what would do.
func (c Config) Validate() error {
	given := c
	c = c.Normalize()
	for _, check := range []func() error{
		c.checkNames, c.checkSizes,
		func() error { return c.checkHeads(given.HeadDim) },
		c.checkNumbers, c.checkElems,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkNames() error {
	if _, err := ParsePlacement(c.Placement); err != nil {
		return err
	}
	for _, n := range []struct {
		key, value string
		known      []string
	}{
		{"qk_norm", c.QKNorm, []string{QKNormNone, QKNormRMS, QKNormRMSFull, QKNormLayerNorm, QKNormL2}},
		{"norm", c.Norm, []string{NormRMS, NormLayer}},
		{"gain", c.Gain, []string{GainLearnable, GainFrozen}},
		{"mlp", c.MLP, []string{MLPSwiGLU, MLPGELU, MLPReLU}},
		{"qk_scale", c.QKScale, []string{GainLearnable, GainFrozen}},
	} {
		if !slices.Contains(n.known, n.value) {
			return fmt.Errorf("%s: %q is unknown: use %s", n.key, n.value, orList(n.known))
		}
	}
	_, a, err := c.initKind()
	if err != nil {
		return err
	}
	if std := float32(math.Sqrt(a)); a != 0 && (std == 0 || math.IsInf(float64(std), 0)) {
		return fmt.Errorf("init: %q has a standard deviation that float32 can't hold: use a variance such as 2/d", c.Init)
	}
	gain, err := c.outputGain()
	if err != nil {
		return err
	}
	if c.Gain == GainFrozen && gain != 1 {
		return fmt.Errorf("output_gain_init: %s needs gains to set: use gain learnable, or output_gain_init one", c.OutputGainInit)
	}
	return nil
}

// initKind splits init into its name and the a of a/d, which is 1 for inv_sqrt_d.
func (c Config) initKind() (name string, a float64, err error) {
	switch c.Init {
	case InitInvSqrtD:
		return InitInvSqrtD, 1, nil
	case InitNormal002, InitXavier, InitHe, InitLeCun:
		return c.Init, 0, nil
	}
	if s, ok := strings.CutSuffix(c.Init, "/d"); ok {
		if a, err := strconv.ParseFloat(s, 64); err == nil && a > 0 && !math.IsInf(a, 0) {
			return InitInvSqrtD, a, nil
		}
	}
	return "", 0, fmt.Errorf("init: %q is unknown: use inv_sqrt_d, normal_002, xavier, he, lecun, or a variance a/d such as 2/d or 0.1/d", c.Init)
}

func (c Config) checkSizes() error {
	if c.VocabSize == 0 {
		return fmt.Errorf("vocab_size: 0: it is the tokenizer's, or else at least 2")
	}
	for _, s := range []struct {
		key   string
		value int
		least int
	}{
		{"vocab_size", c.VocabSize, 2}, {"d_model", c.DModel, 1}, {"n_layers", c.NLayers, 1}, {"n_heads", c.NHeads, 1},
		{"n_kv_heads", c.NKVHeads, 1}, {"d_ff", c.DFF, 1}, {"seq_len", c.SeqLen, 1},
	} {
		if s.value < s.least {
			return fmt.Errorf("%s: %d is too small: use at least %d", s.key, s.value, s.least)
		}
		most := maxDim
		if s.key == "n_layers" {
			most = maxLayers
		}
		if s.value > most {
			return fmt.Errorf("%s: %d is too large: use at most %d", s.key, s.value, most)
		}
	}
	if n := c.QKScaleLength; n != 0 && (n < 2 || n > maxDim) {
		return fmt.Errorf("qk_scale_length: %d is not possible: use 2 to %d, or 0 for seq_len", n, maxDim)
	}
	if x := c.QKScaleInit; x != 0 && !(x > 0 && x <= math.MaxFloat32 && float32(x) > 0) {
		return fmt.Errorf("qk_scale_init: %g is not possible: use a positive number that float32 can hold, or 0 for log2(L² - L)", x)
	}
	if c.QKNorm == QKNormL2 && c.QKScaleInit == 0 && c.scaleLength() < 2 {
		return fmt.Errorf("seq_len: %d is too small for qk_norm l2, whose scale starts at log2(T² - T): use at least 2, or set qk_scale_init", c.SeqLen)
	}
	return nil
}

func (c Config) checkHeads(headDim int) error {
	if headDim == 0 && c.DModel%c.NHeads != 0 {
		return fmt.Errorf("n_heads: %d does not divide d_model %d: use %s, or set head_dim", c.NHeads, c.DModel, divisorsNear(c.DModel, c.NHeads))
	}
	if c.NHeads%c.NKVHeads != 0 {
		return fmt.Errorf("n_kv_heads: %d does not divide n_heads %d: use %s", c.NKVHeads, c.NHeads, divisorsNear(c.NHeads, c.NKVHeads))
	}
	if c.HeadDim <= 0 {
		return fmt.Errorf("head_dim: %d is too small: use an even number, or 0 for d_model/n_heads", c.HeadDim)
	}
	if c.HeadDim > maxDim/c.NHeads {
		return fmt.Errorf("head_dim: %d times n_heads %d is too large: use at most %d in all", c.HeadDim, c.NHeads, maxDim)
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim: %d is odd, and RoPE turns pairs: use an even number such as %d, or another n_heads", c.HeadDim, c.HeadDim+1)
	}
	return nil
}

func (c Config) checkNumbers() error {
	for _, n := range []struct {
		key   string
		value float64
		zero  bool // allowed: it means off
	}{
		{"norm_eps", c.NormEps, false}, {"l2_eps", c.L2Eps, false}, {"rope_theta", c.RoPETheta, false},
		{"attn_softcap", c.AttnSoftcap, true}, {"logit_softcap", c.LogitSoftcap, true},
	} {
		switch {
		case n.value > 0 && n.value <= math.MaxFloat32 && float32(n.value) > 0, n.zero && n.value == 0:
		case n.zero:
			return fmt.Errorf("%s: %g is not possible: use a positive number that float32 can hold, or 0 for off", n.key, n.value)
		default:
			return fmt.Errorf("%s: %g is not possible: use a positive number that float32 can hold", n.key, n.value)
		}
	}
	return nil
}

func (c Config) checkElems() error {
	for _, t := range []struct {
		keys string
		a, b int
	}{
		{"vocab_size %d x d_model %d", c.VocabSize, c.DModel},
		{"n_heads x head_dim %d x d_model %d", c.NHeads * c.HeadDim, c.DModel},
		{"d_ff %d x d_model %d", c.DFF, c.DModel},
	} {
		if t.a > MaxElems/t.b {
			return fmt.Errorf(t.keys+" is too large: one parameter has at most %d elements", t.a, t.b, MaxElems)
		}
	}
	return nil
}

// divisorsNear lists up to four divisors of n, the nearest to k.
func divisorsNear(n, k int) string {
	var ds []int
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			ds = append(ds, d, n/d)
		}
	}
	slices.Sort(ds)
	ds = slices.Compact(ds)
	i, _ := slices.BinarySearch(ds, k)
	ds = ds[max(0, i-2):min(len(ds), i+2)]
	words := make([]string, len(ds))
	for i, d := range ds {
		words[i] = strconv.Itoa(d)
	}
	return orList(words)
}

// orList joins words as a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last <= 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
