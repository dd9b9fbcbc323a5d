package model_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// small is a config with every size given and different from the others.
func small() model.Config {
	c := model.Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.NKVHeads, c.HeadDim, c.DFF, c.SeqLen = 11, 12, 2, 4, 2, 6, 20, 5
	return c
}

// allCombinations calls f for every placement with every QK-Norm, norm, MLP and gain; the remaining switches alternate.
func allCombinations(f func(c model.Config)) {
	i := 0
	for _, placement := range []string{"none", "A", "B", "C", "A+B", "A+C", "B+C", "A+B+C"} {
		for _, qk := range []string{model.QKNormNone, model.QKNormRMS, model.QKNormRMSFull, model.QKNormLayerNorm, model.QKNormL2} {
			for _, norm := range []string{model.NormRMS, model.NormLayer} {
				for _, mlp := range []string{model.MLPSwiGLU, model.MLPGELU, model.MLPReLU} {
					for _, gain := range []string{model.GainLearnable, model.GainFrozen} {
						c := small()
						c.Placement, c.QKNorm, c.Norm, c.MLP, c.Gain = placement, qk, norm, mlp, gain
						c.EmbedNorm, c.FinalNorm, c.Tied = i%2 == 0, i%3 != 0, i%5 < 2
						if i%7 == 0 {
							c.AttnSoftcap, c.LogitSoftcap = 50, 30
						}
						f(c)
						i++
					}
				}
			}
		}
	}
}

func forward(c model.Config) (*graph.Program, *model.Forward) {
	b := graph.NewBuilder()
	f := c.Forward(b, b.Input("tokens", graph.I32, 2, c.SeqLen), graph.F32)
	b.Output("logits", f.Logits)
	return b.Build("forward"), f
}

func TestEveryCombinationBuilds(t *testing.T) {
	allCombinations(func(c model.Config) {
		require.NoError(t, c.Validate())
		p, f := forward(c)
		params := c.Params()
		vars := p.Vars()
		require.Len(t, vars, len(params), "%+v", c)
		for i, q := range params {
			require.Equal(t, graph.Var{Name: q.Name, DType: graph.F32, Shape: q.Shape}, vars[i], "%+v", c)
			require.Equal(t, len(q.Shape) == 2, q.Role.IsMatrix(), "%s of role %s", q.Name, q.Role)
			require.True(t, used(p, q.Name), "%s is not used: %+v", q.Name, c)
		}
		require.Len(t, f.Hidden, c.NLayers+1)
		require.Equal(t, graph.Shape{2, c.SeqLen, c.VocabSize}, f.Logits.Shape())
		require.Equal(t, graph.Shape{2, c.SeqLen, c.DModel}, f.Final.Shape())
		for i := range c.NLayers {
			require.Equal(t, graph.Shape{2, c.SeqLen, 24}, f.QRope[i].Shape())
			require.Equal(t, graph.Shape{2, c.SeqLen, 12}, f.KRope[i].Shape())
			require.Equal(t, graph.Shape{2, 4, c.SeqLen}, f.LSE[i].Shape())
		}
	})
}

// used tells whether a node reads the value.
func used(p *graph.Program, name string) bool {
	for _, n := range p.Nodes() {
		for _, v := range n.In {
			if v != nil && v.Name() == name {
				return true
			}
		}
	}
	return false
}

// TestPrograms holds the forward pass of each placement, and its plan, as text. Other axes change with the file, so that each is in one.
func TestPrograms(t *testing.T) {
	for name, change := range map[string]func(c *model.Config){
		"post":  func(c *model.Config) { c.Placement, c.FinalNorm, c.MLP = "post", false, model.MLPReLU },
		"pre":   func(c *model.Config) { c.Placement, c.QKNorm, c.Tied = "pre", model.QKNormNone, true },
		"peri":  func(c *model.Config) {},
		"olmo2": func(c *model.Config) { c.Placement, c.QKNorm = "olmo2", model.QKNormRMSFull },
		"none":  func(c *model.Config) { c.Placement, c.QKNorm = "none", model.QKNormL2 },
		"abc": func(c *model.Config) {
			c.Placement, c.QKNorm, c.Norm, c.MLP = "A+B+C", model.QKNormLayerNorm, model.NormLayer, model.MLPGELU
			c.EmbedNorm, c.AttnSoftcap, c.LogitSoftcap = true, 50, 30
		},
		"frozen": func(c *model.Config) { c.Gain = model.GainFrozen },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			c.NLayers = 1
			change(&c)
			p, _ := forward(c)
			text := p.String() + "\n" + graph.NewPlan(p).String()
			path := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "run go test ./model -update once the text is right")
			require.Equal(t, string(want), text)
		})
	}
}

