//go:build cgo

package vulkan

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/graph"
)

// layers is a program with three shapes of matmul, one of them twice.
func layers() *graph.Program {
	b := graph.NewBuilder()
	x, w := b.Input("x", graph.F32, 20, 24), b.Var("w", graph.F32, 40, 24)
	y := b.Linear(x, w, nil)
	z := b.Linear(x, w, y)
	b.Output("dw", b.MatMul(z, x, nil, nil, graph.MatMulAttr{TransA: true}))
	b.Output("again", b.Linear(x, w, nil))
	return b.Build("layers")
}

// openTuned opens a device that is tuned by itself, software or not, with a clock of the test's: kernels take what times says, and others a second. It gives
// what was measured so far as well.
func openTuned(t *testing.T, dir string, times map[string]float64, opts Options) (*Backend, *[]string) {
	t.Helper()
	if opts.Tuning == nil {
		opts.Tuning = &Tuning{Conform: func(backend.Backend, *graph.Node) error { return nil }, Measure: true, Software: true}
	}
	opts.CacheDir, opts.Limits = dir, "invocations=128" // fewer kernels: drivers on the CPU take seconds to compile some
	b := openTest(t, opts)
	b.tuner.budget = time.Hour
	measured := &[]string{}
	b.tuner.seconds = func(e *Executable) (float64, error) {
		name := kernelOf(b, e)
		if len(*measured) == 0 || (*measured)[len(*measured)-1] != name {
			*measured = append(*measured, name)
		}
		if s, ok := times[name]; ok {
			return s, nil
		}
		return 1, nil
	}
	return b, measured
}

// kernelOf names the choice that an executable of one matmul was compiled with.
func kernelOf(b *Backend, e *Executable) string {
	n := e.program.Nodes()[0]
	l := e.launches[0]
	switch {
	case strings.HasPrefix(l.kernel, "fill"):
		return "wrong"
	case n.Op != graph.OpMatMul:
		if strings.HasSuffix(e.launches[len(e.launches)-1].kernel, "_16") {
			return n.Op.String() + "_16"
		}
		return n.Op.String()
	}
	for _, c := range b.caps.matMulCandidates(n, b.caps.ruleForMatMul(n)) {
		list := b.caps.matMul(n, c)
		if keyOf(list[0]) == l.key && len(list) == len(e.launches) {
			return c.String()
		}
	}
	return "unknown"
}

func runLayers(t *testing.T, b *Backend) []byte {
	t.Helper()
	p := layers()
	s := newStore(t, b, p)
	w := make([]float32, 40*24)
	for i := range w {
		w[i] = float32(i%7) / 3
	}
	require.NoError(t, s.Write("w", floats(w...)))
	e := compile(t, b, p, s)
	x := make([]float32, 20*24)
	for i := range x {
		x[i] = float32(i%11) / 5
	}
	require.NoError(t, e.Feed("x", floats(x...)))
	ticket, err := e.Submit()
	require.NoError(t, err)
	return fetch(t, e, ticket, "dw", 4*40*24)
}

