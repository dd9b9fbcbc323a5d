package train_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// In float64, chunks of logits give the loss, the gradients and the step that all of them at once give.
func TestChunksOfLogitsChangeNothing(t *testing.T) {
	for name, change := range map[string]func(c *model.Config, o *train.ProgramOptions){
		"separate head":               func(c *model.Config, _ *train.ProgramOptions) { c.Tied = false },
		"tied, no final norm":         func(c *model.Config, _ *train.ProgramOptions) { c.Tied, c.FinalNorm = true, false },
		"soft cap, z-loss":            func(c *model.Config, o *train.ProgramOptions) { c.LogitSoftcap, o.ZLoss = 3, 0.01 },
		"tied, blocks computed again": func(c *model.Config, o *train.ProgramOptions) { c.Tied, o.Recompute = true, model.RecomputeBlock },
	} {
		t.Run(name, func(t *testing.T) {
			c := smallModel()
			c.SeqLen = 150
			o := train.ProgramOptions{Batch: 2, MaxNorm: 1, Grads: true}
			change(&c, &o)
			rng := rand.New(rand.NewPCG(3, 4))
			vars := randomVars(c, rng)
			batch := randomBatch(c, 2, rng)
			for build, program := range map[string]func(model.Config, train.ProgramOptions) (*graph.Program, error){
				"step": train.StepProgram, "accumulate": train.AccumulateProgram, "eval": train.EvalProgram,
			} {
				outputs := [2]map[string][]float64{}
				for i, rows := range []int{1024, model.RowsUnit} {
					o.ChunkRows = rows
					own := clone(vars)
					m := machine(t, own, program, c, o)
					batch.feed(m)
					if build == "step" {
						m.Set(train.InputHyper, hyper(1e-2, 0.1, 1))
					}
					require.NoError(t, m.Run())
					require.NoError(t, m.Run(), "accumulators have something by then")
					outputs[i] = own
					p, err := program(c, o)
					require.NoError(t, err)
					for _, out := range p.Outputs() {
						outputs[i]["output "+out.Name] = m.Get(out.Name)
					}
				}
				require.Len(t, outputs[1], len(outputs[0]))
				for name, want := range outputs[0] {
					got, largest := outputs[1][name], 0.0
					for _, x := range want {
						largest = max(largest, math.Abs(x))
					}
					for i := range want {
						require.InDelta(t, want[i], got[i], 1e-11*largest, "%s: %s", build, name)
					}
				}
			}
		})
	}
	_, err := train.StepProgram(smallModel(), train.ProgramOptions{Batch: 1, ChunkRows: 100})
	require.EqualError(t, err, "ProgramOptions.ChunkRows: 100 is not possible: use a multiple of 128, or 0 to have it chosen")
}

// However long the sequence, no tensor of a step has more than an eighth of its logits, or 32 MiB.
func TestLogitsAreNeverHeldWhole(t *testing.T) {
	c, err := model.Preset("bench-c")
	require.NoError(t, err)
	for _, batch := range []int{2, 5, 16} {
		for _, build := range []func(model.Config, train.ProgramOptions) (*graph.Program, error){train.StepProgram, train.EvalProgram} {
			p, err := build(c, train.ProgramOptions{Batch: batch, MaxNorm: 1})
			require.NoError(t, err)
			rows, most := batch*c.SeqLen, 0
			for _, v := range p.Values() {
				if v.Kind() == graph.KindTemp && v.Shape().Last() == c.VocabSize {
					most = max(most, v.Elems()/c.VocabSize)
				}
			}
			require.Positive(t, most)
			require.LessOrEqual(t, most, max(rows/8+model.RowsUnit-1, 32<<20/(4*c.VocabSize)))
		}
	}
}
