package train

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// diagnosedRun takes steps, and diagnoses those that are told. It returns what each gave and every variable after the last.
func diagnosedRun(t *testing.T, dev backend.Backend, m model.Config, o ProgramOptions, parts, steps int, diagnose func(step int) bool) ([]Scalars, map[string][]byte) {
	t.Helper()
	return diagnosedRunOf(t, dev, m, o, parts, steps, diagnose, initial)
}

func diagnosedRunOf(t *testing.T, dev backend.Backend, m model.Config, o ProgramOptions, parts, steps int, diagnose func(step int) bool,
	initial func(p model.Param) []byte) ([]Scalars, map[string][]byte) {
	t.Helper()
	const batch = 4
	o.Batch = batch / parts
	programs, err := StepperPrograms(m, o, parts)
	require.NoError(t, err)
	d := &Diagnostics{}
	o.Diagnostics = d
	diagnosed, err := StepperPrograms(m, o, parts)
	require.NoError(t, err)
	store, err := dev.NewStore(Vars(programs...))
	require.NoError(t, err)
	masters := map[string]bool{}
	for _, v := range store.Vars() {
		masters[v.Name] = v.DType == graph.BF16
	}
	for _, p := range m.Params() {
		raw := initial(p)
		if masters[p.Name] {
			raw = toBF16(raw)
		}
		require.NoError(t, store.Write(p.Name, raw))
	}
	s, err := NewDiagnosingStepper(dev, store, programs, diagnosed, d)
	require.NoError(t, err)
	s.SetLossScale(LossScale{Scale: 64}, 1000) // in f16; more than this overflows
	var all []Scalars
	for step := 1; step <= steps; step++ {
		if diagnose(step) {
			s.Diagnose()
		}
		before, err := s.Submit(split(rows(m, batch, step), parts), testHyper(step))
		require.NoError(t, err)
		if before != nil {
			all = append(all, *before)
		}
	}
	last, err := s.Drain()
	require.NoError(t, err)
	all = append(all, *last)
	vars := map[string][]byte{}
	for _, v := range store.Vars() {
		vars[v.Name] = make([]byte, v.Bytes())
		require.NoError(t, store.Read(v.Name, vars[v.Name]))
	}
	require.NoError(t, s.Close())
	require.NoError(t, store.Close())
	return all, vars
}

// toBF16 keeps the upper halves of float32s.
func toBF16(raw []byte) []byte {
	var out []byte
	for i := 0; i < len(raw); i += 4 {
		out = append(out, raw[i+2], raw[i+3])
	}
	return out
}

func never(int) bool  { return false }
func always(int) bool { return true }

// A diagnosed step is the step that it is without: the same losses, parameters and moments, bit for bit.
func TestDiagnosedStepsHaveTheSameBits(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	for name, c := range map[string]struct {
		o     ProgramOptions
		parts int
	}{
		"f32":               {ProgramOptions{MaxNorm: 1, ZLoss: 1e-3}, 1},
		"accumulation":      {ProgramOptions{MaxNorm: 1}, 2},
		"bf16, recomputed":  {ProgramOptions{MaxNorm: 1, Storage: graph.BF16, Masters: graph.BF16, Recompute: model.RecomputeBlock}, 1},
		"f16, chunks":       {ProgramOptions{Storage: graph.F16, ChunkRows: model.RowsUnit}, 1},
		"attention's again": {ProgramOptions{MaxNorm: 1, Recompute: model.RecomputeAttention}, 2},
	} {
		for i, placement := range []string{"peri", "pre", "post", "A+B+C", "olmo2"} {
			t.Run(name+" "+placement, func(t *testing.T) {
				m := smallModel(t)
				m.Placement = placement
				if i%2 == 0 {
					m.Norm, m.Tied = model.NormLayer, !m.Tied
				}
				plain, before := diagnosedRun(t, dev, m, c.o, c.parts, 4, never)
				seen, after := diagnosedRun(t, dev, m, c.o, c.parts, 4, func(step int) bool { return step != 3 })
				require.Equal(t, before, after)
				for i := range seen {
					require.Equal(t, i != 2, seen[i].Diagnosis != nil)
					seen[i].Diagnosis = nil
				}
				require.Equal(t, fmt.Sprint(plain), fmt.Sprint(seen)) // some are NaN
			})
		}
	}
}

