package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

func TestReferenceBackendConforms(t *testing.T) { Run(t, reference.NewBackend()) }

// The bounds follow the formulas on their own, so their values must be the oracle's.
func TestBoundsAgreeWithTheReference(t *testing.T) {
	for _, op := range graph.Ops() {
		for _, c := range opTests[op].allCases(op) {
			r, err := c.compile(reference.NewBackend(), op, opTests[op].bound)
			require.NoError(t, err, "%s %s", op, c.name)
			for _, set := range c.variants(r.in, 7)[:2] {
				want, err := r.reference(set.data)
				require.NoError(t, err)
				for i, out := range r.bounds(set.data) {
					for j, x := range out {
						if r.out[i].dtype.Size() == 2 {
							x.v = r.round(set.data, i, j, x.v)
						}
						if math.Abs(x.v-want[i][j]) > 1e-12*(1+math.Abs(want[i][j])) && x.v != want[i][j] {
							t.Fatalf("%s %s, %s: %s[%d] is %g with error arithmetic, %g without", op, c.name, set.name, r.out[i].what, j, x.v, want[i][j])
						}
					}
				}
			}
			require.NoError(t, r.close())
		}
	}
}

func TestEveryOperatorHasCases(t *testing.T) {
	for _, op := range graph.Ops() {
		require.NotNil(t, opTests[op].cases, "%s has no cases", op)
		require.NotEmpty(t, opTests[op].cases(), "%s has no cases", op)
		names := map[string]bool{}
		for _, c := range opTests[op].allCases(op) {
			require.False(t, names[c.name], "%s has two cases %q", op, c.name)
			names[c.name] = true
		}
	}
}
