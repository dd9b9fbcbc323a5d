package train_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// goldenDir has models of an independent float64 implementation, with every tensor of three steps of training.
const goldenDir = "../../shared/golden"

// goldenTolerance bounds the deviation of float64 arithmetic from the golden files, relative to a tensor's largest element: eps
// inside norms is a float32 in programs, 1e-6 within 3e-14, and the losses' sums differ in their order.
const goldenTolerance = 1e-10

type goldenCase struct {
	Batch     int          `json:"batch"`
	Config    model.Config `json:"config"`
	Optimizer struct {
		LR, Beta1, Beta2, Eps float64
		WeightDecay           float64 `json:"weight_decay"`
		ClipNorm              float32 `json:"clip_norm"`
	} `json:"optimizer"`
}

// golden is one case and its tensors.
type golden struct {
	goldenCase
	t    *testing.T
	file *checkpoint.Safetensors
}

func openGolden(t *testing.T, name string) *golden {
	g := &golden{t: t}
	raw, err := os.ReadFile(filepath.Join(goldenDir, name+".json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &g.goldenCase))
	g.file, err = checkpoint.OpenSafetensors(filepath.Join(goldenDir, name+".safetensors"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.file.Close()) })
	return g
}

func (g *golden) floats(name string) []float64 {
	x, err := g.file.Float64s(name)
	require.NoError(g.t, err)
	return x
}

// batch gives tokens or targets of a step, the first of which is 0.
func (g *golden) batch(name string, step int) []int32 {
	all, err := g.file.Int64s(name)
	require.NoError(g.t, err)
	n := g.Batch * g.Config.SeqLen
	out := make([]int32, n)
	for i, x := range all[step*n : (step+1)*n] {
		out[i] = int32(x)
	}
	return out
}

// agrees compares a tensor of a run with one of the file, relative to its largest element.
func (g *golden) agrees(name string, got []float64) {
	g.t.Helper()
	want := g.floats(name)
	require.Len(g.t, got, len(want), name)
	worst, largest := 0.0, 0.0
	for i := range want {
		worst, largest = max(worst, math.Abs(got[i]-want[i])), max(largest, math.Abs(want[i]))
	}
	require.LessOrEqual(g.t, worst, goldenTolerance*largest, name)
}

// TestGoldenModels runs the golden models' three steps through the reference interpreter. It checks model, graph and the programs; the conformance kit
// runs the same files, and a part of them that is committed, on backends.
func TestGoldenModels(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(goldenDir, "index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the golden models are not beside this checkout")
	}
	require.NoError(t, err)
	var names []string
	require.NoError(t, json.Unmarshal(raw, &names))
	for _, name := range names {
		t.Run(name, func(t *testing.T) { runGolden(openGolden(t, name)) })
	}
}

func runGolden(g *golden) {
	p, err := train.StepProgram(g.Config, train.ProgramOptions{Batch: g.Batch, MaxNorm: g.Optimizer.ClipNorm, Grads: true})
	require.NoError(g.t, err)
	m := reference.New(p)
	params := g.Config.Params()
	for _, q := range params {
		m.Set(q.Name, g.floats("param."+q.Name))
	}
	var losses, norms []float64
	for s := range len(g.floats("losses")) {
		g.step(m, s)
		losses, norms = append(losses, m.Get(train.OutputLoss)[0]), append(norms, m.Get(train.OutputGradNorm)[0])
		if s > 0 {
			continue
		}
		g.agrees("logits", m.Get(train.OutputLogits))
		for _, q := range params {
			g.agrees("grad."+q.Name, m.Get(train.PrefixGrad+q.Name))
		}
		for i := range g.Config.NLayers + 1 {
			g.agrees(fmt.Sprintf("act.hidden.%d", i), m.Get(fmt.Sprintf("act.hidden.%d", i)))
		}
		g.agrees("act.final", m.Get("act.final"))
		for i := range g.Config.NLayers {
			for name, heads := range map[string]int{"q_rope": g.Config.NHeads, "k_rope": g.Config.NKVHeads} {
				name = fmt.Sprintf("act.layers.%d.%s", i, name)
				g.agrees(name, g.headsFirst(m.Get(name), heads))
			}
		}
	}
	g.agrees("losses", losses)
	g.agrees("grad_norms", norms)
	for _, q := range params {
		g.agrees("after."+q.Name, m.Get(q.Name))
	}
}

// headsFirst turns (B, T, heads*h) into the files' (B, heads, T, h).
func (g *golden) headsFirst(x []float64, heads int) []float64 {
	seqLen, h := g.Config.SeqLen, g.Config.HeadDim
	out := make([]float64, 0, len(x))
	for b := range g.Batch {
		for j := range heads {
			for t := range seqLen {
				at := ((b*seqLen+t)*heads + j) * h
				out = append(out, x[at:at+h]...)
			}
		}
	}
	return out
}

// step runs step s, the first of which is 0.
func (g *golden) step(m *reference.Machine, s int) {
	targets := g.batch("targets", s)
	kept := 0
	for _, x := range targets {
		if x != graph.IgnoreTarget {
			kept++
		}
	}
	o := g.Optimizer
	require.Equal(g.t, []float64{0.9, 0.95, 1e-8}, []float64{o.Beta1, o.Beta2, o.Eps})
	batch{g.batch("tokens", s), targets, []float64{1 / float64(kept)}}.feed(m)
	m.Set(train.InputHyper, hyper(o.LR, o.WeightDecay, s+1))
	require.NoError(g.t, m.Run())
}
