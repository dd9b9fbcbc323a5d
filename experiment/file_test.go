package experiment

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

const whole = `
name: norms
question: Which norm?
base:
  model:
    preset: nano
    d_model: 48
  steps: 10
axes:
  model.placement: [post, pre, peri]
  qk:
    none: {model.qk_norm: none}
    l2:
      model.qk_norm: l2
      qk_scale_percentile: 97.5
    as base: {}
  lr: [1e-3, 0.01]
only:
  - model.placement: [pre, peri]
exclude:
  - {model.placement: pre, lr: 1e-2}
seeds: [3, 1]
diverged: 6.5
paired_with: {model.placement: pre, qk: none}
metrics: [val_loss, spikes]
checkpoints: true
`

func TestAFileIsReadWhole(t *testing.T) {
	e, err := Parse("x.yaml", []byte(whole))
	require.NoError(t, err)
	require.Equal(t, "norms", e.Name)
	require.Equal(t, "Which norm?", e.Question)
	require.Equal(t, []uint64{3, 1}, e.Seeds)
	require.Equal(t, Criterion{Above: 6.5}, e.Diverged)
	require.True(t, e.Checkpoints)
	require.Equal(t, []string{"model.placement", "qk", "lr"}, e.axisNames())
	require.Equal(t, []string{"none", "l2", "as base"}, e.Axes[1].names())
	m, err := e.Matrix()
	require.NoError(t, err)
	var ids []string
	for _, c := range m.Combinations {
		ids = append(ids, c.ID)
	}
	require.Equal(t, []string{
		"pre_none_lr=1e-3", "pre_l2_lr=1e-3", "pre_as-base_lr=1e-3",
		"peri_none_lr=1e-3", "peri_none_lr=0.01", "peri_l2_lr=1e-3", "peri_l2_lr=0.01", "peri_as-base_lr=1e-3", "peri_as-base_lr=0.01",
	}, ids, "the last axis changes the fastest; 1e-2 is 0.01")
	l2 := m.Combinations[1].Config
	require.Equal(t, "l2", l2.Model.QKNorm)
	require.Equal(t, 97.5, l2.QKScalePercentile)
	require.Equal(t, 48, l2.Model.DModel)
	require.Equal(t, "rms", m.Combinations[2].Config.Model.QKNorm)
	var baselines []int
	for _, c := range m.Combinations {
		baselines = append(baselines, c.Baseline)
	}
	require.Equal(t, []int{-1, 0, 0, 0, -1, 0, -1, 0, -1}, baselines, "pre_none at the same lr, where it is there")
	require.Equal(t, "pre_none_lr=1e-3_s3", m.Runs[0].ID)
	require.Equal(t, uint64(1), m.Runs[9].Seed, "all of a seed, and then the next")
	require.Equal(t, uint64(1), m.Runs[9].Config.Seed)
}

func TestDefaults(t *testing.T) {
	e, err := Parse("dir.x.yaml", []byte("seeds: 2\n"))
	require.NoError(t, err)
	m, err := e.Matrix()
	require.NoError(t, err)
	require.Equal(t, "dir.x", m.Name)
	require.Equal(t, "above_initial", m.Diverged.String())
	require.Len(t, m.Runs, 2)
	require.Equal(t, "base_s1", m.Runs[0].ID)

	e, err = Parse("x.yaml", []byte("axes: {model.gain: [learnable, frozen], model.qk_scale: [learnable, frozen], model.embed_norm: [true, false]}\n"))
	require.NoError(t, err)
	m, err = e.Matrix()
	require.NoError(t, err)
	require.Equal(t, "gain=learnable_qk_scale=learnable_embed_norm=true_s1", m.Runs[0].ID, "names that do not tell by themselves")
	require.Equal(t, map[string]string{"model.gain": "learnable"}, m.pairedWith())
	require.Equal(t, 0, m.Combinations[4].Baseline)
	require.Equal(t, 3, m.Combinations[7].Baseline)
}

