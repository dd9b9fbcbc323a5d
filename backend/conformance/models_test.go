package conformance

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
)

// Micro-batches make the very step of the whole batch, in float64: what the case of that name then expects of a device.
func TestAccumulationIsTheWholeBatch(t *testing.T) {
	tr := training{config: smallModel(nil), batch: 2, maxNorm: 1}
	s, err := tr.accumulated()
	require.NoError(t, err)
	parts := s.exact()
	p, err := tr.step(false)
	require.NoError(t, err)
	whole := reference.New(p)
	setParams(whole, tr.config)
	r := rand.New(rand.NewPCG(10, 10))
	for step := range 2 {
		tokens, targets := text(r, tr)
		tr.feed(whole, tokens, targets)
		whole.Set("hyper", hyper(step+1, 3e-3, 0.9, 0.95, 1e-8, 0.1))
		require.NoError(t, whole.Run())
	}
	require.InEpsilon(t, whole.Get("loss")[0], parts["loss of step 2"][0], 1e-12)
	require.InEpsilon(t, whole.Get("grad_norm")[0], parts["grad_norm of step 2"][0], 1e-12)
	for _, q := range tr.config.Params() {
		require.InDeltaSlice(t, whole.Get(q.Name), parts[q.Name+" after"], 1e-10, q.Name)
	}
	for name, x := range parts {
		if strings.HasSuffix(name, " cleared") {
			require.Equal(t, make([]float64, len(x)), x, name)
		}
	}
}
