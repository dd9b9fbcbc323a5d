//go:build cgo

package vulkan

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// diagnosedSteps takes three steps, of which the first and the last may be diagnosed, of so many micro-batches, and gives what they tell and every variable after them.
func diagnosedSteps(t *testing.T, dev backend.Backend, m model.Config, o train.ProgramOptions, parts int, diagnose bool) ([]train.Scalars, map[string][]byte) {
	t.Helper()
	programs, err := train.StepperPrograms(m, o, parts)
	require.NoError(t, err)
	o.Diagnostics = &train.Diagnostics{}
	diagnosed, err := train.StepperPrograms(m, o, parts)
	require.NoError(t, err)
	store, err := dev.NewStore(train.Vars(programs...))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for _, p := range m.Params() {
		x := make([]float32, p.Shape.Elems())
		p.Init(3, 0, x)
		raw, err := binary.Append(nil, binary.NativeEndian, x)
		require.NoError(t, err)
		require.NoError(t, store.Write(p.Name, raw))
	}
	s, err := train.NewDiagnosingStepper(dev, store, programs, diagnosed, o.Diagnostics)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	s.SetLossScale(train.LossScale{Scale: 64}, 1000) // in f16
	var all []train.Scalars
	for step := 1; step <= 3; step++ {
		if diagnose && step != 2 {
			s.Diagnose()
		}
		batches := make([]train.Batch, parts)
		for k := range batches {
			b := train.Batch{Tokens: make([]int32, o.Batch*m.SeqLen), Targets: make([]int32, o.Batch*m.SeqLen)}
			for i := range b.Tokens {
				b.Tokens[i], b.Targets[i] = int32(i*i*(step+k)%m.VocabSize), int32((i+1)*(i+1)*(step+k)%m.VocabSize)
			}
			batches[k] = b
		}
		before, err := s.Submit(batches, train.Hyper{LR: 0.01, Beta1: 0.9, Beta2: 0.95, Eps: 1e-2, WeightDecay: 0.1, Step: step})
		require.NoError(t, err)
		if before != nil {
			all = append(all, *before)
		}
	}
	last, err := s.Drain()
	require.NoError(t, err)
	vars := map[string][]byte{}
	for _, v := range store.Vars() {
		vars[v.Name] = make([]byte, v.Bytes())
		require.NoError(t, store.Read(v.Name, vars[v.Name]))
	}
	return append(all, *last), vars
}

// A diagnosed step has the bits that it has without, in each format, and tells what the CPU's does.
func TestDiagnosedSteps(t *testing.T) {
	host, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	m := model.Default()
	m.VocabSize, m.DModel, m.NLayers, m.NHeads, m.NKVHeads, m.HeadDim, m.DFF, m.SeqLen = 67, 24, 2, 2, 1, 12, 40, 33
	m = m.Normalize()
	require.NoError(t, m.Validate())
	for _, storage := range []graph.DType{graph.F32, graph.BF16, graph.F16} {
		o := Options{}
		if storage == graph.F32 { // drivers that run on the CPU take minutes to compile a GPU's tiles for 16 bits
			o.tweak = asGPU
		}
		b := openTest(t, o)
		for _, c := range []struct {
			placement, norm, qkNorm string
			recompute               model.Recompute
			parts                   int
		}{
			{"peri", model.NormRMS, model.QKNormRMS, "", 1},
			{"pre", model.NormRMS, model.QKNormNone, model.RecomputeBlock, 1},
			{"peri", model.NormLayer, model.QKNormL2, "", 2},
			{"olmo2", model.NormRMS, model.QKNormRMSFull, "", 1},
			{"post", model.NormLayer, model.QKNormLayerNorm, model.RecomputeBlock, 2},
		} {
			t.Run(fmt.Sprint(storage, " ", c), func(t *testing.T) {
				m := m
				m.Placement, m.Norm, m.QKNorm = c.placement, c.norm, c.qkNorm
				o := train.ProgramOptions{Batch: 2 / c.parts, MaxNorm: 1, Storage: storage, Recompute: c.recompute}
				plain, before := diagnosedSteps(t, b, m, o, c.parts, false)
				seen, after := diagnosedSteps(t, b, m, o, c.parts, true)
				require.Equal(t, before, after)
				tolerance := 1e-3
				if storage != graph.F32 {
					tolerance = 0.15 // rounded activations and gradients, three steps on
				}
				like, _ := diagnosedSteps(t, host, m, o, c.parts, true)
				for i := range seen {
					require.Equal(t, i != 1, seen[i].Diagnosis != nil)
					compareDiagnoses(t, like[i].Diagnosis, seen[i].Diagnosis, tolerance)
					seen[i].Diagnosis = nil
				}
				require.Equal(t, plain, seen)
			})
		}
	}
}

// compareDiagnoses goes over every number.
func compareDiagnoses(t *testing.T, want, got *train.Diagnosis, tolerance float64) {
	t.Helper()
	trees := [2]any{}
	for i, d := range []*train.Diagnosis{want, got} {
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &trees[i]))
	}
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		switch a := a.(type) {
		case map[string]any:
			require.Len(t, b, len(a), path)
			for k := range a {
				walk(path+"."+k, a[k], b.(map[string]any)[k])
			}
		case []any:
			require.Len(t, b, len(a), path)
			for i := range a {
				walk(fmt.Sprintf("%s.%d", path, i), a[i], b.([]any)[i])
			}
		case float64:
			require.InDelta(t, a, b, tolerance*math.Abs(a)+tolerance/50, path)
		default:
			require.Equal(t, a, b, path)
		}
	}
	walk("", trees[0], trees[1])
}
