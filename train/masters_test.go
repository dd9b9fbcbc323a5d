package train

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// Matrices alone are bf16, and programs in bf16 read them as they are.
func TestMastersInBF16(t *testing.T) {
	m := smallModel(t)
	for _, parts := range []int{1, 2} {
		programs, err := StepperPrograms(m, ProgramOptions{Batch: 4 / parts, Storage: graph.BF16, Masters: graph.BF16}, parts)
		require.NoError(t, err)
		formats := map[string]graph.DType{}
		for _, v := range Vars(programs...) {
			formats[v.Name] = v.DType
		}
		tensors := map[uint32]bool{}
		for _, q := range m.Params() {
			want := graph.F32
			if q.Role.IsMatrix() {
				want = graph.BF16
			}
			require.Equal(t, []graph.DType{want, graph.F32, graph.F32}, []graph.DType{formats[q.Name], formats[PrefixM+q.Name], formats[PrefixV+q.Name]}, q.Name)
		}
		for _, p := range programs {
			for _, n := range p.Nodes() {
				if n.Op == graph.OpCast {
					require.NotEqual(t, graph.KindVar, n.In[0].Kind(), "%s", n)
				}
				if n.Op == graph.OpAdamW && n.In[6] != nil {
					tensors[graph.AttrOf[graph.AdamWAttr](n).Tensor] = true
				}
			}
		}
		matrices := 0
		for _, q := range m.Params() {
			if q.Role.IsMatrix() {
				matrices++
			}
		}
		require.Len(t, tensors, matrices, "each has random bits of its own")
	}
	_, err := StepProgram(m, ProgramOptions{Batch: 1, Masters: graph.F16})
	require.EqualError(t, err, "masters: f16 is not possible: use f32 or bf16")
}

// mastersRun gives the loss of each step, and the parameters.
func mastersRun(t *testing.T, m model.Config, o ProgramOptions, batch, parts, steps, from int, lr float64, seed uint64, before []byte) (losses []float64, after []byte) {
	t.Helper()
	dev, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	o.Batch, o.MaxNorm = batch/parts, 1
	programs, err := StepperPrograms(m, o, parts)
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(programs...))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	require.NoError(t, InitParams(t.Context(), store, m, 1))
	for _, v := range store.Vars() {
		if before != nil {
			require.NoError(t, store.Write(v.Name, before[:v.Bytes()]))
			before = before[v.Bytes():]
		}
	}
	s, err := NewStepper(dev, store, programs)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for step := from; step < from+steps; step++ {
		_, err := s.Submit(split(rows(m, batch, step%5), parts), Hyper{LR: lr, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Step: step, Seed: seed})
		require.NoError(t, err)
		done, err := s.Drain()
		require.NoError(t, err)
		losses = append(losses, done.Loss)
	}
	for _, v := range store.Vars() {
		raw := make([]byte, v.Bytes())
		require.NoError(t, store.Read(v.Name, raw))
		after = append(after, raw...)
	}
	return losses, after
}

// The seed, the step and the store are all there is to know: from the store of half a run the other half goes as it went.
func TestMastersInBF16GoOn(t *testing.T) {
	m := smallModel(t)
	for _, storage := range []graph.DType{graph.F32, graph.BF16, graph.F16} {
		t.Run(storage.String(), func(t *testing.T) {
			o := ProgramOptions{Storage: storage, Masters: graph.BF16}
			_, whole := mastersRun(t, m, o, 4, 2, 6, 1, 3e-3, 7, nil)
			_, half := mastersRun(t, m, o, 4, 2, 3, 1, 3e-3, 7, nil)
			_, rest := mastersRun(t, m, o, 4, 2, 3, 4, 3e-3, 7, half)
			require.Equal(t, whole, rest)
			_, other := mastersRun(t, m, o, 4, 2, 6, 1, 3e-3, 8, nil)
			require.NotEqual(t, whole, other, "another seed rounds otherwise")
		})
	}
}

// With steps that are mostly below half of what is between two neighbours, a model that rounds to nearest stays behind; one that rounds stochastically
// learns what one with masters in float32 does.
func TestStochasticRoundingLearns(t *testing.T) {
	m := smallModel(t)
	last := func(o ProgramOptions) float64 {
		losses, _ := mastersRun(t, m, o, 8, 1, 400, 1, 1e-3, 1, nil)
		sum := 0.0
		for _, x := range losses[len(losses)-25:] {
			sum += x / 25
		}
		return sum
	}
	f32 := last(ProgramOptions{})
	stochastic, nearest := last(ProgramOptions{Masters: graph.BF16}), last(ProgramOptions{Masters: graph.BF16, nearest: true})
	t.Logf("loss with masters in f32 %.4f, bf16 stochastic %.4f, bf16 nearest %.4f", f32, stochastic, nearest)
	require.Greater(t, nearest, f32+0.3)
	require.InDelta(t, f32, stochastic, (nearest-f32)/5)
}