// flat lists every number of a Diagnosis with its path.
func flat(t *testing.T, d *Diagnosis) map[string]float64 {
	t.Helper()
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(raw, &tree))
	list := map[string]float64{}
	var walk func(path string, x any)
	walk = func(path string, x any) {
		switch x := x.(type) {
		case map[string]any:
			for k, v := range x {
				walk(path+"."+k, v)
			}
		case []any:
			for i, v := range x {
				walk(fmt.Sprintf("%s.%d", path, i), v)
			}
		case float64:
			list[path] = x
		case nil:
			list[path] = math.NaN()
		}
	}
	walk("", tree)
	return list
}

// diagnosedModels are small models with each choice of those that a Diagnosis looks at.
func diagnosedModels(t *testing.T) map[string]model.Config {
	t.Helper()
	all := map[string]model.Config{}
	add := func(name string, change func(m *model.Config)) {
		m := smallModel(t)
		change(&m)
		require.NoError(t, m.Validate(), name)
		all[name] = m.Normalize()
	}
	for _, placement := range []string{"peri", "pre", "post", "olmo2", "A+B+C"} {
		add(placement, func(m *model.Config) { m.Placement = placement })
		add(placement+" LayerNorm", func(m *model.Config) {
			m.Placement, m.Norm, m.Tied, m.EmbedNorm = placement, model.NormLayer, !m.Tied, true
		})
	}
	for _, qk := range []string{model.QKNormNone, model.QKNormRMSFull, model.QKNormLayerNorm, model.QKNormL2} {
		add("qk_norm "+qk, func(m *model.Config) { m.QKNorm = qk })
	}
	add("frozen gains", func(m *model.Config) { m.Gain = model.GainFrozen })
	add("gelu", func(m *model.Config) { m.MLP = model.MLPGELU })
	return all
}

// The CPU's Diagnosis is that of float64 arithmetic.
func TestDiagnosisAgreesWithFloat64(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	for name, m := range diagnosedModels(t) {
		for _, parts := range []int{1, 2} {
			exact, _ := diagnosedRun(t, reference.NewBackend(), m, ProgramOptions{MaxNorm: 1}, parts, 2, always)
			for _, o := range []ProgramOptions{{MaxNorm: 1}, {MaxNorm: 1, Recompute: model.RecomputeBlock}} {
				got, _ := diagnosedRun(t, dev, m, o, parts, 2, always)
				for step := range exact {
					want, have := flat(t, exact[step].Diagnosis), flat(t, got[step].Diagnosis)
					require.Len(t, have, len(want))
					for path, w := range want {
						// Cosines of tensors that are nearly at a right angle have the error of their sizes' product.
						require.InDelta(t, w, have[path], 2e-4*math.Abs(w)+1e-6, "%s, %d parts, %s, step %d: %s", name, parts, o.Recompute, step+1, path)
					}
				}
			}
		}
	}
}

// In formats of 16 bits a Diagnosis is what it is in float32 but for their rounding, whatever the gradients were multiplied by: bf16 has 8 bits, f16 11.
func TestDiagnosisInNarrowFormats(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	for _, name := range []string{"peri", "pre", "olmo2 LayerNorm"} {
		m := diagnosedModels(t)[name]
		for _, parts := range []int{1, 2} {
			exact, _ := diagnosedRun(t, dev, m, ProgramOptions{MaxNorm: 1}, parts, 1, always)
			for format, within := range map[graph.DType]float64{graph.BF16: 0.1, graph.F16: 0.0125} {
				got, _ := diagnosedRun(t, dev, m, ProgramOptions{MaxNorm: 1, Storage: format}, parts, 1, always)
				want, have := flat(t, exact[0].Diagnosis), flat(t, got[0].Diagnosis)
				require.Len(t, have, len(want))
				for path, w := range want {
					if !strings.Contains(path, "update_") { // the first of AdamW is a gradient over its size: what is tiny is rounded to another sign
						require.InDelta(t, w, have[path], within*math.Abs(w)+within/20, "%s, %d parts, %s: %s", name, parts, format, path)
					}
				}
				require.InEpsilon(t, float64(exact[0].Diagnosis.Bound.Bound), float64(got[0].Diagnosis.Bound.Bound), within)
			}
		}
	}
}

