package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// checkBound works out the proposition from h, a and dL/do.
func checkBound(t *testing.T, d *Diagnosis, m model.Config, all map[string][]float64) {
	t.Helper()
	h, a, do := all["bound.h"], all["bound.a"], all["bound.do"]
	tokens := len(a) / m.DModel
	hidden, output, sum := 0.0, 0.0, 0.0
	follows := normFollows(m)
	for i := range tokens {
		ht, at, dot := length(h[i*m.DFF:(i+1)*m.DFF]), length(a[i*m.DModel:(i+1)*m.DModel]), length(do[i*m.DModel:(i+1)*m.DModel])
		if follows && m.Norm == model.NormLayer {
			at = math.Sqrt(meanVariance(a[i*m.DModel:(i+1)*m.DModel], m.DModel) * float64(m.DModel))
		}
		hidden, output = hidden+ht/float64(tokens), output+at/float64(tokens)
		if follows {
			dot *= math.Sqrt(float64(m.DModel)) / at
		}
		sum += ht * dot
	}
	if gain, ok := all[fmt.Sprintf("model.layers.%d.mlp_output_layernorm.weight", m.NLayers-1)]; ok && follows {
		most := 0.0
		for _, g := range gain {
			most = max(most, math.Abs(g))
		}
		sum *= most
	}
	require.InEpsilon(t, hidden, float64(d.Bound.Hidden), rounded)
	require.InEpsilon(t, output, float64(d.Bound.Output), rounded)
	require.InEpsilon(t, sum, float64(d.Bound.Bound), rounded)
	require.InEpsilon(t, length(all[fmt.Sprintf("%smodel.layers.%d.mlp.down_proj.weight", PrefixGrad, m.NLayers-1)]), float64(d.Bound.GradNorm), rounded)
	require.Less(t, float64(d.Bound.GradNorm), float64(d.Bound.Bound))
}

// normFollows tells whether the module's output is normalised before it is added.
func normFollows(m model.Config) bool { return m.Placement != "pre" && m.Placement != "post" }

// The derivative of a LayerNorm is max|γ| sqrt(D) / |a - mean(a)| at most, and reaches it: for a gradient across a - mean(a) and across 1. Over |a|, as of a RMSNorm, it
// would be no bound.
func TestTheBoundOfALayerNorm(t *testing.T) {
	const d, eps, gain = 64, 1e-12, 1.5
	rand := rand.New(rand.NewPCG(1, 2))
	b := graph.NewBuilder()
	x, dy, g := b.Input("x", graph.F32, 1, d), b.Input("dy", graph.F32, 1, d), b.Input("gain", graph.F32, d)
	dx, _ := b.NormGrad(graph.OpLayerNormGrad, dy, x, g, nil, eps)
	b.Output("dx", dx)
	r := reference.New(b.Build("derivative"))
	for range 100 {
		a, do, gains := make([]float64, d), make([]float64, d), make([]float64, d)
		for i := range a {
			a[i], do[i], gains[i] = 10+rand.NormFloat64(), rand.NormFloat64(), gain
		}
		across := func(v, u []float64) {
			by := product(v, u) / product(u, u)
			for i := range v {
				v[i] -= by * u[i]
			}
		}
		ones := make([]float64, d)
		for i := range ones {
			ones[i] = 1
		}
		centered := append([]float64{}, a...)
		across(centered, ones)
		measure := func() (da, bound float64) {
			r.Set("x", a)
			r.Set("dy", do)
			r.Set("gain", gains)
			require.NoError(t, r.Run())
			return length(r.Get("dx")), gain * math.Sqrt(d) / length(centered) * length(do)
		}
		da, bound := measure()
		require.Less(t, da, bound)
		across(do, ones)
		across(do, centered)
		da, bound = measure()
		require.InEpsilon(t, bound, da, 1e-6)
		require.Greater(t, da, 2*gain*math.Sqrt(d)/length(a)*length(do))
	}
}

