package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
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
		for _, placement := range []string{"peri", "pre", "post", "A+B+C"} {
			t.Run(name+" "+placement, func(t *testing.T) {
				m := smallModel(t)
				m.Placement = placement
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

// The CPU's Diagnosis is that of float64 arithmetic.
func TestDiagnosisAgreesWithFloat64(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	for _, placement := range []string{"peri", "pre", "post"} {
		for _, parts := range []int{1, 2} {
			m := smallModel(t)
			m.Placement = placement
			exact, _ := diagnosedRun(t, reference.NewBackend(), m, ProgramOptions{MaxNorm: 1}, parts, 2, always)
			got, _ := diagnosedRun(t, dev, m, ProgramOptions{MaxNorm: 1}, parts, 2, always)
			for step := range exact {
				want, have := flat(t, exact[step].Diagnosis), flat(t, got[step].Diagnosis)
				require.Len(t, have, len(want))
				for path, w := range want {
					// Cosines of tensors that are nearly at a right angle have the error of their sizes' product.
					require.InDelta(t, w, have[path], 2e-4*math.Abs(w)+1e-6, "%s, %d parts, step %d: %s", placement, parts, step+1, path)
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

func checkStream(t *testing.T, what string, s Stream, x []float64, d int) {
	t.Helper()
	require.InEpsilon(t, meanVariance(x, d), float64(s.Variance), 1e-6, what)
	magnitudes := make([]float64, len(x))
	for i, v := range x {
		magnitudes[i] = math.Abs(v)
	}
	slices.Sort(magnitudes)
	slices.Reverse(magnitudes)
	require.Len(t, s.Largest, min(100, len(x)), what)
	for i, v := range s.Largest {
		require.InDelta(t, magnitudes[i], float64(v), 1e-6*magnitudes[0], what)
	}
	require.Zero(t, s.Overflow, what)
}

// A Diagnosis is what its comments say, worked out here from whole tensors.
func TestDiagnosisIsWhatItSays(t *testing.T) {
	for _, placement := range []string{"peri", "pre", "post", "A+B+C"} {
		t.Run(placement, func(t *testing.T) {
			m := smallModel(t)
			m.Placement = placement
			o := ProgramOptions{Batch: 4, MaxNorm: 1}
			steps, _ := diagnosedRun(t, reference.NewBackend(), m, o, 1, 1, always)
			d, all := steps[0].Diagnosis, values(t, m, o)
			checkStream(t, "embedding", d.Embedding, all["act.hidden.0"], m.DModel)
			checkStream(t, "final", d.Final, all["act.final"], m.DModel)
			require.Len(t, d.Layers, m.NLayers)
			for i, l := range d.Layers {
				for name, s := range map[string]Sublayer{"self_attn": l.Attention, "mlp": l.MLP} {
					checkStream(t, name, s.Stream, all[fmt.Sprint(i, name, "stream")], m.DModel)
					require.InEpsilon(t, meanVariance(all[fmt.Sprint(i, name, "output")], m.DModel), float64(s.Output), 1e-6)
					normed := all[fmt.Sprint(i, name, "normed")]
					require.Equal(t, normed != nil, s.Normed != nil)
					if normed != nil {
						require.InEpsilon(t, meanVariance(normed, m.DModel), float64(*s.Normed), 1e-6)
					}
				}
				checkStream(t, "the layer's end", l.MLP.Stream, all[fmt.Sprintf("act.hidden.%d", i+1)], m.DModel)
				checkAngle(t, l, all[fmt.Sprintf("act.hidden.%d", i)], all[fmt.Sprintf("act.hidden.%d", i+1)], m.DModel)
				checkAttention(t, l.Logits, m, o.Batch, all[fmt.Sprintf("act.layers.%d.q_rope", i)], all[fmt.Sprintf("act.layers.%d.k_rope", i)])
			}
			checkParameters(t, d, m, all)
			require.NotNil(t, d.Bound)
			require.Less(t, float64(d.Bound.GradNorm), float64(d.Bound.Bound))
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
	require.InEpsilon(t, sum/float64(len(x)/d), float64(l.Angle), 1e-6)
}

// checkAttention goes over the whole softmax of each row.
func checkAttention(t *testing.T, got Attention, m model.Config, batch int, q, k []float64) {
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
					logit := product(head(q, i, h, m.NHeads), head(k, j, h*m.NKVHeads/m.NHeads, m.NKVHeads)) / math.Sqrt(float64(m.HeadDim))
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
	require.InEpsilon(t, largest, float64(got.LargestLogit), 1e-6)
	require.InEpsilon(t, entropy/all, float64(got.Entropy), 1e-6)
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
		require.InEpsilon(t, length(grad), float64(got.GradNorm), 1e-6, p.Name)
		require.InEpsilon(t, length(before), float64(got.Norm), 1e-6, p.Name)
		require.InEpsilon(t, length(update)/length(before), float64(got.UpdateRatio), 1e-6, p.Name)
		require.InDelta(t, product(update, before)/length(update)/length(before), float64(got.UpdateCos), 1e-6, p.Name)
		if layer < 0 || p.Role.IsMatrix() {
			continue
		}
		g := d.Layers[layer].Gains[gains[layer]]
		gains[layer]++
		require.Equal(t, name, g.Name)
		sum := 0.0
		for _, v := range before {
			sum += v
		}
		require.InEpsilon(t, sum/float64(len(before)), float64(g.Mean), 1e-6)
		require.InEpsilon(t, slices.Min(before), float64(g.Min), 1e-6)
		require.InEpsilon(t, slices.Max(before), float64(g.Max), 1e-6)
	}
	require.InEpsilon(t, math.Sqrt(squares[-1]), float64(d.Outside.GradNorm), 1e-6)
	for i, l := range d.Layers {
		require.Len(t, l.Gains, gains[i])
		require.InEpsilon(t, math.Sqrt(squares[i]), float64(l.GradNorm), 1e-6)
	}
}

// Of one token the gradient of an MLP's output matrix is the outer product of dL/do and h, so that without an output norm the bound is reached; with one it holds.
func TestTheBoundIsReachedByOneToken(t *testing.T) {
	for placement, reached := range map[string]bool{"pre": true, "post": true, "peri": false} {
		m := smallModel(t)
		m.Placement, m.SeqLen = placement, 1
		d := &Diagnostics{}
		p, err := StepProgram(m, ProgramOptions{Batch: 1, Diagnostics: d})
		require.NoError(t, err)
		r := reference.New(p)
		for _, q := range m.Params() {
			x := make([]float64, q.Shape.Elems())
			reference.Decode(x, initial(q), graph.F32)
			r.Set(q.Name, x)
		}
		for _, v := range p.Vars() {
			if isMoment(v) {
				r.Set(v.Name, make([]float64, v.Elems()))
			}
		}
		r.Set(InputTokens, []int32{3})
		r.Set(InputTargets, []int32{5})
		r.Set(InputInvCount, []float32{1})
		hyper := make([]float64, graph.HyperLen)
		reference.Decode(hyper, testHyper(1).bytes(), graph.F32)
		r.Set(InputHyper, hyper)
		require.NoError(t, r.Run())
		got, err := d.read(func(output string) ([]byte, error) {
			x := r.Get(output)
			raw := make([]byte, 4*len(x))
			reference.Encode(raw, x, graph.F32)
			return raw, nil
		}, 1)
		require.NoError(t, err)
		if reached {
			require.InEpsilon(t, float64(got.Bound.GradNorm), float64(got.Bound.Bound), 1e-5, placement)
		} else {
			require.Less(t, float64(got.Bound.GradNorm), float64(got.Bound.Bound))
		}
		require.True(t, math.IsNaN(float64(got.Layers[0].Logits.OneHot)), "no row has more than one key")
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
