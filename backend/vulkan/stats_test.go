//go:build cgo

package vulkan

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/shaders"
	"github.com/vktrain/vktrain/train"
)

// openStats opens a device whose driver has pipeline statistics.
func openStats(t *testing.T, opts Options) *Backend {
	t.Helper()
	openTest(t, Options{}) // there is Vulkan, or this skips
	opts.Statistics, opts.Software, opts.NoCache = true, true, true
	b, err := Open(opts)
	if errors.Is(err, ErrNoStatistics) && os.Getenv("VKTRAIN_REQUIRE_STATISTICS") != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestPipelineStats(t *testing.T) {
	b := openStats(t, Options{})
	b.useArith()
	b.submit = nil // to run anything would be a crash
	stats, err := b.PipelineStats(chain(100, 3), chain(50, 1))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(stats), 2, "add and fill, once each whatever their sizes")
	for _, s := range stats {
		require.Equal(t, "arith", s.Kernel)
		require.Len(t, s.Constants, 2)
		require.Positive(t, s.Launches)
		t.Logf("%s %v (%s, subgroup %d): %v", s.Kernel, s.Constants, s.Executable, s.Subgroup, s.Statistics)
	}
}

func TestSpills(t *testing.T) {
	s := KernelStats{Statistics: []Statistic{{Name: "Spilled SGPRs", Value: 2}, {Name: "VGPRs", Value: 64}, {Name: "Spilled VGPRs", Value: 3}}}
	n, known := s.Spills()
	require.True(t, known)
	require.Equal(t, 5.0, n)
	vgprs, ok := s.Find("vgprs")
	require.True(t, ok)
	require.Equal(t, 64.0, vgprs)
	_, known = (&KernelStats{Statistics: []Statistic{{Name: "Instructions"}}}).Spills()
	require.False(t, known)
}

// everyProgram records what training, evaluation and generation run: each preset, and small models that between them take every axis of
// a model's config. Nothing of it gets memory, so that size is no matter.
func everyProgram(t *testing.T) []*graph.Program {
	t.Helper()
	var configs []model.Config
	for _, name := range model.PresetNames() {
		cfg, err := model.Preset(name)
		require.NoError(t, err)
		if cfg.NLayers = 1; cfg.VocabSize == 0 {
			cfg.VocabSize = 512
		}
		configs = append(configs, cfg)
	}
	base, _ := tinyModel()
	vary := func(change func(*model.Config)) {
		cfg := base
		cfg.VocabSize, cfg.DModel, cfg.HeadDim = 99, 96, 24
		change(&cfg)
		configs = append(configs, cfg)
	}
	for _, placement := range []string{"post", "pre", "peri", "olmo2", "none", "A+B+C"} {
		vary(func(c *model.Config) { c.Placement = placement })
	}
	for _, norm := range []string{model.QKNormNone, model.QKNormRMS, model.QKNormRMSFull, model.QKNormLayerNorm, model.QKNormL2} {
		vary(func(c *model.Config) { c.QKNorm, c.Norm, c.EmbedNorm = norm, model.NormLayer, true })
	}
	for _, mlp := range []string{model.MLPSwiGLU, model.MLPGELU, model.MLPReLU} {
		vary(func(c *model.Config) { c.MLP, c.Gain, c.AttnSoftcap, c.LogitSoftcap = mlp, model.GainFrozen, 30, 20 })
	}
	for _, dim := range []int{2, 16, 32, 64, 128, 256} {
		vary(func(c *model.Config) { c.HeadDim, c.Tied = dim, true })
	}
	var programs []*graph.Program
	add := func(p *graph.Program, err error) {
		require.NoError(t, err)
		programs = append(programs, p)
	}
	for _, cfg := range configs {
		// A sequence that is not a multiple of any tile, and logits of the widest vocabulary that a device with small bindings can see.
		o := train.ProgramOptions{Batch: 1, SeqLen: min(cfg.SeqLen, 250), MaxNorm: 1, ZLoss: 1e-4}
		add(train.StepProgram(cfg, o))
		add(train.AccumulateProgram(cfg, o))
		add(train.ApplyProgram(cfg, o))
		add(train.EvalProgram(cfg, o))
		add(train.LogitsProgram(cfg, o))
		for _, storage := range []graph.DType{graph.BF16, graph.F16} {
			o.Storage = storage
			add(train.StepProgram(cfg, o))
		}
		o.Masters = graph.BF16
		add(train.StepProgram(cfg, o))
	}
	return append(programs, unused(t))
}

