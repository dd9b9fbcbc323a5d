package bench

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
)

func TestOpsAreThoseOfTheStep(t *testing.T) {
	dev, m := open(t, 2), small("peri")
	r, err := Ops(context.Background(), dev, m, OpOptions{Batch: 2, SeqLen: 8, Repeats: 3})
	require.NoError(t, err)
	p, err := train.StepProgram(m.Config, train.ProgramOptions{Batch: 2, SeqLen: 8, MaxNorm: 1})
	require.NoError(t, err)
	nodes, share, ms := 0, 0.0, 0.0
	flops := int64(0)
	for i, op := range r.Ops {
		nodes += op.Count
		share += op.Share
		ms += op.Ms
		flops += op.flops
		require.Positive(t, op.Ms, "%+v", op)
		require.LessOrEqual(t, op.MsMin, op.Ms)
		require.InEpsilon(t, op.Ms, op.MsEach*float64(op.Count), 1e-9)
		require.Contains(t, []string{BoundFMA, BoundMemory}, op.Bound)
		require.Positive(t, op.OfPeak+float64(op.flops), "%+v", op)
		require.True(t, i == 0 || op.Ms <= r.Ops[i-1].Ms, "the longest first")
	}
	require.Equal(t, len(p.Nodes()), nodes)
	require.InDelta(t, 1, share, 1e-9)
	require.InEpsilon(t, r.StepMs, ms, 1e-9)
	want := int64(0)
	for _, n := range p.Nodes() {
		f, _ := graph.Cost(n)
		want += f
	}
	require.Equal(t, want, flops)
	require.Equal(t, 2, r.Peak.Threads)
	require.Positive(t, r.Peak.GFLOPs)
	require.Positive(t, r.Peak.GBs)

	some, err := Ops(context.Background(), dev, m, OpOptions{Batch: 2, SeqLen: 8, Repeats: 1, Ops: []string{"adamw", "attention"}})
	require.NoError(t, err)
	require.NotEmpty(t, some.Ops)
	for _, op := range some.Ops {
		require.Contains(t, []string{"adamw", "attention"}, op.Name)
	}
	_, err = Ops(context.Background(), dev, m, OpOptions{Batch: 2, SeqLen: 8})
	require.ErrorContains(t, err, "0 repeats are too few")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Ops(ctx, dev, m, OpOptions{Batch: 2, SeqLen: 8, Repeats: 1})
	require.ErrorIs(t, err, context.Canceled)
}

func TestAStepHasItsOps(t *testing.T) {
	got, err := Steps(context.Background(), open(t, 1), []Model{small("peri")}, StepOptions{Batch: 2, SeqLen: 8, Steps: 1})
	require.NoError(t, err)
	var names []string
	for _, op := range got[0].Ops {
		require.Empty(t, op.Shapes)
		names = append(names, op.Name)
	}
	slices.Sort(names)
	require.Equal(t, slices.Compact(slices.Clone(names)), names, "each operator once")
	require.Subset(t, names, []string{"matmul", "attention", "attention_grad", "adamw", "rms_norm", "clip_norm"})
	require.InEpsilon(t, got[0].GFLOPs/got[0].PeakGFLOPs, got[0].OfPeak, 1e-9)
}

// blind is a device that can't time nodes.
type blind struct{ backend.Backend }

type blindExecutable struct{ backend.Executable }

func (b blind) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	e, err := b.Backend.Compile(p, s)
	return blindExecutable{e}, err
}

func TestADeviceWithoutAProfile(t *testing.T) {
	dev := blind{open(t, 1)}
	got, err := Steps(context.Background(), dev, []Model{small("peri")}, StepOptions{Batch: 2, SeqLen: 8, Steps: 1})
	require.NoError(t, err)
	require.Empty(t, got[0].Ops)
	require.Zero(t, got[0].PeakGFLOPs, "it has no loops")
	_, err = Ops(context.Background(), dev, small("peri"), OpOptions{Batch: 2, SeqLen: 8, Repeats: 1})
	require.ErrorContains(t, err, "can't time")
}

func TestShapesTellNodesApart(t *testing.T) {
	b := graph.NewBuilder()
	out := func(name string, v *graph.Value) { b.Output(name, v) }
	x, w, gain := b.Var("x", graph.F32, 2, 8, 32), b.Var("w", graph.F32, 48, 32), b.Var("gain", graph.F32, 32)
	y := b.Linear(x, w, nil)
	out("1", b.Linear(x, w, y))
	out("2", b.RMSNorm(x, gain, x, 1))
	o, _ := b.Attention(x, x, x, nil, graph.AttentionAttr{Heads: 4, KVHeads: 4, HeadDim: 8, Scale: 1})
	out("3", o)
	out("4", b.QKNormRoPE(x, nil, graph.QKNormRoPEAttr{Heads: 4, HeadDim: 8}))
	out("5", b.Embedding(w, b.Var("tokens", graph.I32, 2, 8)))
	out("6", b.SumSquares(w, nil))
	out("7", b.MatMul(x, b.Var("z", graph.F32, 2, 5, 32), nil, nil, graph.MatMulAttr{TransB: true, Batched: true}))
	var got []string
	for _, n := range b.Build("p").Nodes() {
		op, shapes := byShapes(n)
		got = append(got, op+" "+shapes)
	}
	require.Equal(t, []string{
		"matmul NT 16x48x32", "matmul NT 16x48x32 +addend", "rms_norm 2x8x32 +gain +addend", "attention 2x8, 4:4 heads of 8",
		"qk_norm_rope 2x8x32 of 4x8, none", "embedding 2x8x32 of 48x32", "sum_squares 48x32", "matmul NT 2 of 8x5x32",
	}, got)
}

func TestBesideThePeak(t *testing.T) {
	peak := &Peak{GFLOPs: 100, GBs: 20}
	compute := Op{Count: 2, Ms: 4, flops: 2e8, bytes: 1e6}.beside(peak) // 2 ms of FMAs, 0.05 of memory
	require.Equal(t, BoundFMA, compute.Bound)
	require.InEpsilon(t, 0.5, compute.OfPeak, 1e-9)
	require.InEpsilon(t, 2, compute.MsEach, 1e-9)
	memory := Op{Count: 1, Ms: 4, flops: 1e6, bytes: 2e7}.beside(peak) // 1 ms of memory
	require.Equal(t, BoundMemory, memory.Bound)
	require.InEpsilon(t, 0.25, memory.OfPeak, 1e-9)
	require.Zero(t, Op{Count: 1, flops: 1}.beside(peak).OfPeak, "no infinity where the clock saw nothing")
	require.Empty(t, Op{Count: 1, Ms: 1}.beside(nil).Bound)
}
