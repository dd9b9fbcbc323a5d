package train

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

func smallModel(t *testing.T) model.Config {
	m := model.Default()
	m.VocabSize, m.DModel, m.NLayers, m.NHeads, m.NKVHeads, m.DFF, m.SeqLen = 23, 12, 2, 2, 1, 20, 6
	require.NoError(t, m.Validate())
	return m.Normalize()
}

// rows makes n sequences that follow a rule, with a third of the targets ignored, unevenly.
func rows(m model.Config, n, from int) Batch {
	var b Batch
	for i := range n * m.SeqLen {
		b.Tokens = append(b.Tokens, int32((from+i*i)%m.VocabSize))
		target := int32((from + (i+1)*(i+1)) % m.VocabSize)
		if (from+i)%17 < 6 {
			target = graph.IgnoreTarget
		}
		b.Targets = append(b.Targets, target)
	}
	return b
}

// initial gives a parameter values that depend on its name and shape alone.
func initial(p model.Param) []byte {
	h := fnv.New64a()
	h.Write([]byte(p.Name))
	r := rand.New(rand.NewPCG(1, h.Sum64()))
	x := make([]float32, p.Shape.Elems())
	for i := range x {
		x[i] = float32(p.Mean + p.Std*r.NormFloat64())
	}
	return appendFloats(nil, x)
}

func split(b Batch, parts int) []Batch {
	n := len(b.Tokens) / parts
	var out []Batch
	for i := range parts {
		out = append(out, Batch{b.Tokens[i*n : (i+1)*n], b.Targets[i*n : (i+1)*n]})
	}
	return out
}

// trained runs steps of one batch in parts and returns each step's scalars and the parameters after the last.
func trained(t *testing.T, dev backend.Backend, m model.Config, steps, batch, parts int) ([]Scalars, map[string][]byte) {
	programs, err := StepperPrograms(m, ProgramOptions{Batch: batch / parts, MaxNorm: 1, ZLoss: 1e-3}, parts)
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(programs...))
	require.NoError(t, err)
	for _, p := range m.Params() {
		require.NoError(t, store.Write(p.Name, initial(p)))
	}
	s, err := NewStepper(dev, store, programs)
	require.NoError(t, err)
	var all []Scalars
	for step := 1; step <= steps; step++ {
		// A large eps keeps AdamW's step proportional to gradients that are nearly zero.
		before, err := s.Submit(split(rows(m, batch, step), parts), Hyper{LR: 0.01, Beta1: 0.9, Beta2: 0.95, Eps: 1e-2, WeightDecay: 0.1, Step: step})
		require.NoError(t, err)
		if step == 1 {
			require.Nil(t, before)
			continue
		}
		all = append(all, *before)
	}
	last, err := s.Drain()
	require.NoError(t, err)
	all = append(all, *last)
	last, err = s.Drain()
	require.NoError(t, err)
	require.Nil(t, last, "nothing is pending any more")
	params := map[string][]byte{}
	for _, v := range store.Vars() {
		params[v.Name] = make([]byte, v.Bytes())
		require.NoError(t, store.Read(v.Name, params[v.Name]))
	}
	require.NoError(t, s.Close())
	require.NoError(t, store.Close())
	return all, params
}

func floats(raw []byte) []float64 {
	x := make([]float64, len(raw)/4)
	reference.Decode(x, raw, graph.F32)
	return x
}

func TestAccumulationIsTheFullBatch(t *testing.T) {
	m := smallModel(t)
	dev := reference.NewBackend()
	whole, params := trained(t, dev, m, 4, 6, 1)
	for _, parts := range []int{2, 3, 6} {
		got, after := trained(t, dev, m, 4, 6, parts)
		for i := range whole {
			require.InDelta(t, whole[i].Loss, got[i].Loss, 2e-6, "%d parts, step %d", parts, i+1)
			require.InEpsilon(t, whole[i].GradNorm, got[i].GradNorm, 2e-6, "%d parts, step %d", parts, i+1)
		}
		for _, p := range m.Params() {
			require.InDeltaSlice(t, floats(params[p.Name]), floats(after[p.Name]), 1e-5, "%d parts, %s", parts, p.Name)
			require.Zero(t, norm(floats(after[PrefixGrad+p.Name])), "the accumulators are empty again")
		}
	}
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, f := range x {
		sum += f * f
	}
	return math.Sqrt(sum)
}