// unused has the operators and shapes that no program above uses.
func unused(t *testing.T) *graph.Program {
	b := graph.NewBuilder()
	x := b.Input("x", graph.F32, 7, 33)
	for _, to := range []graph.DType{graph.BF16, graph.F16} {
		b.Output(to.String(), b.Cast(b.Cast(x, to), graph.F32))
		b.Output(to.String()+" bits", b.Cast(x, to))
		y := b.Cast(b.Input("y "+to.String(), graph.F32, 8, 32), to)
		b.Output(to.String()+" sum", b.Add(y, b.Fill(b.Temp("ones", to, 8, 32), 1), nil))
	}
	// Few rows and a long inner dimension, as in generation by a large model.
	b.Output("few", b.Linear(b.Input("few", graph.F32, 3, 2048), b.Input("wide", graph.F32, 300, 2048), nil))
	b.Output("softmax", b.Softmax(x))
	diagnostics(b, x)
	diagnostics(b, b.Cast(x, graph.BF16))
	dx, err := b.Grad(b.Sum(b.Softmax(x), nil), b.Fill(b.Temp("one", graph.F32, 1), 1), []*graph.Value{x}, nil)
	require.NoError(t, err)
	b.Output("dx", dx[0])
	for _, dim := range []int{2, 32, 64, 128, 256} {
		q := b.Input(fmt.Sprint("q ", dim), graph.F32, 1, 100, 2*dim)
		_, _, top, entropy := b.AttentionStats(q, q, q, nil, graph.AttentionAttr{Heads: 2, KVHeads: 2, HeadDim: dim, Scale: 0.1, SoftCap: 30})
		b.Output(fmt.Sprint("top ", dim), b.Add(top, entropy, nil))
	}
	return b.Build("unused")
}

// peakLaunches are those of the loops that measure the device, and of its self-test.
func peakLaunches(t *testing.T, b *Backend) []launch {
	fma, err := lowerProgram(b.caps, fmaProgram(1), lowerFMA(1, fmaPush{}), b.lookup)
	require.NoError(t, err)
	triad, err := lowerProgram(b.caps, triadProgram(4), lowerTriad(1), b.lookup)
	require.NoError(t, err)
	launches := append(fma, triad...)
	for _, op := range subgroupTestOps {
		if *op.caps(b.caps) {
			l, err := lowerProgram(b.caps, subgroupTestProgram(), lowerSubgroupTest(op.name, 0), b.lookup)
			require.NoError(t, err)
			launches = append(launches, l...)
		}
	}
	return launches
}

// A kernel that needs more registers than there are keeps them in memory, many times slower: on AMD's own compiler, none does. This is run on
// RADV without hardware for each generation of GPUs.
func TestNoKernelSpills(t *testing.T) {
	b := openStats(t, Options{})
	var stats []KernelStats
	for _, b := range []*Backend{b, openStats(t, Options{Limits: leastDevice})} {
		b.submit = nil
		launches := append(peakLaunches(t, b), narrowLaunches(t, b)...)
		launches = append(launches, matrixLaunches(t, b)...)
		for _, p := range everyProgram(t) {
			l, err := b.mayLaunch(p)
			require.NoError(t, err)
			launches = append(launches, l...)
		}
		list, err := b.launchStats(launches)
		require.NoError(t, err)
		stats = append(stats, list...)
	}
	for _, limits := range []string{"range=1M", leastDevice + ",range=1M"} { // columns of what is too large to be bound are copied
		b := openStats(t, Options{Limits: limits})
		b.submit = nil
		g := graph.NewBuilder()
		g.Output("y", g.Linear(g.Input("x", graph.F32, 64, 256), g.Input("w", graph.F32, 2048, 256), nil))
		list, err := b.PipelineStats(g.Build("large"))
		require.NoError(t, err)
		stats = append(stats, list...)
	}
	told := 0
	seen := map[string]bool{}
	for _, s := range stats {
		seen[s.Kernel] = true
		n, known := s.Spills()
		if !known {
			continue
		}
		told++
		scratch, _ := s.Find("Scratch size")
		if n > 0 || scratch > 0 {
			t.Errorf("%s %v spills %v registers, %v bytes of scratch memory", s.Kernel, s.Constants, n, scratch)
		}
	}
	for _, k := range shaders.All() {
		// Those are for devices that are a CPU, and for devices with cooperative matrices.
		if !strings.HasPrefix(k.Name, "matmul_subgroup_") && !strings.HasPrefix(k.Name, "matmul_matrix_") {
			require.True(t, seen[k.Name], "no program here uses kernel %s", k.Name)
		}
	}
	if os.Getenv("VKTRAIN_REQUIRE_STATISTICS") == "1" {
		require.Equal(t, len(stats), told, "the driver tells of spills")
	}
	t.Logf("%d pipelines of %d kernels on %s", len(stats), len(seen), b.Info().Name)
	t.Log("\n" + table(stats))
}

