package conformance

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// The golden models that come with the kit: one or more for each value of each of a model's axes. testdata/golden/README.md has
// the format and the formulas.
//
//go:embed testdata/golden/*.json testdata/golden/*.safetensors
var committedGolden embed.FS

// goldenFiles opens a folder of golden models, or those that come with the kit for an empty name.
func goldenFiles(folder string) (fs.FS, error) {
	if folder == "" {
		return fs.Sub(committedGolden, "testdata/golden")
	}
	return os.DirFS(folder), nil
}

// goldenNames lists the models of a folder, by its index.json.
func goldenNames(files fs.FS) ([]string, error) {
	raw, err := fs.ReadFile(files, "index.json")
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("index.json can't be read (%w): the folder must hold it, and NAME.json and NAME.safetensors for each name in it", err)
	}
	var names []string
	if json.Unmarshal(raw, &names) != nil || len(names) == 0 {
		return nil, errors.New(`index.json is no list of names: it must hold at least one, as in ["a", "b"]`)
	}
	return names, nil
}

// golden is a model with the tensors of some steps of training, computed in float64 by another implementation.
type golden struct {
	name      string
	Batch     int
	Config    model.Config
	Optimizer goldenOptimizer
	recompute model.Recompute
	repeat    int // the batch is there so many times, with the same mean: its logits then take several chunks. 0: once
	file      *checkpoint.Safetensors
	close     func() error
}

type goldenOptimizer struct {
	LR          float64 `json:"lr"`
	Beta1       float64 `json:"beta1"`
	Beta2       float64 `json:"beta2"`
	Eps         float64 `json:"eps"`
	WeightDecay float64 `json:"weight_decay"`
	ClipNorm    float64 `json:"clip_norm"`
	Steps       int     `json:"steps"`
}

// openGolden reads a model's description and the header of its tensors.
func openGolden(files fs.FS, name string) (*golden, error) {
	g := &golden{name: name}
	if err := g.describe(files); err != nil {
		return nil, fmt.Errorf("%s.json: %w", name, err)
	}
	f, err := files.Open(name + ".safetensors")
	if err != nil {
		return nil, err
	}
	g.close = f.Close
	info, err := f.Stat()
	if err == nil {
		at, ok := f.(io.ReaderAt)
		if !ok {
			err = fmt.Errorf("a %T cannot be read at an offset", f)
		} else {
			g.file, err = checkpoint.ReadSafetensors(at, info.Size())
		}
	}
	if err == nil {
		err = g.checkShapes()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s.safetensors: %w", name, err), f.Close())
	}
	return g, nil
}

// checkShapes returns an error if the file lacks a tensor that a run starts from, or has it in another shape.
func (g *golden) checkShapes() error {
	batches := graph.Shape{g.Optimizer.Steps, g.Batch, g.Config.SeqLen}
	want := map[string]graph.Shape{"tokens": batches, "targets": batches}
	for _, p := range g.Config.Params() {
		want["param."+p.Name] = p.Shape
	}
	for _, name := range sortedKeys(want) {
		info, ok := g.file.Info(name)
		switch {
		case !ok:
			return fmt.Errorf("it has no tensor %q", name)
		case !slices.Equal(info.Shape, want[name]):
			return fmt.Errorf("%s has the shape %v, the config says %v", name, info.Shape, want[name])
		}
	}
	return nil
}

func (g *golden) describe(files fs.FS) error {
	raw, err := fs.ReadFile(files, g.name+".json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, g); err != nil {
		return err
	}
	if g.Batch < 1 || g.Optimizer.Steps < 1 {
		return fmt.Errorf("batch %d and optimizer.steps %d must be positive", g.Batch, g.Optimizer.Steps)
	}
	return g.Config.Validate()
}

// floats reads a tensor, or panics: a case's panic is its failure.
func (g *golden) floats(name string) []float64 {
	x, err := g.file.Float64s(name)
	if err != nil {
		panic(caseError{err})
	}
	return x
}