// goldenParams is a line of testdata/golden_params.jsonl: a config of ../shared/golden and the parameters in its tensor file.
type goldenParams struct {
	Case    string           `json:"case"`
	NParams int              `json:"n_params"`
	Config  model.Config     `json:"config"`
	Params  map[string][]int `json:"params"`
}

func readGoldenParams(t *testing.T) []goldenParams {
	raw, err := os.ReadFile("testdata/golden_params.jsonl")
	require.NoError(t, err)
	var list []goldenParams
	for line := range bytes.Lines(raw) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var g goldenParams
		require.NoError(t, d.Decode(&g))
		list = append(list, g)
	}
	return list
}

func TestParamsAreThoseOfTheGoldenModels(t *testing.T) {
	list := readGoldenParams(t)
	require.Len(t, list, 29)
	for _, g := range list {
		require.NoError(t, g.Config.Validate(), g.Case)
		require.Equal(t, g.NParams, g.Config.NumParams(), g.Case)
		require.Equal(t, g.Params, shapes(g.Config), g.Case)
	}
}

func shapes(c model.Config) map[string][]int {
	m := map[string][]int{}
	for _, p := range c.Params() {
		m[p.Name] = p.Shape
	}
	return m
}

// TestGoldenParamsAreFresh compares the committed list with the golden files, where they are at hand.
func TestGoldenParamsAreFresh(t *testing.T) {
	const dir = "../../shared/golden"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the golden models are not beside this checkout: the committed list stands for them")
	}
	for _, g := range readGoldenParams(t) {
		f, err := checkpoint.OpenSafetensors(filepath.Join(dir, g.Case+".safetensors"))
		require.NoError(t, err)
		params := map[string][]int{}
		for _, info := range f.Tensors() {
			if name, ok := strings.CutPrefix(info.Name, "param."); ok {
				params[name] = info.Shape
			}
		}
		require.Equal(t, g.Params, params, g.Case)
		require.NoError(t, f.Close())
	}
}

func TestSumNormsHaveTheirOwnNamesBesideOutputNorms(t *testing.T) {
	c := small()
	roles := func(placement string) map[string]model.Role {
		c.Placement = placement
		m := map[string]model.Role{}
		for _, p := range c.Params() {
			if rest, ok := strings.CutPrefix(p.Name, "model.layers.1."); ok && strings.Contains(rest, "layernorm") {
				m[strings.TrimSuffix(rest, ".weight")] = p.Role
			}
		}
		return m
	}
	require.Equal(t, map[string]model.Role{"attn_output_layernorm": model.RoleSumGain, "mlp_output_layernorm": model.RoleSumGain}, roles("post"))
	require.Equal(t, map[string]model.Role{
		"input_layernorm": model.RoleInputGain, "post_attention_layernorm": model.RoleInputGain,
		"attn_output_layernorm": model.RoleSumGain, "mlp_output_layernorm": model.RoleSumGain,
	}, roles("A+C"))
	require.Equal(t, map[string]model.Role{
		"attn_output_layernorm": model.RoleOutputGain, "mlp_output_layernorm": model.RoleOutputGain,
		"attn_sum_layernorm": model.RoleSumGain, "mlp_sum_layernorm": model.RoleSumGain,
	}, roles("B+C"))
	require.Empty(t, roles("none"))
}

func TestPeriAddsTwoGainsALayerToPre(t *testing.T) {
	pre, peri := small(), small()
	pre.Placement = "pre"
	require.Equal(t, pre.NumParams()+2*peri.NLayers*peri.DModel, peri.NumParams())
}

