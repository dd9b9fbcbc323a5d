//go:build cgo

package vulkan

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// Log-likelihoods of passages of all lengths are those of the interpreter in float64, with logits whole and in chunks.
func TestLogLikelihoodsAreTheInterpreters(t *testing.T) {
	m := model.Default()
	m.VocabSize, m.DModel, m.NLayers, m.NHeads, m.NKVHeads, m.DFF, m.SeqLen = 23, 12, 2, 2, 1, 20, 67
	m = m.Normalize()
	random := rand.New(rand.NewPCG(3, 4))
	var passages []train.Passage
	for _, n := range []int{2, 3, 18, 19, 35, 36, 68, 68} {
		p := train.Passage{Scored: 1 + random.IntN(n-1)}
		for range n {
			p.Tokens = append(p.Tokens, random.Int32N(int32(m.VocabSize)))
		}
		passages = append(passages, p)
	}
	score := func(dev backend.Backend, o train.ProgramOptions) []float64 {
		p, err := train.EvalProgram(m, train.ProgramOptions{Batch: 1})
		require.NoError(t, err)
		store, err := dev.NewStore(p.Vars())
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		require.NoError(t, train.InitParams(context.Background(), store, m, 5))
		sums, err := train.NewScorer(dev, store, m, o).LogLikelihoods(context.Background(), passages)
		require.NoError(t, err)
		return sums
	}
	want := score(reference.NewBackend(), train.ProgramOptions{Batch: 1})
	b := openTest(t, Options{})
	// As in package train: each logit is off by eps times the terms of the sums in series, a loss by twice that, and it is rounded. The final norm's output has the
	// length sqrt(D), and a row of the head, which begins with the variance 1/D, hardly ever three times its 1.
	const eps = 1.0 / (1 << 24)
	largest := 3 * math.Sqrt(float64(m.DModel))
	terms := float64(m.DModel + m.NLayers*(3*m.DModel+m.DFF+m.SeqLen))
	for _, o := range []train.ProgramOptions{{Batch: 1}, {Batch: 4, ChunkRows: model.RowsUnit}} {
		for i, got := range score(b, o) {
			bound := float64(passages[i].Scored) * eps * (2*(terms+2)*largest + 2*largest + math.Log(float64(m.VocabSize)))
			require.InDelta(t, want[i], got, bound, "passage %d, batch %d", i, o.Batch)
		}
	}
}