func TestStepperGivesTheSameBits(t *testing.T) {
	m := smallModel(t)
	for _, parts := range []int{1, 2} {
		a, pa := trained(t, reference.NewBackend(), m, 2, 2, parts)
		b, pb := trained(t, reference.NewBackend(), m, 2, 2, parts)
		require.Equal(t, a, b)
		require.Equal(t, pa, pb)
	}
}

// untrained gives a small model's stepper and evaluator, of one sequence.
func untrained(t *testing.T) (model.Config, *Stepper, *Evaluator) {
	m := smallModel(t)
	dev := reference.NewBackend()
	programs, err := StepperPrograms(m, ProgramOptions{Batch: 1}, 1)
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(programs...))
	require.NoError(t, err)
	s, err := NewStepper(dev, store, programs)
	require.NoError(t, err)
	e, err := NewEvaluator(dev, store, m, ProgramOptions{Batch: 1})
	require.NoError(t, err)
	return m, s, e
}

func TestStepWithoutTargetsIsAnError(t *testing.T) {
	m, s, e := untrained(t)
	b := rows(m, 1, 0)
	for i := range b.Targets {
		b.Targets[i] = graph.IgnoreTarget
	}
	_, err := s.Submit([]Batch{b}, Hyper{Step: 1})
	require.EqualError(t, err, "a step has no target to learn from: every one is ignored")
	_, err = s.SubmitEach(t.Context(), slices.Values([]Batch{rows(m, 1, 3)}), m.SeqLen, Hyper{Step: 1})
	require.EqualError(t, err, "a step's micro-batches keep 3 targets, but its mean was taken over 6")
	_, err = e.Loss(context.Background(), []Batch{b, b})
	require.EqualError(t, err, "an evaluation has no target: every one is ignored")
}

// A class that the model does not have would be left out of the loss in silence, but counted.
func TestTokensOutsideTheVocabularyAreErrors(t *testing.T) {
	m, s, e := untrained(t)
	for _, bad := range []int32{23, -1, math.MaxInt32} {
		token, target := rows(m, 1, 3), rows(m, 1, 3)
		token.Tokens[2], target.Targets[4] = bad, bad
		for b, want := range map[*Batch]string{&token: "token 2 of a batch is", &target: "target 4 of a batch is"} {
			_, err := s.Submit([]Batch{*b}, Hyper{Step: 1})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "outside the vocabulary of 23")
			_, err = e.Loss(context.Background(), []Batch{*b})
			require.ErrorContains(t, err, want)
		}
	}
}

func TestEvaluationIsTheMeanOverTargets(t *testing.T) {
	m := smallModel(t)
	dev := reference.NewBackend()
	one, err := EvalProgram(m, ProgramOptions{Batch: 1})
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(one))
	require.NoError(t, err)
	for _, p := range m.Params() {
		require.NoError(t, store.Write(p.Name, initial(p)))
	}
	b := rows(m, 6, 3)
	var losses []float64
	for _, parts := range []int{1, 6} {
		e, err := NewEvaluator(dev, store, m, ProgramOptions{Batch: 6 / parts})
		require.NoError(t, err)
		loss, err := e.Loss(context.Background(), split(b, parts))
		require.NoError(t, err)
		losses = append(losses, loss)
		require.NoError(t, e.Close())
	}
	require.InDelta(t, losses[0], losses[1], 1e-6, "however unevenly the targets lie in the batches")
	e, err := NewEvaluator(dev, store, m, ProgramOptions{Batch: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Loss(ctx, split(b, 6))
	require.ErrorIs(t, err, context.Canceled)
}