func TestInitialValues(t *testing.T) {
	std := func(change func(c *model.Config), name string) float64 {
		c := small()
		change(&c)
		return param(t, c, name).Std
	}
	initIs := func(s string) func(c *model.Config) { return func(c *model.Config) { c.Init = s } }
	const (
		embedding = "model.embed_tokens.weight" // [11 12]
		up        = "model.layers.1.mlp.up_proj.weight"
		down      = "model.layers.1.mlp.down_proj.weight" // [12 20]
		o         = "model.layers.1.self_attn.o_proj.weight"
	)
	for _, x := range []struct {
		init, name string
		variance   float64
	}{
		{"inv_sqrt_d", embedding, 1. / 12}, {"inv_sqrt_d", down, 1. / 12}, {"10/d", down, 10. / 12}, {"0.1/d", embedding, 0.1 / 12},
		{"normal_002", embedding, 0.0004}, {"normal_002", down, 0.0004},
		{"xavier", down, 2. / 32}, {"he", down, 2. / 20}, {"lecun", down, 1. / 20},
		{"xavier", embedding, 1. / 12}, {"he", embedding, 1. / 12}, {"lecun", embedding, 1. / 12},
	} {
		require.InEpsilon(t, math.Sqrt(x.variance), std(initIs(x.init), x.name), 1e-12, "%s %s", x.init, x.name)
	}
	scaled := func(c *model.Config) { c.ScaleResidualInit = true }
	for name, scale := range map[string]float64{down: 0.5, o: 0.5, up: 1, embedding: 1} { // 1/sqrt(2*2)
		require.InEpsilon(t, scale/math.Sqrt(12), std(scaled, name), 1e-12, name)
	}

	c := small()
	c.OutputGainInit, c.QKNorm, c.SeqLen = model.OutputGainInvSqrt2N, model.QKNormL2, 512
	for name, mean := range map[string]float64{
		"model.layers.1.attn_output_layernorm.weight": 0.5, "model.layers.0.mlp_output_layernorm.weight": 0.5,
		"model.layers.0.input_layernorm.weight": 1, "model.norm.weight": 1,
		"model.layers.0.self_attn.qk_scale": math.Log2(512*512 - 512), // 18.0
	} {
		p := param(t, c, name)
		require.Equal(t, mean, p.Mean, name)
		require.Zero(t, p.Std, name)
	}
	const outputGain, scale = "model.layers.0.mlp_output_layernorm.weight", "model.layers.0.self_attn.qk_scale"
	c.OutputGainInit, c.QKScaleLength = model.OutputGainInvSqrtN, 72
	require.InEpsilon(t, 1/math.Sqrt(2), param(t, c, outputGain).Mean, 1e-15)
	require.InDelta(t, 12.3, param(t, c, scale).Mean, 0.05, "Henry et al. 2020: T 72")
	c.OutputGainInit, c.QKScaleInit = "0.25", 3
	require.Equal(t, 0.25, param(t, c, outputGain).Mean)
	require.Equal(t, 3., param(t, c, scale).Mean, "qk_scale_init over qk_scale_length")
}

func TestAFrozenScaleIsNoParameter(t *testing.T) {
	c := small()
	c.QKNorm = model.QKNormL2
	learnable := c.NumParams()
	c.QKScale, c.QKScaleInit = model.GainFrozen, 1
	require.NoError(t, c.Validate())
	require.Equal(t, learnable-c.NLayers, c.NumParams())
	b := graph.NewBuilder()
	tokens := b.Input("tokens", graph.I32, 1, c.SeqLen)
	b.Output("x", c.Trunk(b, tokens, graph.F32, graph.F32).Final)
	n := 0
	for _, node := range b.Build("p").Nodes() {
		if node.Op == graph.OpAttention {
			n++
			require.Equal(t, 1., graph.AttrOf[graph.AttentionAttr](node).Scale)
			require.Nil(t, node.In[3])
		}
	}
	require.Equal(t, c.NLayers, n)
}

func param(t *testing.T, c model.Config, name string) model.Param {
	for _, p := range c.Params() {
		if p.Name == name {
			return p
		}
	}
	require.Fail(t, "no parameter "+name)
	return model.Param{}
}

func TestFLOPs(t *testing.T) {
	c := small() // D 12, H*h 24, K*h 12, F 20, V 11, N 2
	layer := 12*24 + 2*12*12 + 24*12 + 3*12*20
	want := float64(6*(2*layer+12*11) + 12*2*7*24)
	require.Equal(t, want, c.FLOPsPerToken(7))
	c.Tied = true
	require.Equal(t, want, c.FLOPsPerToken(7), "a tied head multiplies all the same")
	c.MLP = model.MLPReLU
	require.Equal(t, want-6*2*12*20, c.FLOPsPerToken(7))
	require.Equal(t, want-6*2*12*20-6*2*7*24, c.CausalFLOPsPerToken(7))
}

// The presets of benchmarks are the models of another program, parameter by parameter, with its count of FLOPs.
func TestBenchPresets(t *testing.T) {
	for _, s := range []struct {
		name                                string
		vocab, d, layers, heads, ff, seqLen int
		head                                int
	}{
		{"bench-a", 256, 128, 4, 4, 344, 128, 256 * 128},
		{"bench-b", 4096, 384, 6, 6, 1024, 256, 4096 * 384},
		{"bench-c", 50304, 768, 12, 12, 2048, 256, 0},
		{"bench-g", 2048, 256, 4, 4, 704, 128, 2048 * 256},
	} {
		c, err := model.Preset(s.name)
		require.NoError(t, err)
		require.Equal(t, "peri", c.Placement)
		require.Equal(t, model.QKNormRMS, c.QKNorm)
		require.False(t, c.EmbedNorm)
		require.Equal(t, s.seqLen, c.SeqLen)
		matrices := 4*s.d*s.d + 3*s.d*s.ff
		block := matrices + 4*s.d + 2*s.d/s.heads
		require.Equal(t, s.vocab*s.d+s.layers*block+s.d+s.head, c.NumParams(), s.name)
		perToken := 6*(s.layers*matrices+s.vocab*s.d) + 6*s.layers*s.seqLen*s.d
		require.Equal(t, float64(perToken), c.CausalFLOPsPerToken(s.seqLen), s.name)
	}
}

