package train_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
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
	tiny := train.Memory{Params: 3 << 10, Arena: 1 << 20}
	require.ErrorContains(t, tiny.Check(backend.Info{Backend: "cpu", Name: "a toy", Memory: 1500}),
		"1.003 MiB are needed, 3 KiB of them for the parameters and their moments, and cpu: a toy has 1.465 KiB: ")
	info.Memory = params
	require.ErrorContains(t, m.Check(info), "use a smaller model")
	require.NoError(t, m.Check(backend.Info{}), "unknown memory is no reason to refuse")
}

func TestPlanOfAStep(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	c, err := train.FromPreset("bench-a")
	require.NoError(t, err)
	c.Batch, c.SeqLen = 2, 16
	c = c.Resolve()
	one, err := train.PlanStep(dev, c)
	require.NoError(t, err)
	p, err := train.StepProgram(c.Model.Config, train.ProgramOptions{Batch: 2, SeqLen: 16, MaxNorm: 1})
	require.NoError(t, err)
	require.Equal(t, len(p.Nodes()), one.Nodes)
	require.Equal(t, train.MemoryOn(dev, p), one.Memory)
	c.DiagnosticsEvery = 0
	none, err := train.PlanStep(dev, c)
	require.NoError(t, err)
	require.Nil(t, none.Diagnosed)
	c.DiagnosticsEvery = 7
	seen, err := train.PlanStep(dev, c)
	require.NoError(t, err)
	require.Equal(t, none.Memory, seen.Memory)
	require.Equal(t, 7, seen.Diagnosed.Every)
	require.Greater(t, seen.Diagnosed.Nodes, seen.Nodes)
	require.Greater(t, seen.Diagnosed.FLOPs, seen.FLOPs)
	require.Positive(t, seen.Diagnosed.Bytes)
	c.Accumulation = 3
	three, err := train.PlanStep(dev, c)
	require.NoError(t, err)
	apply := int64(2*c.Model.NumParams() + 16*c.Model.NumParams()) // sum of squares, AdamW
	require.InEpsilon(t, 3*(one.FLOPs-apply)+apply, three.FLOPs, 0.02, "adding to accumulators comes on top")
	c.Model.NLayers = 0
	_, err = train.PlanStep(dev, c)
	require.ErrorContains(t, err, "n_layers")
}

// Programs that share an arena hold what was told of them, in any order of sizes, with stand-ins for activations of 16 bits and without.
func TestMemoryIsWhatTheDeviceHolds(t *testing.T) {
	cfg, err := model.Preset("bench-a")
	require.NoError(t, err)
	for _, storage := range []graph.DType{graph.F32, graph.BF16} {
		dev, err := cpu.New(cpu.Options{Threads: 2})
		require.NoError(t, err)
		o := train.ProgramOptions{Batch: 2, SeqLen: 16, MaxNorm: 1, Storage: storage}
		plain, err := train.StepperPrograms(cfg, o, 2)
		require.NoError(t, err)
		eval, err := train.EvalProgram(cfg, o)
		require.NoError(t, err)
		o.Diagnostics = &train.Diagnostics{}
		diagnosed, err := train.StepperPrograms(cfg, o, 2)
		require.NoError(t, err)
		for _, programs := range [][]*graph.Program{
			{diagnosed[0], diagnosed[1], plain[0], plain[1], eval}, {eval, plain[1], plain[0], diagnosed[0]}, {plain[1], eval, plain[0]}, {diagnosed[0], diagnosed[0]},
		} {
			store, err := dev.NewStore(train.Vars(programs...))
			require.NoError(t, err)
			held := store.(backend.MemoryStats).DeviceBytes()
			var all []backend.Executable
			for _, p := range programs {
				e, err := dev.Compile(p, store)
				require.NoError(t, err)
				held += e.(backend.MemoryStats).DeviceBytes()
				all = append(all, e)
			}
			require.Equal(t, held, train.MemoryOn(dev, programs...).Total(), "%s: %s", storage, programs[0].Name())
			for _, e := range all {
				require.NoError(t, e.Close())
			}
			require.NoError(t, store.Close())
		}
		require.NoError(t, dev.Close())
	}
}
