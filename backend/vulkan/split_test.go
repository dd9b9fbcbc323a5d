//go:build cgo

package vulkan

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
)

func TestEvenParts(t *testing.T) {
	for _, c := range []struct{ n, most, step, want int }{
		{100, 100, 1, 100}, {100, 99, 1, 50}, {100, 99, 32, 64}, {100, 40, 32, 32}, {100, 31, 32, 0}, {128, 64, 64, 64}, {129, 64, 64, 64}, {1 << 30, 1 << 20, 64, 1 << 20},
	} {
		got := evenly(c.n, c.most, c.step)
		require.Equal(t, c.want, got, c)
		require.True(t, got == c.n || got <= c.most && got%c.step == 0, c)
	}
	require.Equal(t, 192, lcm(64, 48))
}

// largeTable is a step of an embedding that is also the head, with more bytes than the device binds at once: each operator that sees such a tensor.
func largeTable(vocab, dim, tokens int) *graph.Program {
	b := graph.NewBuilder()
	w := b.Var("w", graph.F32, vocab, dim)
	m, v := b.Var("m", graph.F32, vocab, dim), b.Var("v", graph.F32, vocab, dim)
	ids, targets := b.Input("tokens", graph.I32, tokens), b.Input("targets", graph.I32, tokens)
	b.Output("cast", b.SumSquares(b.Cast(b.Cast(w, graph.BF16), graph.F32), nil))
	x := b.Embedding(w, ids)
	losses, _ := b.CrossEntropy(b.Linear(x, w, nil), targets, nil, graph.CrossEntropyAttr{})
	loss := b.Sum(losses, nil)
	grads, err := b.Grad(loss, b.Fill(b.Temp("one", graph.F32, 1), 1), []*graph.Value{w, x}, nil)
	if err != nil {
		panic(err)
	}
	norm, clip := b.ClipNorm(b.SumSquares(grads[0], nil), nil, 1)
	b.AdamW(w, m, v, grads[0], b.Input("hyper", graph.F32, graph.HyperLen), clip, nil, graph.AdamWAttr{Decay: 1})
	for name, v := range map[string]*graph.Value{"loss": loss, "x": x, "dx": grads[1], "norm": norm} {
		b.Output(name, v)
	}
	return b.Build("large")
}

// runLarge runs largeTable once and gives its outputs, and the weights and moments after it.
func runLarge(t *testing.T, b backend.Backend, p *graph.Program, vocab, tokens int) map[string][]float32 {
	t.Helper()
	vars := p.Vars()
	s, err := b.NewStore(vars)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	w := make([]byte, vars[0].Bytes())
	for i := range len(w) / 4 {
		x := float32(uint32(i)*2654435761>>8)/(1<<24) - 0.5
		binary.NativeEndian.PutUint32(w[4*i:], math.Float32bits(x/4))
	}
	require.NoError(t, s.Write("w", w))
	e, err := b.Compile(p, s)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	ids, targets := make([]int32, tokens), make([]int32, tokens)
	for i := range ids { // in all parts of the table, the first and the last row too, and one twice
		ids[i], targets[i] = int32(i*(vocab-1)/(tokens-1)), int32((tokens-i)*(vocab-1)/tokens)
	}
	ids[1] = ids[0]
	hyper := make([]float32, graph.HyperLen)
	hyper[graph.HyperLR], hyper[graph.HyperBeta1], hyper[graph.HyperBeta2], hyper[graph.HyperEps] = 0.1, 0.5, 0.5, 0.1
	hyper[graph.HyperWeightDecay], hyper[graph.HyperBias1], hyper[graph.HyperBias2] = 0.1, 0.5, 0.5
	for name, x := range map[string]any{"tokens": ids, "targets": targets, "hyper": hyper} {
		raw, err := binary.Append(nil, binary.NativeEndian, x)
		require.NoError(t, err)
		require.NoError(t, e.Feed(name, raw))
	}
	ticket, err := e.Submit()
	require.NoError(t, err)
	got := map[string][]float32{}
	keep := func(name string, raw []byte) {
		x := make([]float32, len(raw)/4)
		_, err := binary.Decode(raw, binary.NativeEndian, x)
		require.NoError(t, err)
		got[name] = x
	}
	for _, o := range p.Outputs() {
		raw := make([]byte, o.Value.Bytes())
		require.NoError(t, e.Fetch(ticket, o.Name, raw))
		keep(o.Name, raw)
	}
	for _, name := range []string{"w", "m"} {
		require.NoError(t, s.Read(name, w))
		keep(name, w)
	}
	return got
}

