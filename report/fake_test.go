package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

// fake is a run that a test makes up.
type fake struct {
	name      string // of the folder
	placement string
	lr        float64
	seed      uint64
	steps     int // of the config
	done      int // lines; 0: all
	layers    int
	diagnose  int     // steps between diagnoses; 0: none
	diverges  int     // the step at which the loss is NaN, and ends; 0: never
	pace      float64 // seconds of a step but for the first and the last; 0: they are not known
}

// write leaves a folder as vktrain train does.
func (f fake) write(t *testing.T, parent string) string {
	t.Helper()
	cfg, err := train.FromPreset("nano")
	require.NoError(t, err)
	cfg.Model.Placement, cfg.Model.NLayers, cfg.Model.VocabSize, cfg.Seed, cfg.Steps = f.placement, f.layers, 512, f.seed, f.steps
	if f.lr > 0 {
		cfg.LR = f.lr
	}
	folder, err := train.CreateFolder(filepath.Join(parent, f.name), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	require.NoError(t, folder.WriteConfig(cfg.Resolve()))
	for _, m := range f.lines() {
		require.NoError(t, folder.Append(m))
	}
	return folder.Dir
}

func (f fake) lines() []train.Metrics {
	random := rand.New(rand.NewPCG(f.seed, 1))
	noise := func() float64 { return 1 + 0.05*random.NormFloat64() }
	end := f.done
	if end == 0 {
		end = f.steps
	}
	var all []train.Metrics
	base := map[string]float64{"post": 1.4, "pre": 1.1, "peri": 1}[f.placement]
	if f.lr > 0 {
		base += 0.1 * math.Pow(math.Log10(f.lr/1e-2), 2)
	}
	for step := 1; step <= end; step++ {
		s := float64(step)
		m := train.Metrics{Step: step, Loss: (base + 5.2/math.Sqrt(s)) * noise(), LR: 1e-3, GradNorm: base * noise() * 2 / math.Sqrt(s), Tokens: int64(step) * 1024, TokensPerSec: 20000 / base * noise(), Elapsed: 0.05 * s * base}
		if step > 1 && step < f.steps {
			m.Seconds = f.pace
		}
		if step%25 == 0 || step == f.steps {
			m.Evaluated, m.ValLoss = true, (base+5.2/math.Sqrt(s))*(1+0.01*random.NormFloat64())
		}
		if f.diagnose > 0 && (step == 1 || step%f.diagnose == 0) {
			m.Diagnosis = f.diagnosis(s, noise)
		}
		if step == f.diverges {
			m.Loss, m.GradNorm = math.NaN(), math.Inf(1)
			return append(all, m)
		}
		all = append(all, m)
	}
	return all
}

func (f fake) diagnosis(step float64, noise func() float64) *train.Diagnosis {
	d := &train.Diagnosis{Outside: train.Parameters{GradNorm: 1, Kinds: map[string]train.ParameterStats{"embed_tokens.weight": {GradNorm: 1}}}}
	stream := func(v float64) train.Stream {
		s := train.Stream{Variance: train.Number(v)}
		for i := range 100 {
			s.Largest = append(s.Largest, train.Number(math.Sqrt(v)*(3+30*math.Exp(-float64(i)/3))))
		}
		if s.Largest[0] > 65504 {
			s.Overflow = 3
		}
		return s
	}
	d.Embedding, d.Final = stream(1), stream(1)
	grow := 1 + step/50
	for l := range f.layers {
		depth := float64(l + 1)
		v := map[string]float64{"post": 1, "pre": math.Pow(1+0.4*grow, depth), "peri": 1 + depth*grow}[f.placement] * noise()
		layer := train.LayerDiagnosis{
			Attention: train.Sublayer{Stream: stream(v * 0.8), Output: train.Number(v / 2)}, MLP: train.Sublayer{Stream: stream(v), Output: train.Number(v / 3)},
			Logits: train.Attention{LargestLogit: train.Number(3 * grow * noise()), Entropy: train.Number(3 / grow), OneHot: train.Number(1 - 1/grow)}, Angle: train.Number(0.3 / depth),
			Parameters: train.Parameters{GradNorm: train.Number(math.Exp(-depth/2) * noise() / math.Sqrt(step)), Kinds: map[string]train.ParameterStats{}},
		}
		if f.placement == "peri" {
			one := train.Number(noise())
			layer.Attention.Normed, layer.MLP.Normed = &one, &one
		}
		for i, k := range []string{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", lastDown} {
			layer.Kinds[k] = train.ParameterStats{GradNorm: train.Number(noise() / float64(i+1) / step), Norm: 5, UpdateRatio: train.Number(1e-3 * noise() * math.Exp(-step/100)), UpdateCos: train.Number(0.1*noise() - 0.12)}
		}
		norms := []string{"input_layernorm.weight", "mlp.input_norm.weight", "self_attn.q_norm.weight"}
		if f.placement == "peri" {
			norms = append(norms, "post_attention_layernorm.weight")
		}
		for i, n := range norms {
			m := 1 + 0.002*step*float64(i)
			layer.Gains = append(layer.Gains, train.GainStats{Name: n, Mean: train.Number(m), Min: train.Number(m * 0.8), Max: train.Number(m * 1.3)})
		}
		d.Layers = append(d.Layers, layer)
	}
	d.Bound = &train.GradientBound{Hidden: train.Number(3 * noise()), Output: train.Number(2 * noise()), GradNorm: 0.2, Bound: train.Number(0.9 * noise())}
	return d
}

// placementsRuns are three placements with three seeds; one run diverged, and one is going on.
func placementsRuns(t *testing.T, parent string) {
	for _, p := range []string{"post", "pre", "peri"} {
		for seed := range uint64(3) {
			f := fake{name: fmt.Sprintf("%s-%d", p, seed+1), placement: p, seed: seed + 1, steps: 200, layers: 6, diagnose: 20}
			switch {
			case p == "pre" && seed == 2:
				f.diverges = 120
			case p == "peri" && seed == 1:
				f.done = 90
			}
			f.write(t, parent)
		}
	}
}