// A step whose activations or gradients are not finite has a line of metrics that is JSON, with null for what is not finite.
func TestDiagnosisOfADivergedStepIsJSON(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	for name, m := range diagnosedModels(t) {
		for _, o := range []ProgramOptions{{MaxNorm: 1}, {Storage: graph.F16}} {
			for _, parts := range []int{1, 2} {
				for _, weight := range []float32{float32(math.NaN()), float32(math.Inf(1)), 1e30} {
					raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(weight))
					spoiled, _ := diagnosedRunOf(t, dev, m, o, parts, 2, always, func(p model.Param) []byte {
						x := initial(p)
						if p.Name == "model.layers.1.mlp.down_proj.weight" {
							copy(x, raw)
						}
						return x
					})
					for i, s := range spoiled {
						var line bytes.Buffer
						require.NoError(t, WriteMetrics(&line, Metrics{Step: i + 1, Loss: s.Loss, GradNorm: s.GradNorm, Diagnosis: s.Diagnosis}))
						require.True(t, json.Valid(line.Bytes()))
						read, err := ReadMetrics(&line)
						require.NoError(t, err)
						require.Equal(t, fmt.Sprint(flat(t, s.Diagnosis)), fmt.Sprint(flat(t, read[0].Diagnosis)), name) // some are NaN
						if last := s.Diagnosis.Layers[1].MLP; weight != 1e30 || o.Storage == graph.F16 {
							require.Positive(t, float64(last.Overflow), "%s", name)
						} else {
							require.False(t, math.IsNaN(float64(last.F16Share)), "%s, %s", name, read[0].Diagnosis.Layers[1].MLP.Largest[:3])
						}
						require.Zero(t, float64(s.Diagnosis.Embedding.Overflow), "%s, %g: what comes before is measured as ever", name, weight)
						if i == 0 {
							require.False(t, math.IsNaN(float64(s.Diagnosis.Layers[0].MLP.Variance)), "%s", name)
						}
					}
				}
			}
		}
	}
}

// values runs a step's forward pass and a step with Grads in float64: the values that a Diagnosis is of, by name, from first principles.
func values(t *testing.T, m model.Config, o ProgramOptions) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	run := func(p *graph.Program) {
		r := reference.New(p)
		batch := rows(m, o.Batch, 1)
		set := func(name string, raw []byte, d graph.DType) {
			x := make([]float64, len(raw)/d.Size())
			reference.Decode(x, raw, d)
			if p.Input(name) != nil || slices.ContainsFunc(m.Params(), func(q model.Param) bool { return q.Name == name }) {
				r.Set(name, x)
			}
			all[name] = x
		}
		for _, q := range m.Params() {
			set(q.Name, initial(q), graph.F32)
		}
		set(InputTokens, intBytes(batch.Tokens), graph.I32)
		set(InputTargets, intBytes(batch.Targets), graph.I32)
		set(InputInvCount, appendFloat(nil, 1/float64(batch.kept())), graph.F32)
		set(InputHyper, testHyper(1).bytes(), graph.F32)
		for _, v := range p.Vars() {
			if isMoment(v) {
				r.Set(v.Name, make([]float64, v.Elems()))
			}
		}
		require.NoError(t, r.Run())
		for _, out := range p.Outputs() {
			all[out.Name] = r.Get(out.Name)
		}
		if p.Output(OutputLoss) != nil {
			for _, q := range m.Params() {
				all["after "+q.Name] = r.Get(q.Name)
			}
		}
	}
	b := graph.NewBuilder()
	m.ObservedTrunk(b, b.Input(InputTokens, graph.I32, o.Batch, m.SeqLen), graph.F32, graph.F32, func(f *model.Forward, i int) {
		for name, s := range map[string]model.Module{"self_attn": f.Blocks[i].Attention, "mlp": f.Blocks[i].MLP} {
			b.Output(fmt.Sprint(i, name, "stream"), s.Stream)
			b.Output(fmt.Sprint(i, name, "output"), s.OutputAlone())
			if x := s.NormedAlone(); x != nil {
				b.Output(fmt.Sprint(i, name, "normed"), x)
			}
		}
	})
	run(b.Build("trunk"))
	_, o, err := o.check(m)
	require.NoError(t, err)
	last := newPass(m, o, 0)
	mlp := last.f.Blocks[m.NLayers-1].MLP
	last.loss.Wrt = []*graph.Value{mlp.Sum}
	grads, err := last.backward(nil, nil)
	require.NoError(t, err)
	last.b.Output("bound.h", mlp.Inner)
	last.b.Output("bound.a", mlp.OutputAlone())
	last.b.Output("bound.do", grads[len(grads)-1])
	run(last.b.Build("bound"))
	o.Grads = true
	p, err := StepProgram(m, o)
	require.NoError(t, err)
	run(p)
	return all
}