// The first program with a shape measures it; the next one, in this process or another, has the same kernels and the same bits.
func TestTuning(t *testing.T) {
	dir := t.TempDir()
	var progress [][2]int
	tuning := &Tuning{
		Conform: func(backend.Backend, *graph.Node) error { return nil }, Measure: true, Software: true,
		Progress: func(done, total int) { progress = append(progress, [2]int{done, total}) },
	}
	b, measured := openTuned(t, dir, map[string]float64{"matmul_tile_32": 0.5, "matmul_tile_32~1": 0.5}, Options{Tuning: tuning})
	want := runLayers(t, b)
	choices := b.Choices(layers())
	require.Len(t, choices, 3)
	for i, shape := range []string{"NT 20x40x24 f32", "NT 20x40x24 + addend f32", "TN 40x24x20 f32"} {
		c := choices[i]
		require.Equal(t, []string{"matmul", shape}, []string{c.Op, c.Shape})
		require.True(t, strings.HasPrefix(c.Kernel, "matmul_tile_32"), c.Kernel)
		require.Equal(t, c.Kernel, c.Times[0].Kernel)
		require.Equal(t, 0.5, c.Times[0].Seconds)
		require.Empty(t, c.Why)
	}
	count := len(*measured)
	require.Greater(t, count, 5)
	last := progress[len(progress)-1]
	require.Equal(t, last[0], last[1])
	require.Len(t, progress, last[1]+1)
	require.Equal(t, want, runLayers(t, b))
	require.Len(t, *measured, count, "nothing is measured twice")

	again, measured := openTuned(t, dir, nil, Options{})
	require.Equal(t, want, runLayers(t, again))
	require.Empty(t, *measured)
	require.Equal(t, choices, again.Choices(layers()))
	require.Equal(t, choices, again.physical.Tuned(again.opts))

	made, err := again.Tune(t.Context(), layers())
	require.NoError(t, err)
	require.NotEmpty(t, *measured)
	for _, c := range made {
		require.Equal(t, c.Rule, c.Kernel, "where all take as long, the rule's")
	}
	require.Equal(t, made, again.physical.Tuned(again.opts))
}

// What was measured where some kernels could not be chosen, as without cooperative matrices, does not count where they can, nor the other way round.
func TestTuningIsOfTheKernelsThatThereAre(t *testing.T) {
	dir := t.TempDir()
	lesser, _ := openTuned(t, dir, nil, Options{})
	lesser.broken = map[string]bool{"matmul_subgroup_4": true, "matmul_subgroup_8": true, "matmul_tile_32": true}
	runLayers(t, lesser)
	without := lesser.Choices(layers())
	b, measured := openTuned(t, dir, nil, Options{})
	runLayers(t, b)
	require.NotEmpty(t, *measured)
	for i, c := range b.Choices(layers()) {
		require.NotEqual(t, without[i].Kernel, c.Kernel)
	}
	again, measured := openTuned(t, dir, nil, Options{})
	again.broken = lesser.broken
	runLayers(t, again)
	require.Empty(t, *measured)
	require.Equal(t, without, again.Choices(layers()))
}

// A kernel that computes something else is never taken, however fast it is: here one that writes zeros.
func TestTheWrongKernelIsNotChosen(t *testing.T) {
	asked := 0
	tuning := &Tuning{Measure: true, Software: true, Conform: func(b backend.Backend, n *graph.Node) error {
		if asked++; asked == 1 {
			return conformance.CheckKernel(b, n)
		}
		return nil // the kit is long, and others hold the real kernels against it
	}}
	b, _ := openTuned(t, t.TempDir(), map[string]float64{"wrong": 1e-6, "matmul_tile_32": 1e-3, "matmul_tile_32~1": 1e-3}, Options{Tuning: tuning})
	real := b.lower
	b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		if n.Op != graph.OpMatMul || d.chosen == nil {
			return real(d, n)
		}
		with, wrong := *d, false
		with.chosen = func(n *graph.Node, shape string, names []string) string {
			name := d.chosen(n, shape, append(names, "wrong"))
			wrong = name == "wrong"
			return name
		}
		list, err := real(&with, n)
		if wrong {
			return real(d, &graph.Node{Op: graph.OpFill, Out: n.Out, Attr: graph.FillAttr{}})
		}
		return list, err
	}
	runLayers(t, b)
	for _, c := range b.Choices(layers()) {
		require.True(t, strings.HasPrefix(c.Kernel, "matmul_tile_32"), c.Kernel)
		require.Equal(t, "wrong", c.Times[0].Kernel)
		require.Contains(t, c.Times[0].Refused, "matmul, ")
	}
	require.Equal(t, 2, asked, "verdicts are kept")
}

