package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/model"
)

func assign(t *testing.T, words ...string) []Assignment {
	var all []Assignment
	for _, w := range words {
		a, err := ParseAssignment(w)
		require.NoError(t, err)
		all = append(all, a)
	}
	return all
}

func TestEveryPresetIsValid(t *testing.T) {
	require.Len(t, recipes, len(model.PresetNames()))
	for _, name := range model.PresetNames() {
		c, err := FromPreset(name)
		require.NoError(t, err, name)
		require.NoError(t, c.Validate(), name)
	}
}

func TestEveryKeyHasAComment(t *testing.T) {
	keys := Keys()
	require.Len(t, keyDocs, len(keys))
	for _, k := range keys {
		require.NotEmpty(t, keyDocs[k], k)
	}
}

func TestWrittenConfigReadsBackTheSame(t *testing.T) {
	for _, name := range model.PresetNames() {
		want, err := Load(assign(t, "model.preset="+name, "data.path=a: b #c", "lr=0.0031415926535897934", "seed=18446744073709551615",
			"beta2=0.999", "z_loss=1e-4", "model.tied=true", "model.init=0.1/d"))
		require.NoError(t, err)
		want = want.Resolve()
		text, err := want.YAML()
		require.NoError(t, err)
		for _, k := range Keys() {
			require.Contains(t, string(text), k[strings.LastIndexByte(k, '.')+1:]+": ", "every key shows")
		}
		all, err := ParseConfig("config.yaml", text)
		require.NoError(t, err)
		got, err := Load(all)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, want, got.Resolve())
	}
}

func TestEveryKeyCanBeSet(t *testing.T) {
	for _, e := range new(Config).entries() {
		c, err := FromPreset("nano")
		require.NoError(t, err)
		text, err := c.YAML()
		require.NoError(t, err)
		all, err := ParseConfig("c", text)
		require.NoError(t, err)
		for _, a := range all {
			if a.Key == e.key {
				require.NoError(t, new(Config).Set(a.Key, a.Value), a.Key)
			}
		}
	}
	var c Config
	require.NoError(t, c.Set("steps", "1e3"))
	require.NoError(t, c.Set("batch", "1_000"))
	require.Equal(t, 1000, c.Steps)
	require.Equal(t, 1000, c.Batch)
}

func TestLaterAssignmentsWinAndThePresetComesFirst(t *testing.T) {
	c, err := Load(assign(t, "model.d_model=64", "lr=1", "model.preset=tiny", "lr=2e-3"))
	require.NoError(t, err)
	tiny, err := FromPreset("tiny")
	require.NoError(t, err)
	require.Equal(t, 64, c.Model.DModel)
	require.Equal(t, 2e-3, c.LR)
	require.Equal(t, tiny.Model.NLayers, c.Model.NLayers)
	require.Equal(t, "tiny", c.Model.Preset)
}

func TestConfigErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"learning_rate=1", `unknown key "learning_rate": the config.yaml that a run writes shows every key`},
		{"d_model=64", `unknown key "d_model": did you mean model.d_model?`},
		{"model.dmodel=64", `unknown key "model.dmodel": did you mean model.d_model?`},
		{"model.seq_len=64", `unknown key "model.seq_len": did you mean seq_len?`},
		{"stpes=1", `unknown key "stpes": did you mean steps?`},
		{"data.pth=x", `unknown key "data.pth": did you mean data.path?`},
		{"model.preset=huge", `model.preset: "huge" is unknown: use nano, tiny, small, gpt2, peri-400m, peri-1.5b, peri-3.2b, bench-a, bench-b, bench-c or bench-g`},
		{"steps=many", `steps: "many" is no whole number`},
		{"steps=1.5", `steps: "1.5" is no whole number`},
		{"steps=0", `steps: 0 is too small: use at least 1`},
		{"batch=-1", `batch: -1 is too small: use at least 1`},
		{"lr=fast", `lr: "fast" is no number`},
		{"lr=0", `lr: 0 is not possible: use a positive number`},
		{"lr=NaN", `lr: NaN is not possible: use a positive number`},
		{"lr=1e-60", `lr: 1e-60 is not possible: use a positive number`},
		{"clip=-1", `clip: -1 is not possible: use a positive number or 0`},
		{"min_lr=1", `min_lr: 1 is over lr 0.007: lower it, or use -1 for lr/10`},
		{"beta2=1", `beta2: 1 is not possible: use a number from 0 to below 1, such as 0.9 for beta1 and 0.95 for beta2`},
		{"seed=-1", `seed: "-1" is no whole number from 0 to 2^64-1`},
		{"model.tied=yes", `model.tied: "yes" is no switch: use true or false`},
		{"schedule=wsd", `schedule: "wsd" is unknown: use cosine or constant`},
		{"decay=some", `decay: "some" is unknown: use matrices, matrices_no_embedding, all, or roles joined by +, each once, of embedding, head, matrix, embed_gain, input_gain, output_gain, sum_gain, final_gain, qk_gain, qk_scale`},
		{"decay=matrix+matrix", `decay: "matrix+matrix" is unknown: use matrices, matrices_no_embedding, all, or roles joined by +, each once, of embedding, head, matrix, embed_gain, input_gain, output_gain, sum_gain, final_gain, qk_gain, qk_scale`},
		{"decay=", "decay: it is empty: use matrices"},
		{"qk_scale_percentile=101", "qk_scale_percentile: 101 is not possible: use a percentage such as 97.5, or 0 for none"},
		{"data.tokenizer=gpt2", `data.tokenizer: "gpt2" is unknown: use auto, byte or bpe`},
		{"data.val_fraction=1", `data.val_fraction: 1 is not possible: use a share between 0 and 1, such as 0.1`},
		{"data.vocab_size=10", `data.vocab_size: 10 is too small: use at least 257`},
		{"model.n_layers=0", `model.n_layers: 0 is too small: use at least 1`},
		{"model.placement=middle", `model.placement: "middle" is unknown: use post, pre, peri, olmo2, none, or positions of A, B, C such as A+B+C`},
	} {
		_, err := Load(assign(t, c.set))
		require.EqualError(t, err, c.want, c.set)
		require.ErrorAs(t, err, new(*ConfigError), c.set)
	}
	_, err := Load(assign(t, "model.n_heads=5", "model.head_dim=0"))
	require.ErrorContains(t, err, "model.n_heads: 5 does not divide")
	_, err = ParseAssignment("lr")
	require.EqualError(t, err, `"lr" is no assignment: use key=value, such as lr=3e-3`)
}

func TestConfigFilesAreStrict(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"lr: 1\nmodel:\n  d_modle: 64\n", `c.yaml:3: unknown key "model.d_modle": did you mean model.d_model?`},
		{"modle:\n  d_model: 64\n", `c.yaml:2: unknown key "modle.d_model": did you mean model.d_model?`},
		{"model: nano\n", `c.yaml:1: "model" is a section: give its keys, such as model.preset`},
		{"lr: [1, 2]\n", `c.yaml:1: lr has a list: give one value`},
		{"lr: true\n", `c.yaml:1: lr: "true" is no number`},
		{"lr:\n", `c.yaml:1: lr has no plain value: give one, or remove the key`},
		{"lr: 1\nlr: 2\n", `c.yaml: not YAML: [2:1] mapping key "lr" already defined at [1:1]`},
		{"lr: [1\n", `c.yaml: not YAML:`},
		{"- lr\n", `c.yaml:1: want lines of key: value`},
		{"lr\n", `c.yaml:1: want lines of key: value`},
	} {
		all, err := ParseConfig("c.yaml", []byte(c.text))
		if err == nil {
			_, err = Load(all)
		}
		require.ErrorContains(t, err, c.want, c.text)
		require.ErrorAs(t, err, new(*ConfigError), c.text)
		require.NotContains(t, err.Error(), "\n")
	}
	for _, text := range []string{"", "# nothing\n", "model:\n  preset: tiny\nbeta1: 0.8\ndata: {path: x.txt}\n"} {
		all, err := ParseConfig("c.yaml", []byte(text))
		require.NoError(t, err, text)
		_, err = Load(all)
		require.NoError(t, err, text)
	}
	_, err := ReadConfig(filepath.Join(t.TempDir(), "absent.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
