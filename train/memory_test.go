package train_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

func TestMemoryOfAStep(t *testing.T) {
	cfg, err := model.Preset("bench-a")
	require.NoError(t, err)
	o := train.ProgramOptions{Batch: 2, SeqLen: 16, MaxNorm: 1}
	params := int64(4 * cfg.NumParams())
	one, err := train.StepperPrograms(cfg, o, 1)
	require.NoError(t, err)
	m := train.MemoryOf(one...)
	arena := int64(graph.NewPlan(one[0]).ArenaBytes())
	inputs := int64(4 * (2*2*16 + 1 + graph.HyperLen))
	require.Equal(t, train.Memory{Params: params, Moments: 2 * params, Arena: arena, Inputs: inputs}, m)
	require.Equal(t, 3*params+arena+inputs, m.Total())
	two, err := train.StepperPrograms(cfg, o, 2)
	require.NoError(t, err)
	m = train.MemoryOf(two...)
	require.Equal(t, params, m.Accumulators)
	require.Equal(t, 4*params, m.Fixed(), "variables that both programs have count once")

	info := backend.Info{Backend: "cpu", Name: "c", Memory: m.Total()}
	require.NoError(t, m.Check(info))
	info.Memory--
	require.ErrorContains(t, m.Check(info), "use a smaller batch")
	info.Memory = params
	require.ErrorContains(t, m.Check(info), "use a smaller model")
	require.NoError(t, m.Check(backend.Info{}), "unknown memory is no reason to refuse")
}