// An embedding of more than 128 MiB, which is what Mesa's software driver binds at once.
func TestTableLargerThanABinding(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a gigabyte of memory")
	}
	b := openTest(t, Options{})
	const dim, tokens = 768, 8
	vocab := int(min(b.caps.maxBindBytes, 128<<20)/(4*dim)) + 65
	if int64(4*dim*vocab) <= b.caps.maxBindBytes {
		narrow := openTest(t, Options{Limits: "range=128M"})
		b = narrow
	}
	compareLarge(t, b, vocab, dim, tokens)
}

func compareLarge(t *testing.T, b *Backend, vocab, dim, tokens int) {
	p := largeTable(vocab, dim, tokens)
	host, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	want := runLarge(t, host, p, vocab, tokens)
	require.NoError(t, host.Close())
	got := runLarge(t, b, p, vocab, tokens)
	require.Equal(t, want["x"], got["x"])
	for name, x := range want {
		largest, worst := 0.0, 0.0
		for i := range x {
			largest, worst = max(largest, math.Abs(float64(x[i]))), max(worst, math.Abs(float64(x[i]-got[name][i])))
		}
		// Sums of up to vocab terms in two orders, whose roundings, each of the sum so far, go either way: eight times the root of their number.
		require.LessOrEqual(t, worst, 8*math.Sqrt(float64(vocab))*0x1p-24*largest, name)
		require.Positive(t, largest, name)
	}
}

// Parts of elements, rows and columns leave every bit as it is; those of the inner dimension of a product do not.
func TestPartsKeepBits(t *testing.T) {
	const vocab, dim, tokens = 1000, 96, 64
	whole := runLarge(t, openTest(t, Options{}), largeTable(vocab, dim, tokens), vocab, tokens)
	parts := runLarge(t, openTest(t, Options{Limits: "range=300K"}), largeTable(vocab, dim, tokens), vocab, tokens)
	for _, name := range []string{"x", "loss", "cast"} {
		require.Equal(t, whole[name], parts[name], name)
	}
	used := map[int]bool{} // rows whose gradient has a part that came through dx
	for i := range tokens {
		used[i*(vocab-1)/(tokens-1)] = true
	}
	for i := range vocab {
		if !used[i] {
			require.Equal(t, whole["m"][i*dim:(i+1)*dim], parts["m"][i*dim:(i+1)*dim], "row %d", i)
		}
	}
	for _, name := range []string{"dx", "m", "w"} {
		require.InDeltaSlice(t, whole[name], parts[name], 1e-5, name)
	}
}

// An arena that is larger than an allocation lies in several, and the step has the bits that it has in one.
func TestArenaInSeveralAllocations(t *testing.T) {
	cfg, o := tinyModel()
	cfg.DModel, cfg.SeqLen, cfg.DFF = 64, 1024, 192
	losses := func(limits string) (got []float64, pieces int) {
		b := openTest(t, Options{Limits: limits})
		withStepper(t, b, cfg.Normalize(), o, func(stepper *train.Stepper, batch train.Batch) {
			got = takeSteps(t, stepper, batch, 2, func(int) {})
			pieces = len(stepper.Executables()[0].(*Executable).arena.parts)
		})
		return got, pieces
	}
	want, pieces := losses("")
	require.Equal(t, 1, pieces)
	got, pieces := losses("alloc=4M")
	require.Greater(t, pieces, 1)
	require.Equal(t, want, got)
}