func testHyper(step int) Hyper {
	return Hyper{LR: 0.01, Beta1: 0.9, Beta2: 0.95, Eps: 1e-2, WeightDecay: 0.1, Step: step, Seed: 7}
}

func product(x, y []float64) float64 {
	s := 0.0
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

func length(x []float64) float64 { return math.Sqrt(product(x, x)) }

// meanVariance is over the rows of d elements, of the variance in each.
func meanVariance(x []float64, d int) float64 {
	sum := 0.0
	for row := range slices.Chunk(x, d) {
		mean, square := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(d)
		}
		for _, v := range row {
			square += (v - mean) * (v - mean) / float64(d)
		}
		sum += square
	}
	return sum / float64(len(x)/d)
}

// rounded is what is left of a backend's digits: it keeps values in float32, with a relative error of 6e-8 each, which some hundred nodes add up and norms of small
// rows multiply.
const rounded = 1e-5

func checkStream(t *testing.T, what string, s Stream, x []float64, d int) {
	t.Helper()
	require.InEpsilon(t, meanVariance(x, d), float64(s.Variance), rounded, what)
	magnitudes := make([]float64, len(x))
	for i, v := range x {
		magnitudes[i] = math.Abs(v)
	}
	slices.Sort(magnitudes)
	slices.Reverse(magnitudes)
	require.Len(t, s.Largest, min(100, len(x)), what)
	for i, v := range s.Largest {
		require.InDelta(t, magnitudes[i], float64(v), rounded*magnitudes[0], what)
	}
	require.InEpsilon(t, magnitudes[0]/65504, float64(s.F16Share), rounded)
	require.Zero(t, s.Overflow, what)
}

// A Diagnosis is what its comments say, worked out here from whole tensors.
func TestDiagnosisIsWhatItSays(t *testing.T) {
	for name, m := range diagnosedModels(t) {
		t.Run(name, func(t *testing.T) {
			o := ProgramOptions{Batch: 4, MaxNorm: 1}
			steps, _ := diagnosedRun(t, reference.NewBackend(), m, o, 1, 1, always)
			d, all := steps[0].Diagnosis, values(t, m, o)
			checkStream(t, "embedding", d.Embedding, all["act.hidden.0"], m.DModel)
			checkStream(t, "final", d.Final, all["act.final"], m.DModel)
			require.Len(t, d.Layers, m.NLayers)
			for i, l := range d.Layers {
				for name, s := range map[string]Sublayer{"self_attn": l.Attention, "mlp": l.MLP} {
					checkStream(t, name, s.Stream, all[fmt.Sprint(i, name, "stream")], m.DModel)
					require.InEpsilon(t, meanVariance(all[fmt.Sprint(i, name, "output")], m.DModel), float64(s.Output), rounded)
					normed := all[fmt.Sprint(i, name, "normed")]
					require.Equal(t, normed != nil, s.Normed != nil)
					if normed != nil {
						require.InEpsilon(t, meanVariance(normed, m.DModel), float64(*s.Normed), rounded)
					}
				}
				checkStream(t, "the layer's end", l.MLP.Stream, all[fmt.Sprintf("act.hidden.%d", i+1)], m.DModel)
				checkAngle(t, l, all[fmt.Sprintf("act.hidden.%d", i)], all[fmt.Sprintf("act.hidden.%d", i+1)], m.DModel)
				scale := 1 / math.Sqrt(float64(m.HeadDim))
				if m.QKNorm == model.QKNormL2 {
					scale = all[fmt.Sprintf("model.layers.%d.self_attn.qk_scale", i)][0]
				}
				checkAttention(t, l.Logits, m, o.Batch, scale, all[fmt.Sprintf("act.layers.%d.q_rope", i)], all[fmt.Sprintf("act.layers.%d.k_rope", i)])
			}
			checkParameters(t, d, m, all)
			checkBound(t, d, m, all)
		})
	}
}

func checkAngle(t *testing.T, l LayerDiagnosis, x, y []float64, d int) {
	t.Helper()
	sum := 0.0
	for r := 0; r < len(x); r += d {
		a, b := x[r:r+d], y[r:r+d]
		sum += math.Acos(product(a, b)/(length(a)*length(b))) / math.Pi
	}
	require.InEpsilon(t, sum/float64(len(x)/d), float64(l.Angle), rounded)
}