// What cannot be used is as good as no file: the rule decides, or all is measured again.
func TestTuningFiles(t *testing.T) {
	dir := t.TempDir()
	b, _ := openTuned(t, dir, nil, Options{})
	runLayers(t, b)
	path := b.tuner.file.path
	require.FileExists(t, path)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, b.physical.Tuned(b.opts))
	for name, content := range map[string][]byte{
		"cut off": good[:len(good)/2], "changed": append(append([]byte{}, good[:len(good)-5]...), "x   }"...), "empty": nil,
		"of other kernels": []byte(strings.Replace(string(good), kernelsHash(), "0000", 1)),
	} {
		require.NoError(t, os.WriteFile(path, content, 0o666))
		require.Empty(t, b.physical.Tuned(b.opts), name)
	}
	b, measured := openTuned(t, dir, nil, Options{})
	runLayers(t, b)
	require.NotEmpty(t, *measured)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, len(good), len(now))

	// Names that mean nothing, or not on this device, leave the choice to the rule.
	for _, name := range []string{"", "cuda", "matmul_tile_32/0", "matmul_tile_32/99", "matmul_tile_32~9", "matmul_tile_32~x", "matmul_subgroup_64"} {
		_, ok := b.caps.matMulNamed(product(graph.F32, 10, 10, 10), name)
		require.False(t, ok, name)
	}
	for _, c := range matMulAll()[:4] {
		if !b.caps.has(c.name) {
			continue
		}
		for _, parts := range []int{1, 2, 16} {
			got, ok := b.caps.matMulNamed(product(graph.F32, 10, 10, 10), matMulChoice{c, parts}.String())
			require.True(t, ok && got == matMulChoice{c, parts}, "%v", got)
		}
	}
}

// Nothing is measured where that was not asked for, where it could not be kept, and where there is no clock.
func TestWhatIsNotTuned(t *testing.T) {
	conform := func(backend.Backend, *graph.Node) error { return nil }
	for name, opts := range map[string]Options{
		"a driver on the CPU": {Tuning: &Tuning{Conform: conform, Measure: true}, CacheDir: t.TempDir()},
		"nothing is kept":     {Tuning: &Tuning{Conform: conform, Measure: true, Software: true}, NoCache: true},
		"no clock":            {Tuning: &Tuning{Conform: conform, Measure: true, Software: true}, CacheDir: t.TempDir(), Limits: "timestamps=off"},
		"nothing is measured": {Tuning: &Tuning{Conform: conform, Software: true}, CacheDir: t.TempDir()},
		"turned off":          {CacheDir: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			b := openTest(t, opts)
			if name == "a driver on the CPU" && b.physical.Kind != backend.Software {
				t.Skip("a GPU")
			}
			b.tuner.seconds = func(*Executable) (float64, error) { panic("measured") }
			runLayers(t, b)
			for _, c := range b.Choices(layers()) {
				require.Equal(t, c.Rule, c.Kernel)
				require.Equal(t, "not measured", c.Why)
			}
			files, err := filepath.Glob(filepath.Join(opts.CacheDir, "*.tune"))
			require.NoError(t, err)
			require.Empty(t, files)
			switch name {
			case "no clock":
				_, err := b.Tune(t.Context(), layers())
				require.ErrorIs(t, err, ErrNoTimestamps)
			case "turned off":
				_, err := b.Tune(t.Context(), layers())
				require.ErrorContains(t, err, "turned off")
			}
		})
	}
}

// Shapes for which there was no time have the rule's kernel in later runs too.
func TestTuningIsBounded(t *testing.T) {
	dir := t.TempDir()
	b, measured := openTuned(t, dir, map[string]float64{"matmul_tile_32": 0.5}, Options{})
	b.tuner.budget = -time.Second
	want := runLayers(t, b)
	require.Empty(t, *measured)
	again, measured := openTuned(t, dir, map[string]float64{"matmul_tile_32": 0.5}, Options{})
	require.Equal(t, want, runLayers(t, again))
	require.Empty(t, *measured)
	require.Contains(t, again.Choices(layers())[0].Why, "no time")
}

