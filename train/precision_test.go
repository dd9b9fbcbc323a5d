package train

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
)

func TestStorage(t *testing.T) {
	for _, c := range []struct {
		precision string
		kind      backend.Kind
		want      graph.DType
	}{
		{"auto", backend.CPU, graph.F32}, {"auto", backend.Software, graph.F32}, {"auto", backend.Discrete, graph.BF16},
		{"auto", backend.Integrated, graph.BF16}, {"auto", backend.Virtual, graph.BF16}, {"f16", backend.CPU, graph.F16},
		{"bf16", backend.CPU, graph.BF16}, {"f32", backend.Discrete, graph.F32},
	} {
		got, err := Storage(c.precision, c.kind)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s on %s", c.precision, c.kind)
		require.Equal(t, c.want, Config{Precision: c.precision}.on(backend.Info{Kind: c.kind}).storage())
	}
	_, err := Storage("half", backend.CPU)
	require.EqualError(t, err, `precision: "half" is unknown: use auto, f32, bf16 or f16`)
}

func TestLossScaleGrowsAndShrinks(t *testing.T) {
	inf := math.Inf(1)
	s := LossScale{Scale: 1024}
	require.True(t, s.after(1024, inf, 3))
	require.True(t, s.after(1024, inf-inf, 3), "a step that was submitted before the overflow was known")
	require.Equal(t, LossScale{Scale: 512, Skipped: 2}, s)
	for range 2 {
		require.False(t, s.after(512, 1, 3))
	}
	require.Equal(t, LossScale{Scale: 512, Good: 2, Skipped: 2}, s)
	require.False(t, s.after(512, 1, 3))
	require.Equal(t, LossScale{Scale: 1024, Skipped: 2}, s)
	require.False(t, s.after(512, 1, 3), "a step with the scale before says nothing of this one")
	require.Equal(t, 0, s.Good)
	s.Scale = largestLossScale
	s.after(s.Scale, 1, 1)
	require.Equal(t, float64(largestLossScale), s.Scale)
}

// Training in f16 begins with a scale that is too large, finds one that is not, and tries a larger one from time to time. A step that
// is left out changes nothing, whether it has one micro-batch or two.
func TestF16FindsItsScale(t *testing.T) {
	for _, parts := range []int{1, 2} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			dev, err := cpu.New(cpu.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, dev.Close()) }()
			m := smallModel(t)
			programs, err := StepperPrograms(m, ProgramOptions{Batch: 4 / parts, MaxNorm: 1, Storage: graph.F16}, parts)
			require.NoError(t, err)
			store, err := dev.NewStore(Vars(programs...))
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			require.NoError(t, InitParams(t.Context(), store, m, 1))
			s, err := NewStepper(dev, store, programs)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			s.SetLossScale(LossScale{Scale: largestLossScale}, 4)
			state := func() []byte {
				var all []byte
				for _, v := range store.Vars() {
					raw := make([]byte, v.Bytes())
					require.NoError(t, store.Read(v.Name, raw))
					all = append(all, raw...)
				}
				return all
			}
			before, skipped, grew := state(), 0, false
			last := LossScale{Scale: largestLossScale}
			for step := 1; step <= 30; step++ {
				_, err := s.Submit(split(rows(m, 4, step), parts), Hyper{LR: 0.01, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Step: step})
				require.NoError(t, err)
				done, err := s.Drain()
				require.NoError(t, err)
				require.True(t, isFinite(done.Loss))
				require.Equal(t, last.Scale, done.LossScale)
				require.Equal(t, !isFinite(done.GradNorm), done.Skipped)
				after := state()
				require.Equal(t, done.Skipped, string(before) == string(after), "step %d", step)
				if done.Skipped {
					skipped++
					require.Equal(t, last.Scale/2, s.LossScale().Scale)
				} else {
					require.Less(t, done.GradNorm, 20.0, "the norm is of the true gradients")
					grew = grew || s.LossScale().Scale > last.Scale
				}
				before, last = after, *s.LossScale()
			}
			require.Greater(t, skipped, 2)
			require.Less(t, skipped, 20)
			require.True(t, grew)
			require.Equal(t, skipped, last.Skipped)
		})
	}
}