// Every knob that an experiment of the papers turns.
func TestEveryKnobCanBeAnAxis(t *testing.T) {
	for _, axis := range []string{
		"model.placement: [post, pre, peri, olmo2, none, A+B+C]", "model.qk_norm: [none, rms, rms_full, layernorm, l2]", "model.norm: [rms, layernorm]",
		"model.gain: [learnable, frozen]", "model.embed_norm: [false, true]", "model.init: [10/d, 2/d, 1/d, 0.1/d, normal_002, xavier]",
		"model.output_gain_init: [one, inv_sqrt_n, inv_sqrt_2n, 0.5]", "weight_decay: [0, 0.0033, 0.033, 0.33]", "decay: [matrices, all, matrix+head+input_gain]",
		"independent_decay: [false, true]", "lr: [1e-3, 3e-3]", "warmup: [0, 10]", "model.n_layers: [2, 4, 8]", "z_loss: [0, 1e-4]",
		"g: {learnable: {model.qk_norm: l2}, fixed: {model.qk_norm: l2, model.qk_scale: frozen, model.qk_scale_init: 1}}", "clip: [0, 1]",
	} {
		e, err := Parse("x.yaml", []byte("axes:\n  "+axis+"\n"))
		require.NoError(t, err, axis)
		m, err := e.Matrix()
		require.NoError(t, err, axis)
		require.Greater(t, len(m.Runs), 1, axis)
	}
}