// batch gives tokens or targets of a step, the first of which is 0.
func (g *golden) batch(name string, step int) []int32 {
	all, err := g.file.Int64s(name)
	if err != nil {
		panic(caseError{err})
	}
	x := make([]int32, g.Batch*g.Config.SeqLen)
	for i := range x {
		x[i] = int32(all[step*len(x)+i])
	}
	return slices.Repeat(x, max(g.repeat, 1))
}

func (g *golden) training() training {
	t := training{config: g.Config.Normalize(), batch: g.Batch, maxNorm: float32(g.Optimizer.ClipNorm), recompute: g.recompute}
	if g.repeat > 0 {
		t.batch, t.chunkRows = g.Batch*g.repeat, model.RowsUnit
	}
	return t
}

// scenario is the golden steps of training, with gradients and activations.
func (g *golden) scenario() (scenario, error) {
	p, err := g.training().step(true)
	return scenario{programs: []*graph.Program{p}, run: g.run}, err
}

// run trains a machine for the golden steps. It shows see every value that the file has, under the file's names and in its layout.
func (g *golden) run(machines []machine, see func(name string, x []float64)) {
	m, params := machines[0], g.Config.Params()
	for _, p := range params {
		m.Set(p.Name, g.floats("param."+p.Name))
		m.Set("adam.m."+p.Name, make([]float64, p.Shape.Elems()))
		m.Set("adam.v."+p.Name, make([]float64, p.Shape.Elems()))
	}
	var losses, norms []float64
	for step := range g.Optimizer.Steps {
		g.feed(m, step)
		must(m.Run())
		losses, norms = append(losses, m.Get("loss")...), append(norms, m.Get("grad_norm")...)
		if step == 0 {
			g.seeFirst(m, see)
		}
	}
	see("losses", losses)
	see("grad_norms", norms)
	for _, p := range params {
		see("after."+p.Name, m.Get(p.Name))
	}
}

func (g *golden) feed(m machine, step int) {
	g.training().feed(m, g.batch("tokens", step), g.batch("targets", step))
	o := g.Optimizer
	m.Set("hyper", hyper(step+1, o.LR, o.Beta1, o.Beta2, o.Eps, o.WeightDecay))
}

// seeFirst shows the values of the first step.
func (g *golden) seeFirst(m machine, see func(name string, x []float64)) {
	c := g.Config.Normalize()
	see("loss", m.Get("loss"))
	see("grad_norm", m.Get("grad_norm"))
	for _, p := range c.Params() {
		see("grad."+p.Name, m.Get("grad."+p.Name))
	}
	if g.repeat > 0 { // the file has activations of the batch alone
		return
	}
	see("logits", m.Get("logits"))
	for i := range c.NLayers + 1 {
		name := fmt.Sprintf("act.hidden.%d", i)
		see(name, m.Get(name))
	}
	see("act.final", m.Get("act.final"))
	for i := range c.NLayers {
		layer := fmt.Sprintf("act.layers.%d.", i)
		q, k := g.headsFirst(m.Get(layer+"q_rope"), c.NHeads), g.headsFirst(m.Get(layer+"k_rope"), c.NKVHeads)
		see(layer+"q_rope", q)
		see(layer+"k_rope", k)
		see(layer+"probs", g.probs(i, q, k, m.Get(layer+"lse")))
	}
}

// headsFirst turns (B, T, heads*h) into the file's (B, heads, T, h).
func (g *golden) headsFirst(x []float64, heads int) []float64 {
	seq, h := g.Config.SeqLen, g.Config.Normalize().HeadDim
	out := make([]float64, 0, len(x))
	for b := range g.Batch {
		for j := range heads {
			for t := range seq {
				at := ((b*seq+t)*heads + j) * h
				out = append(out, x[at:at+h]...)
			}
		}
	}
	return out
}