// table prints the worst of each kernel: registers, shared memory, code, and how many subgroups a SIMD unit can hold.
func table(stats []KernelStats) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-24s %9s %6s %6s %6s %9s %9s\n", "kernel", "variants", "VGPRs", "SGPRs", "LDS", "code", "subgroups")
	for i := 0; i < len(stats); {
		k := i
		worst := map[string]float64{"subgroups per simd": math.Inf(1)}
		for ; k < len(stats) && stats[k].Kernel == stats[i].Kernel; k++ {
			for _, s := range stats[k].Statistics {
				name := strings.ToLower(s.Name)
				if name == "subgroups per simd" {
					worst[name] = min(worst[name], s.Value)
				} else {
					worst[name] = max(worst[name], s.Value)
				}
			}
		}
		fmt.Fprintf(&out, "%-24s %9d %6.0f %6.0f %6.0f %9.0f %9.0f\n", stats[i].Kernel, k-i,
			worst["vgprs"], worst["sgprs"], worst["lds size"], worst["code size"], worst["subgroups per simd"])
		i = k
	}
	return out.String()
}

// narrowLaunches are those of every tile for 16-bit operands, in each orientation, aligned or not.
func narrowLaunches(t *testing.T, b *Backend) []launch {
	var launches []launch
	for _, at := range []graph.MatMulAttr{{}, {TransB: true}, {TransA: true}} {
		for _, size := range []int{2048, 1022} {
			for _, format := range []graph.DType{graph.F16, graph.BF16} {
				for _, k := range append(slices.Clone(matMulTiles), matMulSkinny) {
					if !b.caps.has(k.name) {
						continue
					}
					g := graph.NewBuilder()
					g.Output("c", g.MatMul(g.Input("a", format, size, size), g.Input("b", format, size, size), nil, nil, at))
					l, err := lowerProgram(b.caps, g.Build("product"), func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
						return d.matMul(n, matMulChoice{k, 1}), nil
					}, b.lookup)
					require.NoError(t, err)
					launches = append(launches, l...)
				}
			}
		}
	}
	return launches
}

// matrixLaunches are those of every kernel of cooperative matrices, in each orientation, aligned or not.
func matrixLaunches(t *testing.T, b *Backend) []launch {
	var launches []launch
	for _, at := range []graph.MatMulAttr{{}, {TransB: true}, {TransA: true}} {
		for _, size := range []int{2048, 1023} {
			for _, format := range []graph.DType{graph.F16, graph.BF16} {
				g := graph.NewBuilder()
				g.Output("c", g.MatMul(g.Input("a", format, size, size), g.Input("b", format, size, size), nil, nil, at))
				p := g.Build("product")
				for _, k := range b.caps.matrixKernels(p.Nodes()[0]) {
					l, err := lowerProgram(b.caps, p, func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
						return d.matMul(n, matMulChoice{k, 1})[:1], nil
					}, b.lookup)
					require.NoError(t, err)
					launches = append(launches, l...)
				}
			}
		}
	}
	return launches
}

// On AMD's compiler the kernels of cooperative matrices really use the matrix unit, and keep their sums in registers.
func TestMatrixKernelsUseTheMatrixUnit(t *testing.T) {
	b := openStats(t, Options{})
	if !strings.Contains(b.Device().Driver, "radv") || len(b.caps.matrices) == 0 {
		require.NotEqual(t, "1", os.Getenv("VKTRAIN_REQUIRE_MATRICES"), "%s has no cooperative matrices", b.Info().Name)
		t.Skip(b.Info().Name, " is no device of RADV with cooperative matrices")
	}
	b.submit = nil
	launches := matrixLaunches(t, b)
	require.NotEmpty(t, launches)
	stats, err := b.launchStats(launches)
	require.NoError(t, err)
	for _, s := range stats {
		n, known := s.Spills()
		require.True(t, known)
		vgprs, _ := s.Find("VGPRs")
		lds, _ := s.Find("LDS size")
		waves, _ := s.Find("Subgroups per SIMD")
		code, _ := s.Find("Code size")
		t.Logf("%-24s %v of %d: %v VGPRs, %v LDS, %v code, %v waves a SIMD, %v spills", s.Kernel, s.Constants, s.Subgroup, vgprs, lds, code, waves, n)
		require.Zero(t, n, "%s %v spills", s.Kernel, s.Constants)
	}
	for _, l := range launches {
		l.key.disassembly = true
		pipelines, err := b.pipelines.get([]pipelineKey{l.key})
		require.NoError(t, err)
		code, err := b.dev.Disassembly(pipelines[l.key].handle)
		require.NoError(t, err)
		wmma := strings.Count(code, "v_wmma_f32_16x16x16_f16")
		want := int(l.spec[9] * l.spec[10] * 32 / l.spec[8]) // SM x SN matrices, by the steps of a tile
		require.GreaterOrEqual(t, wmma, want, "%s %v: the matrix unit's instructions in\n%s", l.kernel, l.spec, code)
		t.Logf("%s %v of %d: %d wmma, %d ds_load_b128, %d of fewer bits, %d ds_store", l.kernel, l.spec, l.subgroupSize, wmma,
			strings.Count(code, "ds_load_b128"), strings.Count(code, "ds_load")-strings.Count(code, "ds_load_b128"), strings.Count(code, "ds_store"))
	}
}
