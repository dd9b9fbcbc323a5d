package conformance

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/model"
)

// relativeInner is |<W, dL/dW>| over the product of the norms, the largest over names.
func relativeInner(t *testing.T, c model.Config, names []string) float64 {
	tr := training{config: c, batch: 2}
	s, err := tr.invariants(names)
	require.NoError(t, err)
	exact, worst := s.exact(), 0.0
	m := reference.New(s.programs[0])
	setParams(m, c)
	for _, name := range names {
		w, g := m.Get(name), exact["grad."+name]
		worst = math.Max(worst, math.Abs(exact["<W, dL/dW> of "+name][0])/math.Sqrt(inner(w, w)*inner(g, g)))
	}
	return worst
}

func TestInvariantsInFloat64(t *testing.T) {
	for _, placement := range []string{"peri", "olmo2", "pre", "post"} {
		for _, qk := range []string{model.QKNormNone, model.QKNormRMS, model.QKNormRMSFull, model.QKNormLayerNorm, model.QKNormL2} {
			c := invariantModel(placement, qk)
			tr := training{config: c, batch: 2}
			names := scaleFree(c)
			if len(names) == 0 {
				continue
			}
			require.Less(t, relativeInner(t, c, names), 1e-8, "%s %s", placement, qk)
			s, err := tr.invariants(names)
			require.NoError(t, err)
			exact := s.exact()
			for name, x := range exact {
				if strings.HasPrefix(name, "loss with") {
					require.InEpsilon(t, exact["loss"][0], x[0], 1e-8, "%s %s: %s", placement, qk, name)
				}
				if grad, _, ok := strings.Cut(strings.TrimPrefix(name, "10 times "), " with"); ok && strings.HasPrefix(grad, "grad.") {
					require.InDeltaSlice(t, exact[grad], x, 1e-8, "%s %s: %s", placement, qk, name)
				}
			}
		}
	}
}

// Without the norm that they rest on the invariants do not hold, so that the test above can fail.
func TestInvariantsNeedTheirNorms(t *testing.T) {
	outputs := scaleFree(invariantModel("peri", model.QKNormNone))
	require.Len(t, outputs, 6)
	for _, placement := range []string{"pre", "post"} {
		require.Greater(t, relativeInner(t, invariantModel(placement, model.QKNormNone), outputs), 1e-4, placement)
	}
	queries := scaleFree(invariantModel("pre", model.QKNormRMS))
	require.Len(t, queries, 4)
	require.Greater(t, relativeInner(t, invariantModel("pre", model.QKNormNone), queries), 1e-4)
}

func TestPlacementsShareParameters(t *testing.T) {
	pre := invariantModel("pre", model.QKNormRMS)
	shared := map[string][]float32{}
	for _, p := range pre.Params() {
		shared[p.Name] = pre.InitParam(3, p)
	}
	for _, placement := range []string{"peri", "post", "olmo2"} {
		c, n := invariantModel(placement, model.QKNormRMS), 0
		for _, p := range c.Params() {
			if x, ok := shared[p.Name]; ok {
				n++
				require.Equal(t, x, c.InitParam(3, p), "%s %s", placement, p.Name)
			}
		}
		require.GreaterOrEqual(t, n, 2+c.NLayers*9, placement) // the embedding, the final norm or the head, and each block's matrices and QK gains
	}
	peri := invariantModel("peri", model.QKNormRMS)
	require.Equal(t, pre.NumParams()+2*pre.NLayers*pre.DModel, peri.NumParams())
}