func TestPresets(t *testing.T) {
	millions := map[string]float64{ // with 512 tokens where the tokenizer decides
		"nano": 0.43, "tiny": 2.86, "small": 14.56, "gpt2": 123.57, "peri-400m": 608.12, "peri-1.5b": 1920.88, "peri-3.2b": 3659.48,
		"bench-a": 0.86, "bench-b": 13.77, "bench-c": 123.61, "bench-g": 4.26,
	}
	require.Len(t, model.PresetNames(), len(millions))
	last := 0
	for _, name := range model.PresetNames() {
		c, err := model.Preset(name)
		require.NoError(t, err)
		if c.VocabSize == 0 {
			require.ErrorContains(t, c.Validate(), "vocab_size", name)
			c.VocabSize = 512
		}
		require.NoError(t, c.Validate(), name)
		require.Equal(t, c, c.Normalize(), name)
		require.InDelta(t, millions[name], float64(c.NumParams())/1e6, 0.005, name)
		if name == "bench-a" || name == "bench-g" { // others' sizes
			last = 0
		}
		require.Greater(t, c.NumParams(), last, name)
		last = c.NumParams()
	}
	// The paper's sizes in the blocks alone, N (2 D² + 2 D K h + 3 D F), in billions.
	for name, want := range map[string]float64{"peri-400m": 0.4027, "peri-1.5b": 1.510, "peri-3.2b": 3.146} {
		c, err := model.Preset(name)
		require.NoError(t, err)
		blocks := 0
		for _, p := range c.Params() {
			if p.Role == model.RoleMatrix {
				blocks += p.Shape.Elems()
			}
		}
		require.InEpsilon(t, want, float64(blocks)/1e9, 5e-4, name)
	}
	_, err := model.Preset("huge")
	require.EqualError(t, err, `preset: "huge" is unknown: use nano, tiny, small, gpt2, peri-400m, peri-1.5b, peri-3.2b, bench-a, bench-b, bench-c or bench-g`)
}

func TestPlacementNames(t *testing.T) {
	for s, want := range map[string]model.Positions{
		"post": {Sum: true}, "C": {Sum: true}, "pre": {Input: true}, "peri": {Input: true, Output: true}, "b + a": {Input: true, Output: true},
		"olmo2": {Output: true}, "none": {}, "A+B+C": {Input: true, Output: true, Sum: true}, "c+a": {Input: true, Sum: true},
	} {
		pos, err := model.ParsePlacement(s)
		require.NoError(t, err, s)
		require.Equal(t, want, pos, s)
		again, err := model.ParsePlacement(pos.String())
		require.NoError(t, err)
		require.Equal(t, pos, again)
	}
	for _, s := range []string{"", "A+", "A+A", "D", "Peri", "AB"} {
		_, err := model.ParsePlacement(s)
		require.ErrorContains(t, err, "placement: ", "%q", s)
	}
	require.Equal(t, "peri", model.Positions{Input: true, Output: true}.String())
	require.Equal(t, "A+C", model.Positions{Input: true, Sum: true}.String())
}

func TestNormalizeCompletes(t *testing.T) {
	c := model.Config{VocabSize: 9, DModel: 96, NLayers: 1, NHeads: 3, SeqLen: 4}.Normalize()
	require.Equal(t, 3, c.NKVHeads)
	require.Equal(t, 32, c.HeadDim)
	require.Equal(t, 256, c.DFF)
	require.Equal(t, 1e-6, c.NormEps)
	require.Equal(t, "peri", c.Placement)
	require.NoError(t, c.Validate())
	require.Equal(t, 384, model.Config{DModel: 96, MLP: model.MLPReLU}.Normalize().DFF)
}

func TestConfigKeepsItsNames(t *testing.T) {
	c := small()
	c.AttnSoftcap, c.Init = 50, "2/d"
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var fromJSON, fromYAML model.Config
	require.NoError(t, json.Unmarshal(raw, &fromJSON))
	require.Equal(t, c, fromJSON)
	raw, err = yaml.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalWithOptions(raw, &fromYAML, yaml.Strict()))
	require.Equal(t, c, fromYAML)
	require.NoError(t, yaml.UnmarshalWithOptions([]byte("placement: none\ninit: 0.1/d\nrope_theta: 500000"), &fromYAML, yaml.Strict()))
	require.Equal(t, 500000.0, fromYAML.RoPETheta)
}

func ExamplePositions() {
	pos, _ := model.ParsePlacement("peri")
	fmt.Println(pos.Input, pos.Output, pos.Sum)
	// Output: true true false
}
