package model_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/model"
)

func TestValidateNamesTheKeyAndWhatWouldDo(t *testing.T) {
	for _, x := range []struct {
		change func(c *model.Config)
		want   string
	}{
		{func(c *model.Config) { c.VocabSize = 0 }, "vocab_size: 0: it is the tokenizer's, or else at least 2"},
		{func(c *model.Config) { c.VocabSize = 1 }, "vocab_size: 1 is too small: use at least 2"},
		{func(c *model.Config) { c.DModel = 0 }, "d_model: 0 is too small: use at least 1"},
		{func(c *model.Config) { c.DModel = -4 }, "d_model: -4 is too small: use at least 1"},
		{func(c *model.Config) { c.DModel = 1 << 30 }, "d_model: 1073741824 is too large: use at most 16777216"},
		{func(c *model.Config) { c.NLayers = 0 }, "n_layers: 0 is too small: use at least 1"},
		{func(c *model.Config) { c.NLayers = 1 << 24 }, "n_layers: 16777216 is too large: use at most 1024"},
		{func(c *model.Config) { c.NHeads = 0 }, "n_heads: 0 is too small: use at least 1"},
		{func(c *model.Config) { c.NHeads, c.HeadDim, c.NKVHeads = 5, 0, 0 }, "n_heads: 5 does not divide d_model 12: use 3, 4, 6 or 12, or set head_dim"},
		{func(c *model.Config) { c.NHeads, c.HeadDim, c.NKVHeads = 4, 0, 0 }, "head_dim: 3 is odd, and RoPE turns pairs: use an even number such as 4, or another n_heads"},
		{func(c *model.Config) { c.HeadDim = -2 }, "head_dim: -2 is too small: use an even number, or 0 for d_model/n_heads"},
		{func(c *model.Config) { c.HeadDim = 7 }, "head_dim: 7 is odd, and RoPE turns pairs: use an even number such as 8, or another n_heads"},
		{func(c *model.Config) { c.HeadDim = 1 << 23 }, "head_dim: 8388608 times n_heads 4 is too large: use at most 16777216 in all"},
		{func(c *model.Config) { c.NKVHeads = 3 }, "n_kv_heads: 3 does not divide n_heads 4: use 1, 2 or 4"},
		{func(c *model.Config) { c.NKVHeads = -1 }, "n_kv_heads: -1 is too small: use at least 1"},
		{func(c *model.Config) { c.DFF = -1 }, "d_ff: -1 is too small: use at least 1"},
		{func(c *model.Config) { c.SeqLen = 0 }, "seq_len: 0 is too small: use at least 1"},
		{func(c *model.Config) { c.SeqLen, c.QKNorm = 1, "l2" }, "seq_len: 1 is too small for qk_norm l2, whose scale starts at log2(T² - T): use at least 2, or set qk_scale_init"},
		{func(c *model.Config) { c.Placement = "pree" }, `placement: "pree" is unknown: use post, pre, peri, olmo2, none, or positions of A, B, C such as A+B+C`},
		{func(c *model.Config) { c.QKNorm = "l1" }, `qk_norm: "l1" is unknown: use none, rms, rms_full, layernorm or l2`},
		{func(c *model.Config) { c.Norm = "batch" }, `norm: "batch" is unknown: use rms or layernorm`},
		{func(c *model.Config) { c.Gain = "off" }, `gain: "off" is unknown: use learnable or frozen`},
		{func(c *model.Config) { c.MLP = "moe" }, `mlp: "moe" is unknown: use swiglu, gelu or relu`},
		{func(c *model.Config) { c.OutputGainInit = "0" }, `output_gain_init: "0" is unknown: use one, inv_sqrt_n, inv_sqrt_2n, or a positive number such as 0.5`},
		{func(c *model.Config) { c.Gain, c.OutputGainInit = "frozen", "0.5" }, "output_gain_init: 0.5 needs gains to set: use gain learnable, or output_gain_init one"},
		{func(c *model.Config) { c.QKScale = "off" }, `qk_scale: "off" is unknown: use learnable or frozen`},
		{func(c *model.Config) { c.QKScaleInit = -1 }, "qk_scale_init: -1 is not possible: use a positive number that float32 can hold, or 0 for log2(L² - L)"},
		{func(c *model.Config) { c.QKScaleInit = math.Inf(1) }, "qk_scale_init: +Inf is not possible: use a positive number that float32 can hold, or 0 for log2(L² - L)"},
		{func(c *model.Config) { c.QKScaleLength = 1 }, "qk_scale_length: 1 is not possible: use 2 to 16777216, or 0 for seq_len"},
		{func(c *model.Config) { c.Gain, c.OutputGainInit = "frozen", "inv_sqrt_2n" }, "output_gain_init: inv_sqrt_2n needs gains to set: use gain learnable, or output_gain_init one"},
		{func(c *model.Config) { c.Init = "zero" }, `init: "zero" is unknown: use inv_sqrt_d, normal_002, xavier, he, lecun, or a variance a/d such as 2/d or 0.1/d`},
		{func(c *model.Config) { c.Init = "1e300/d" }, `init: "1e300/d" has a standard deviation that float32 can't hold: use a variance such as 2/d`},
		{func(c *model.Config) { c.Init = "1e-300/d" }, `init: "1e-300/d" has a standard deviation that float32 can't hold: use a variance such as 2/d`},
		{func(c *model.Config) { c.HeadDim = math.MaxInt }, "head_dim: 9223372036854775807 times n_heads 4 is too large: use at most 16777216 in all"},
		{func(c *model.Config) { c.Init = "-1/d" }, `init: "-1/d" is unknown: use inv_sqrt_d, normal_002, xavier, he, lecun, or a variance a/d such as 2/d or 0.1/d`},
		{func(c *model.Config) { c.Init = "NaN/d" }, `init: "NaN/d" is unknown: use inv_sqrt_d, normal_002, xavier, he, lecun, or a variance a/d such as 2/d or 0.1/d`},
		{func(c *model.Config) { c.NormEps = -1e-6 }, "norm_eps: -1e-06 is not possible: use a positive number that float32 can hold"},
		{func(c *model.Config) { c.NormEps = 1e-60 }, "norm_eps: 1e-60 is not possible: use a positive number that float32 can hold"},
		{func(c *model.Config) { c.L2Eps = math.NaN() }, "l2_eps: NaN is not possible: use a positive number that float32 can hold"},
		{func(c *model.Config) { c.RoPETheta = math.Inf(1) }, "rope_theta: +Inf is not possible: use a positive number that float32 can hold"},
		{func(c *model.Config) { c.AttnSoftcap = -50 }, "attn_softcap: -50 is not possible: use a positive number that float32 can hold, or 0 for off"},
		{func(c *model.Config) { c.LogitSoftcap = math.NaN() }, "logit_softcap: NaN is not possible: use a positive number that float32 can hold, or 0 for off"},
		{func(c *model.Config) { c.VocabSize, c.DModel = 1<<20, 1<<12 }, "vocab_size 1048576 x d_model 4096 is too large: one parameter has at most 2147483647 elements"},
		{func(c *model.Config) { c.DFF, c.DModel = 1<<20, 1<<12 }, "d_ff 1048576 x d_model 4096 is too large: one parameter has at most 2147483647 elements"},
	} {
		c := small()
		x.change(&c)
		err := c.Validate()
		require.EqualError(t, err, x.want)
		require.False(t, strings.ContainsRune(err.Error(), '\n'))
		require.Panics(t, func() { c.Params() }, x.want)
	}
	require.NoError(t, small().Validate())
	c := small()
	c.HeadDim = 10 // not d_model / n_heads
	require.NoError(t, c.Validate())
}