// Of several micro-batches the proposition is told of the last: what a step of that alone measures, times its share of the targets.
func TestTheBoundOfTheLastMicroBatch(t *testing.T) {
	for name, m := range diagnosedModels(t) {
		for _, recompute := range []model.Recompute{model.RecomputeNone, model.RecomputeBlock} {
			dev, err := cpu.New(cpu.Options{Threads: 2})
			require.NoError(t, err)
			o := ProgramOptions{MaxNorm: 1, Recompute: recompute}
			whole, _ := diagnosedRun(t, dev, m, o, 2, 1, always)
			batch := rows(m, 4, 1)
			last := split(batch, 2)[1]
			o.Batch, o.Diagnostics = 2, &Diagnostics{}
			programs, err := StepperPrograms(m, o, 1)
			require.NoError(t, err)
			store, err := dev.NewStore(Vars(programs...))
			require.NoError(t, err)
			for _, p := range m.Params() {
				require.NoError(t, store.Write(p.Name, initial(p)))
			}
			s, err := NewDiagnosingStepper(dev, store, programs, programs, o.Diagnostics)
			require.NoError(t, err)
			s.Diagnose()
			_, err = s.Submit([]Batch{last}, testHyper(1))
			require.NoError(t, err)
			alone, err := s.Drain()
			require.NoError(t, err)
			require.NoError(t, s.Close())
			require.NoError(t, store.Close())
			require.NoError(t, dev.Close())
			share := float64(last.kept()) / float64(batch.kept())
			want, got := alone.Diagnosis.Bound, whole[0].Diagnosis.Bound
			require.InEpsilon(t, float64(want.Hidden), float64(got.Hidden), 1e-5, name)
			require.InEpsilon(t, float64(want.Output), float64(got.Output), 1e-5, name)
			require.InEpsilon(t, share*float64(want.GradNorm), float64(got.GradNorm), 1e-5, name)
			require.InEpsilon(t, share*float64(want.Bound), float64(got.Bound), 1e-5, name)
			require.Less(t, float64(got.GradNorm), float64(got.Bound), name)
		}
	}
}

// Of one token the gradient of an MLP's output matrix is the outer product of dL/do and h, so that without an output norm the bound is reached; with one it holds.
func TestTheBoundIsReachedByOneToken(t *testing.T) {
	models := diagnosedModels(t)
	for placement, reached := range map[string]bool{"pre": true, "post LayerNorm": true, "peri": false, "peri LayerNorm": false, "olmo2 LayerNorm": false} {
		m := models[placement]
		m.SeqLen = 1
		d := &Diagnostics{}
		p, err := StepProgram(m, ProgramOptions{Batch: 1, Diagnostics: d})
		require.NoError(t, err)
		r := reference.New(p)
		for _, q := range m.Params() {
			x := make([]float64, q.Shape.Elems())
			reference.Decode(x, initial(q), graph.F32)
			r.Set(q.Name, x)
		}
		for _, v := range p.Vars() {
			if isMoment(v) {
				r.Set(v.Name, make([]float64, v.Elems()))
			}
		}
		r.Set(InputTokens, []int32{3})
		r.Set(InputTargets, []int32{5})
		r.Set(InputInvCount, []float32{1})
		hyper := make([]float64, graph.HyperLen)
		reference.Decode(hyper, testHyper(1).bytes(), graph.F32)
		r.Set(InputHyper, hyper)
		require.NoError(t, r.Run())
		got, err := d.read(func(output string) ([]byte, error) {
			x := r.Get(output)
			raw := make([]byte, 4*len(x))
			reference.Encode(raw, x, graph.F32)
			return raw, nil
		}, 1)
		require.NoError(t, err)
		if reached {
			require.InEpsilon(t, float64(got.Bound.GradNorm), float64(got.Bound.Bound), 1e-5, placement)
		} else {
			require.Less(t, float64(got.Bound.GradNorm), float64(got.Bound.Bound))
		}
		require.True(t, math.IsNaN(float64(got.Layers[0].Logits.OneHot)), "no row has more than one key")
	}
}