func TestErrorsNameTheKeyAndTheLine(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"", "x.yaml: want lines of key: value, such as axes: and seeds:"},
		{"- a", "x.yaml: want lines of key: value, such as axes: and seeds:"},
		{"axis: {}", `x.yaml:1: unknown key "axis": did you mean axes?`},
		{"name: n\nrepeats: 3", `x.yaml:2: unknown key "repeats": there are name, question, base, axes, only, exclude, seeds, diverged, paired_with, metrics, checkpoints, cost`},
		{"seeds: three", `x.yaml:1: seeds: "three" is no whole number from 0`},
		{"seeds: 0", "x.yaml:1: seeds: a count of 0 is not possible: use 1 to 1000, or a list such as [0]"},
		{"name: a/b", `name: "a/b" is no name for a folder: leave / and \ out`},
		{"name: ..", `name: ".." is no name for a folder: leave / and \ out`},
		{"metrics: [val_loss, spikes, val_loss]", "metrics: val_loss is there twice"},
		{"axes: {lr: [1e-3, 1e-2]}\nexclude: {lr: 1e-3}\npaired_with: {lr: 1e-3}", "paired_with: only and exclude leave none of the combinations that it names: keep one, or leave paired_with out"},
		{"seeds: []", "x.yaml:1: seeds is an empty list: give at least one value"},
		{"seeds: [1, 1]", "seeds: 1 is there twice"},
		{"diverged: never", `x.yaml:1: diverged: "never" is no criterion: use above_initial, non_finite, or a loss such as 5`},
		{"cost: often", `x.yaml:1: cost: "often" is no number of turns: use 0 to 10000, such as 20`},
		{"checkpoints: 1", `x.yaml:1: checkpoints: "1" is no switch: use true or false`},
		{"metrics: [val_los]", `metrics: there is no "val_los": did you mean val_loss?`},
		{"question: [a]", "x.yaml:1: question has no plain value: give one"},
		{"base: 3", "x.yaml:1: base: want keys of a config, such as lr: 3e-3"},
		{"base:\n  model.d_modle: 3", `x.yaml:2: unknown key "model.d_modle": did you mean model.d_model?`},
		{"base:\n  seed: 3", "x.yaml:2: seed is not for a config here: seeds has it"},
		{"axes: {lr: [1], d: {a: {device: cpu}}}", "x.yaml:1: device is not for a config here: --devices has it"},
		{"axes: {lr: 3}", "x.yaml:1: axes: lr has neither a list of values nor variants: use lr: [a, b], or a mapping of names to settings"},
		{"axes:\n  model.placement: [pre, before]", `before: x.yaml:2: model.placement: "before" is unknown: use post, pre, peri, olmo2, none, or positions of A, B, C such as A+B+C`},
		{"axes:\n  placement: [pre, peri]", `pre: x.yaml:2: unknown key "placement": did you mean model.placement?`},
		{"axes: {lr: [1e-3, 0.001]}", "axes: lr=1e-3 and lr=0.001 are the same config: leave one out"},
		{"axes: {lr: [1e-3], fast: {yes: {lr: 1}}}", "x.yaml:1: axes lr and fast both set lr: the latter would always win"},
		{"axes: {m: {a: {}, b: {lr: 7e-3}}}", "axes: a and b are the same config: leave one out"},
		{"axes: {m: {a: {lr: 1e-3}, " + strings.Repeat("東京 ", 40) + "b: {}}}", "axes: the name of a combination, " + strings.Repeat("東京-", 13) + "東..., has 281 bytes, and a folder's may have 200: give variants shorter names"},
		{"axes: {m: {A: {lr: 1e-3}, a: {lr: 2e-3}}}", "axes: two combinations have one name, A and a: name their variants apart"},
		{"axes: {lr: [1e-3, 1e-2]}\nexclude: {lr: [1e-3, 1e-2]}", "only and exclude leave no combination"},
		{"axes: {lr: [1e-3]}\nexclude:\n  - {model.gain: frozen}", `x.yaml:3: exclude: there is no axis "model.gain": there are lr`},
		{"axes: {lr: [1e-3]}\nonly:\n  - {lr: 3}", `x.yaml:3: only: axis lr has no variant "3": there are 1e-3`},
		{"paired_with: {lr: 3}", `paired_with: there is no axis "lr": there is none`},
		{"axes: {lr: [1e-3]}\npaired_with: {lr: 3}", `paired_with: axis lr has no variant "3": there are 1e-3`},
		{"axes: {lr: []}", "axes: lr has no variant: give at least one"},
		{"seeds: 1000\naxes: {warmup: [1, 2, 3, 4], steps: [10, 20, 30]}", "axes: there are over 10000 runs: take fewer variants or seeds"},
	} {
		e, err := Parse("x.yaml", []byte(x.text))
		if err == nil {
			_, err = e.Matrix()
		}
		require.EqualError(t, err, x.want, x.text)
	}
	e, err := Parse("x.yaml", []byte("base: {steps: 3}"))
	require.NoError(t, err)
	e.Base = append(e.Base, train.Assignment{Key: "steps", Value: "many"})
	_, err = e.Matrix()
	require.EqualError(t, err, `steps: "many" is no whole number`) // not the file's line, which is right
	e.Base, e.Seeds = nil, CountSeeds(maxRuns+1)
	_, err = e.Matrix()
	require.EqualError(t, err, "axes: there are over 10000 runs: take fewer variants or seeds")
	e, err = Parse("x.yaml", []byte("axes: {größe: {klein µ/..: {lr: 1e-3}, 東京: {lr: 2e-3}, 京都: {}}}"))
	require.NoError(t, err)
	m, err := e.Matrix()
	require.NoError(t, err)
	require.Equal(t, []string{"klein-µ-.._s1", "東京_s1", "京都_s1"}, []string{m.Runs[0].ID, m.Runs[1].ID, m.Runs[2].ID})
	e, err = Parse("x.yaml", []byte("\ufeffseeds: 2\r\nquestion: why?\r\n")) // as editors on Windows write it
	require.NoError(t, err)
	require.Equal(t, CountSeeds(2), e.Seeds)
	require.Equal(t, "why?", e.Question)
	_, err = Parse("x.yaml", []byte("seeds: 1\nseeds: 2"))
	require.ErrorContains(t, err, "x.yaml: not YAML: ")
}
