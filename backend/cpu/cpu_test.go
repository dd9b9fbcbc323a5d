package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// step compiles a training step of a small model with some threads, all parameters initialised.
func step(t testing.TB, threads int, preset string, batch, seqLen int) (*Backend, backend.Store, backend.Executable) {
	t.Helper()
	cfg, err := model.Preset(preset)
	require.NoError(t, err)
	cfg.VocabSize = 512
	p, err := train.StepProgram(cfg, train.ProgramOptions{Batch: batch, SeqLen: seqLen, MaxNorm: 1})
	require.NoError(t, err)
	b, err := New(Options{Threads: threads})
	require.NoError(t, err)
	s, err := b.NewStore(p.Vars())
	require.NoError(t, err)
	for _, param := range cfg.Params() {
		require.NoError(t, s.Write(param.Name, bytesOf(cfg.InitParam(1, param))))
	}
	e, err := b.Compile(p, s)
	require.NoError(t, err)
	tokens := make([]float32, batch*seqLen)
	for i, ints := 0, int32s(tokens); i < len(ints); i++ {
		ints[i] = int32(i * i % 511)
	}
	require.NoError(t, e.Feed(train.InputTokens, bytesOf(tokens)))
	require.NoError(t, e.Feed(train.InputTargets, bytesOf(tokens)))
	require.NoError(t, e.Feed(train.InputInvCount, bytesOf([]float32{1 / float32(len(tokens))})))
	hyper := []float32{graph.HyperLR: 1e-3, graph.HyperBeta1: 0.9, graph.HyperBeta2: 0.95, graph.HyperEps: 1e-8, graph.HyperBias1: 0.1, graph.HyperBias2: 0.05}
	require.NoError(t, e.Feed(train.InputHyper, bytesOf(hyper)))
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		require.NoError(t, s.Close())
		require.NoError(t, b.Close())
		require.NoError(t, b.Close())
	})
	return b, s, e
}

func TestSameBitsForAnyNumberOfThreads(t *testing.T) {
	var first []byte
	for _, threads := range []int{1, 2, 3, 7} {
		_, s, e := step(t, threads, "nano", 3, 50)
		var ticket backend.Ticket
		for range 3 {
			var err error
			ticket, err = e.Submit()
			require.NoError(t, err)
		}
		got := make([]byte, 4)
		require.NoError(t, e.Fetch(ticket, train.OutputLoss, got))
		for _, v := range s.Vars() {
			data := make([]byte, v.Bytes())
			require.NoError(t, s.Read(v.Name, data))
			got = append(got, data...)
		}
		if first == nil {
			first = got
		}
		require.Equal(t, first, got, "%d threads", threads)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	_, _, e := step(t, 2, "nano", 1, 16)
	loss := make([]byte, 4)
	run := func() {
		ticket, err := e.Submit()
		if err == nil {
			err = e.Fetch(ticket, train.OutputLoss, loss)
		}
		if err != nil {
			t.Error(err)
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(10, run))
}

// one compiles a program of one operator with inputs x and u and the output y, all of n elements.
func one(t *testing.T, n int, build func(g *graph.Builder, x, u *graph.Value) *graph.Value) *executable {
	t.Helper()
	b, err := New(Options{Threads: 3})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	g := graph.NewBuilder()
	g.Output("y", build(g, g.Input("x", graph.F32, n), g.Input("u", graph.F32, n)))
	s, err := b.NewStore(nil)
	require.NoError(t, err)
	e, err := b.Compile(g.Build("p"), s)
	require.NoError(t, err)
	return e.(*executable)
}

func run(t *testing.T, e *executable, x, u []float32) ([]float32, error) {
	t.Helper()
	require.NoError(t, e.Feed("x", bytesOf(x)))
	require.NoError(t, e.Feed("u", bytesOf(u)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	y := make([]float32, len(x))
	return y, e.Fetch(ticket, "y", bytesOf(y))
}

func TestPanicIsAnErrorThatNamesTheNode(t *testing.T) {
	e := one(t, 4, func(g *graph.Builder, x, u *graph.Value) *graph.Value { return g.Add(x, u, nil) })
	good := e.kernels[0]
	e.kernels[0] = parallel(5, func(_, i int) { panic("broken kernel") })
	e.stage(graph.NewPlan(e.prog))
	x := make([]float32, 4)
	_, err := run(t, e, x, x)
	require.ErrorContains(t, err, "%add = add(%x, %u): broken kernel")
	_, err = e.Profile()
	require.ErrorContains(t, err, "broken kernel")
	e.kernels[0] = good // the workers live on
	e.stage(graph.NewPlan(e.prog))
	_, err = run(t, e, x, x)
	require.NoError(t, err)
}

func TestSubmitAfterCloseSaysSo(t *testing.T) {
	e := one(t, 4, func(g *graph.Builder, x, u *graph.Value) *graph.Value { return g.Add(x, u, nil) })
	require.NoError(t, e.Close())
	_, err := e.Submit() // never fed either
	require.ErrorIs(t, err, backend.ErrClosed)
}

// Far below zero e^-x overflows, but silu is still a number.
func TestSiLUTail(t *testing.T) {
	e := one(t, 4, func(g *graph.Builder, x, u *graph.Value) *graph.Value { return g.SwiGLU(x, u) })
	x, u := []float32{-80, -88, -89, -95}, []float32{1, 1, 1e30, 1e30}
	y, err := run(t, e, x, u)
	require.NoError(t, err)
	for i := range x {
		want := float64(x[i]) / (1 + math.Exp(-float64(x[i]))) * float64(u[i])
		require.InEpsilon(t, want, y[i], 1e-4, "silu(%v)", x[i]) // silu(-95) is subnormal, with fewer digits
	}
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Threads: -1})
	require.ErrorContains(t, err, "-1 threads")
}

func TestProfile(t *testing.T) {
	_, _, e := step(t, 2, "nano", 1, 16)
	seconds, err := e.(backend.Profiler).Profile()
	require.NoError(t, err)
	require.Len(t, seconds, len(e.(*executable).prog.Nodes()))
	require.Positive(t, e.(backend.MemoryStats).DeviceBytes())
}

func BenchmarkStep(b *testing.B) {
	for _, preset := range []string{"nano", "tiny"} {
		b.Run(preset, func(b *testing.B) {
			_, _, e := step(b, 2, preset, 16, 128)
			loss := make([]byte, 4)
			for b.Loop() {
				ticket, err := e.Submit()
				require.NoError(b, err)
				require.NoError(b, e.Fetch(ticket, train.OutputLoss, loss))
			}
			b.ReportMetric(16*128*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