// checkAttention goes over the whole softmax of each row.
func checkAttention(t *testing.T, got Attention, m model.Config, batch int, scale float64, q, k []float64) {
	t.Helper()
	largest, entropy, oneHot, several, all := math.Inf(-1), 0.0, 0.0, 0.0, 0.0
	for b := range batch {
		for h := range m.NHeads {
			for i := range m.SeqLen {
				head := func(x []float64, t, h, heads int) []float64 {
					return x[((b*m.SeqLen+t)*heads+h)*m.HeadDim:][:m.HeadDim]
				}
				p, total := make([]float64, i+1), 0.0
				for j := range p {
					logit := product(head(q, i, h, m.NHeads), head(k, j, h*m.NKVHeads/m.NHeads, m.NKVHeads)) * scale
					largest = max(largest, logit)
					p[j] = math.Exp(logit)
					total += p[j]
				}
				for j := range p {
					p[j] /= total
					entropy -= p[j] * math.Log(p[j])
				}
				all++
				if i > 0 {
					several++
					if slices.Max(p) >= 0.99 {
						oneHot++
					}
				}
			}
		}
	}
	require.InEpsilon(t, largest, float64(got.LargestLogit), rounded)
	require.InEpsilon(t, entropy/all, float64(got.Entropy), rounded)
	require.InDelta(t, oneHot/several, float64(got.OneHot), 1e-9)
}

func checkParameters(t *testing.T, d *Diagnosis, m model.Config, all map[string][]float64) {
	t.Helper()
	squares, gains := map[int]float64{}, map[int]int{}
	for _, p := range m.Params() {
		layer, name := layerOf(p.Name)
		group := d.Outside
		if layer >= 0 {
			group = d.Layers[layer].Parameters
		}
		got, ok := group.Kinds[name]
		require.True(t, ok, p.Name)
		grad, before, after := all[PrefixGrad+p.Name], all[p.Name], all["after "+p.Name]
		squares[layer] += product(grad, grad)
		update := make([]float64, len(before))
		for i := range update {
			update[i] = after[i] - before[i]
		}
		require.InEpsilon(t, length(grad), float64(got.GradNorm), rounded, p.Name)
		require.InEpsilon(t, length(before), float64(got.Norm), rounded, p.Name)
		require.InEpsilon(t, length(update)/length(before), float64(got.UpdateRatio), rounded, p.Name)
		require.InDelta(t, product(update, before)/length(update)/length(before), float64(got.UpdateCos), rounded, p.Name)
		if p.Role.IsMatrix() {
			continue
		}
		list := d.Gains
		if layer >= 0 {
			list = d.Layers[layer].Gains
		}
		g := list[gains[layer]]
		gains[layer]++
		require.Equal(t, name, g.Name)
		sum := 0.0
		for _, v := range before {
			sum += v
		}
		require.InEpsilon(t, sum/float64(len(before)), float64(g.Mean), rounded)
		require.InEpsilon(t, slices.Min(before), float64(g.Min), rounded)
		require.InEpsilon(t, slices.Max(before), float64(g.Max), rounded)
	}
	require.Len(t, d.Gains, gains[-1])
	require.InEpsilon(t, math.Sqrt(squares[-1]), float64(d.Outside.GradNorm), rounded)
	for i, l := range d.Layers {
		require.Len(t, l.Gains, gains[i])
		require.InEpsilon(t, math.Sqrt(squares[i]), float64(l.GradNorm), rounded)
	}
}

// Which steps are diagnosed changes nothing else of a run, and their lines of metrics.jsonl are read as they were written.
func TestARunIsDiagnosed(t *testing.T) {
	plain, _, _ := trainAll(t, smallRun(t, "diagnostics_every=0"))
	for every, want := range map[string][]int{"0": nil, "4": {1, 4, 6}, "-1": {1, 6}, "1": {1, 2, 3, 4, 5, 6}} {
		all, _, _ := trainAll(t, smallRun(t, "diagnostics_every="+every))
		var lines bytes.Buffer
		for _, m := range all {
			require.NoError(t, WriteMetrics(&lines, m))
		}
		read, err := ReadMetrics(&lines)
		require.NoError(t, err)
		var steps []int
		for i, m := range all {
			require.Equal(t, m.Diagnosis, read[i].Diagnosis)
			if m.Diagnosis != nil {
				steps = append(steps, m.Step)
				require.Positive(t, m.Diagnosis.Bound.Bound)
			}
			m.Diagnosis = nil
			require.Equal(t, plain[i], m)
		}
		require.Equal(t, want, steps, every)
	}
	_, err := Load([]Assignment{{Key: "diagnostics_every", Value: "2000000000"}})
	require.ErrorContains(t, err, "diagnostics_every: 2000000000 is too large")
}