// probs gives the attention weights (B, H, T, T) of a layer, which programs never hold, from what they do.
func (g *golden) probs(layer int, q, k, lse []float64) []float64 {
	c := g.Config.Normalize()
	seq, h := c.SeqLen, c.HeadDim
	scale := 1 / math.Sqrt(float64(h))
	if c.QKNorm == model.QKNormL2 {
		scale = g.floats(fmt.Sprintf("param.model.layers.%d.self_attn.qk_scale", layer))[0]
	}
	p := make([]float64, g.Batch*c.NHeads*seq*seq)
	for b := range g.Batch {
		for j := range c.NHeads {
			for t := range seq {
				row := (b*c.NHeads+j)*seq + t
				for u := range t + 1 {
					key := (b*c.NKVHeads+j*c.NKVHeads/c.NHeads)*seq + u
					s := 0.0
					for i := range h {
						s += scale * q[row*h+i] * k[key*h+i]
					}
					if c.AttnSoftcap > 0 {
						s = c.AttnSoftcap * math.Tanh(s/c.AttnSoftcap)
					}
					p[row*seq+u] = math.Exp(s - lse[row])
				}
			}
		}
	}
	return p
}

// goldenExact bounds how far float64 may be from the file, relative to a tensor's largest element: programs hold eps as float32, 1e-6
// to within 3e-14, and sums are in another order.
const goldenExact = 1e-10

// goldenAfter bounds parameters after the steps: AdamW makes a step of size lr of any gradient, so where one is nearly zero its
// rounding decides, and the generator's own float32 is up to 2.2e-4 off.
const goldenAfter = 1e-3

// agrees compares the interpreter's values with the file's.
func (g *golden) agrees(exact map[string][]float64) error {
	var errs []error
	for _, name := range sortedKeys(exact) {
		want := g.floats(name)
		if len(want) != len(exact[name]) {
			errs = append(errs, fmt.Errorf("%s has %d elements, the file %d", name, len(exact[name]), len(want)))
			continue
		}
		largest := 0.0
		for _, x := range want {
			largest = math.Max(largest, math.Abs(x))
		}
		_, err := compare(name, exact[name], want, goldenExact*math.Max(largest, flush))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the float64 reference does not agree with the file: %w", err)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// check runs a backend through the golden steps and compares every value with the file's, within what rounding to float32 at each node
// may make of it.
func (g *golden) check(b backend.Backend) (res outcome) {
	s, err := g.scenario()
	if err != nil {
		return outcome{err: err}
	}
	exact, moves := s.measure()
	if err := g.agrees(exact); err != nil {
		return outcome{err: err}
	}

	err = s.on(b, func(name string, got []float64) {
		bound := moves.bound(name)
		if strings.HasPrefix(name, "after.") {
			bound = math.Min(bound, goldenAfter)
		}
		ratio, err := compare(name, got, g.floats(name), bound)
		res.checks++
		res.worst = math.Max(res.worst, ratio)
		res.err = errors.Join(res.err, err)
	})
	res.err = errors.Join(res.err, err)
	return res
}

// checkGoldenExact runs the float64 reference alone.
func checkGoldenExact(files fs.FS, name string) (err error) {
	g, err := openGolden(files, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	s, err := g.scenario()
	if err != nil {
		return err
	}
	return g.agrees(s.exact())
}

// goldenCases makes a case of each model of a folder, or of those that come with the kit.
func goldenCases(folder string) ([]testCase, error) {
	files, err := goldenFiles(folder)
	if err != nil {
		return nil, err
	}
	names, err := goldenNames(files)
	if err != nil {
		return nil, fmt.Errorf("golden models in %s: %w", folder, err)
	}
	var list []testCase
	add := func(title, name string, repeat int) {
		list = append(list, testCase{Case{"golden", title}, func(b backend.Backend, _ uint64) (res outcome) {
			g, err := openGolden(files, name)
			if err != nil {
				return outcome{err: err}
			}
			g.repeat = repeat
			defer func() { res.err = errors.Join(res.err, g.close()) }()
			return g.check(b)
		}})
	}
	for _, name := range names {
		add(name, name, 0)
	}
	// Three chunks of logits, the last one short.
	for _, c := range []struct {
		name   string
		repeat int
	}{{"peri_rms_odd", 9}, {"pre_rms_tied", 18}} {
		if slices.Contains(names, c.name) {
			add(c.name+" in chunks of rows", c.name, c.repeat)
		}
	}
	return list, nil
}