// A real measurement, and the kit on what it chose.
func TestTuneOnThisDevice(t *testing.T) {
	b := openTest(t, Options{Tuning: &Tuning{Conform: conformance.CheckKernel}})
	if b.physical.Limits.TimestampNanos == 0 {
		t.Skip("no timestamps")
	}
	programs := []*graph.Program{layers(), attentionCase{format: graph.F32, batch: 1, positions: 100, heads: 2, kv: 1, length: 32}.program()}
	choices, err := b.Tune(t.Context(), programs...)
	require.NoError(t, err)
	require.Len(t, choices, 5)
	for _, c := range choices {
		require.Greater(t, len(c.Times), 1)
		fastest := c.Times[0].Seconds
		for _, k := range c.Times {
			require.Positive(t, k.Seconds)
			require.Empty(t, k.Refused)
			require.GreaterOrEqual(t, k.Seconds*tuneGain, fastest/tuneGain)
		}
	}
	require.Equal(t, choices, b.Choices(programs...))
}

// Attention and its gradient have the tiles that were measured to be faster, each for itself.
func TestTilesOfAttentionAreTuned(t *testing.T) {
	p := attentionCase{format: graph.F32, batch: 2, positions: 70, heads: 4, kv: 2, length: 20, softCap: 5}.program()
	dir := t.TempDir()
	b, measured := openTuned(t, dir, map[string]float64{"attention_16": 0.5, "attention_grad": 0.5}, Options{})
	got, kernels := runOnce(t, b, p)
	require.Equal(t, []string{"attention", "attention_16", "attention_grad", "attention_grad_16"}, *measured)
	require.Equal(t, []string{"attention_16", "attention_delta_128, attention_grad_q, attention_grad_kv_64"}, kernels)
	for i, c := range b.Choices(p) {
		require.Equal(t, []string{"attention", "attention_grad"}[i], c.Op)
		require.Equal(t, "2 of 70, 4/2 heads of 20 capped f32", c.Shape)
		require.Equal(t, []string{"attention_16", "attention_grad"}[i], c.Kernel)
	}
	again, measured := openTuned(t, dir, nil, Options{})
	same, _ := runOnce(t, again, p)
	require.Equal(t, got, same)
	require.Empty(t, *measured)

	stats := attentionCase{format: graph.F32, batch: 2, positions: 70, heads: 4, kv: 2, length: 20, softCap: 5, stats: true}.program()
	_, kernels = runOnce(t, again, stats)
	require.Equal(t, "attention_stats_16", kernels[0], "a step that is diagnosed has the same tiles")

	little := openTest(t, Options{Tuning: &Tuning{}, CacheDir: dir, Limits: "shared=16K"})
	require.Empty(t, little.Choices(p), "there is no choice")
}

// Nobody waits for measurements that would be lost.
func TestTuneSaysThatNothingCanBeKept(t *testing.T) {
	dir := t.TempDir()
	b, measured := openTuned(t, dir, nil, Options{})
	require.NoError(t, os.Mkdir(b.tuner.file.path, 0o777))
	_, err := b.Tune(t.Context(), layers())
	require.ErrorContains(t, err, "what is measured cannot be kept")
	b.tuner.file.path = "" // as without a home
	_, err = b.Tune(t.Context(), layers())
	require.ErrorContains(t, err, "no folder to keep what is measured: set HOME")
	require.Empty(t, *measured)
}

// Ctrl-C ends it after a kernel, and keeps the shapes that are done.
func TestTuneEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	conform := func(backend.Backend, *graph.Node) error { return nil }
	seen := 0
	tuning := &Tuning{Conform: conform, Software: true, Progress: func(done, total int) {
		if seen = done; done == total-1 {
			cancel()
		}
	}}
	dir := t.TempDir()
	b, _ := openTuned(t, dir, nil, Options{Tuning: tuning})
	_, err := b.Tune(ctx, layers())
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, seen)
	choices := b.Choices(layers())
	require.Len(t, b.physical.Tuned(b.opts), len(choices)-1)
	require.Equal(t, "not measured", choices[len(choices)-1].Why)
}
