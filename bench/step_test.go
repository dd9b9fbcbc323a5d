package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/internal/bootstrap"
	"github.com/vktrain/vktrain/model"
)

func open(t *testing.T, threads int) backend.Backend {
	dev, err := cpu.New(cpu.Options{Threads: threads})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func small(placement string) Model {
	c := model.Default()
	c.VocabSize, c.DModel, c.NLayers, c.NHeads, c.DFF, c.SeqLen, c.Placement = 50, 16, 2, 2, 24, 8, placement
	return Model{Name: placement, Config: c.Normalize()}
}

func TestStepsAreTrainingSteps(t *testing.T) {
	dev := open(t, 2)
	turns := 0
	got, err := Steps(context.Background(), dev, []Model{small("pre"), small("peri")}, StepOptions{
		Batch: 2, SeqLen: 8, Steps: 3, Progress: func(done, total int) { require.Equal(t, turns, done); require.Equal(t, 5, total); turns++ },
	})
	require.NoError(t, err)
	require.Equal(t, 5, turns)
	require.Len(t, got, 2)
	for _, s := range got {
		require.Len(t, s.seconds, 3, "the warm-up does not count")
		require.Equal(t, 2, s.Threads)
		require.InDelta(t, 3.9, s.Loss, 1, "about log 50")
		require.InEpsilon(t, 16e3/s.MsPerStep, s.TokensPerSec, 1e-9)
		require.True(t, s.CPUSeconds > 0 == (cpuSeconds() > 0))
		require.LessOrEqual(t, s.MsMin, s.MsPerStep)
		require.GreaterOrEqual(t, s.PeakBytes, s.DeviceBytes)
		// Parameters, their moments, and more.
		require.Greater(t, s.DeviceBytes, int64(3*4*s.Params))
	}
	require.Equal(t, 1.0, got[0].Ratio)
	require.Equal(t, bootstrap.Median(ratiosOf(got[1].seconds, got[0].seconds)), got[1].Ratio)
	require.Zero(t, got[1].RatioHigh, "three turns have no interval")
	require.LessOrEqual(t, got[1].MsLow, got[1].MsPerStep)
	require.GreaterOrEqual(t, got[1].MsHigh, got[1].MsPerStep)
	require.Equal(t, "pre", got[1].RatioTo)
	require.Equal(t, got[1].Work.FLOPs, got[0].Work.FLOPs, "of matrix products")
	require.Greater(t, got[1].Work.NormElements, got[0].Work.NormElements)
	require.InEpsilon(t, small("pre").Config.CausalFLOPsPerToken(8)*got[0].TokensPerSec/1e9, got[0].GFLOPs, 1e-9)
}

// A diagnosed step is measured in each turn, and what its programs take is what the device holds more.
func TestDiagnosedStepsAreMeasuredBeside(t *testing.T) {
	dev := open(t, 2)
	plain, seen := small("peri"), small("peri")
	seen.DiagnosticsEvery = 10
	got, err := Steps(context.Background(), dev, []Model{plain, seen}, StepOptions{Batch: 2, SeqLen: 8, Steps: 3})
	require.NoError(t, err)
	require.Nil(t, got[0].Diagnosed)
	require.Len(t, got[1].seconds, 3)
	require.Len(t, got[1].diagnosed, 3)
	d := got[1].Diagnosed
	require.Equal(t, Diagnosed{Every: 10, Ms: 1e3 * bootstrap.Median(got[1].diagnosed), Ratio: bootstrap.Median(ratiosOf(got[1].diagnosed, got[1].seconds)), Bytes: d.Bytes}, *d)
	require.Equal(t, got[1].DeviceBytes-got[0].DeviceBytes, d.Bytes)
	require.InDelta(t, (d.Ratio-1)/10, d.Share(), 1e-12)
}

func TestStepsRefuse(t *testing.T) {
	dev := open(t, 1)
	_, err := Steps(context.Background(), dev, []Model{small("pre")}, StepOptions{Batch: 1, SeqLen: 8})
	require.ErrorContains(t, err, "0 steps are too few")
	_, err = Steps(context.Background(), dev, []Model{small("middle")}, StepOptions{Batch: 1, SeqLen: 8, Steps: 1})
	require.ErrorContains(t, err, `placement: "middle"`)
	again := small("pre")
	again.Recompute = "all"
	_, err = Steps(context.Background(), dev, []Model{again}, StepOptions{Batch: 1, SeqLen: 8, Steps: 1})
	require.ErrorContains(t, err, `recompute: "all" is unknown`)
	_, err = Steps(context.Background(), dev, nil, StepOptions{Batch: 1, SeqLen: 8, Steps: 1})
	require.ErrorContains(t, err, "no model")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Steps(ctx, dev, []Model{small("pre")}, StepOptions{Batch: 1, SeqLen: 8, Steps: 1})
	require.ErrorIs(t, err, context.Canceled)
}

func TestRatiosHaveAnInterval(t *testing.T) {
	require.Equal(t, []float64{2, 4, 1}, ratiosOf([]float64{2, 8, 3}, []float64{1, 2, 3}))
	got, err := Steps(t.Context(), open(t, 1), []Model{small("pre"), small("peri")}, StepOptions{Batch: 1, SeqLen: 8, Steps: leastTurns})
	require.NoError(t, err)
	require.Zero(t, got[0].RatioHigh, "the first is compared with nothing")
	require.Positive(t, got[1].RatioLow)
	require.LessOrEqual(t, got[1].RatioLow, got[1].Ratio)
	require.GreaterOrEqual(t, got[1].RatioHigh, got[1].Ratio)
	require.LessOrEqual(t, got[1].CPULow, got[1].CPURatio)
	require.GreaterOrEqual(t, got[1].CPUHigh, got[1].CPURatio)
}
