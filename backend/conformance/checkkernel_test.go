package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// The cases that are left for one kernel see every fault of a matmul that the kit sees.
func TestCheckKernel(t *testing.T) {
	node := func(d graph.DType) *graph.Node {
		b := graph.NewBuilder()
		b.Linear(b.Var("x", d, 2, 3), b.Var("w", d, 4, 3), nil)
		return b.Nodes()[0]
	}
	for _, d := range []graph.DType{graph.F32, graph.BF16, graph.F16} {
		b := reference.NewBackend()
		seen := map[uint]bool{}
		b.Hook = func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
			seen[formatsOf(n)] = true
			run(n, in, out)
		}
		require.NoError(t, CheckKernel(b, node(d)))
		require.Equal(t, map[uint]bool{1 << d: true}, seen)
		faults := slices.DeleteFunc(faults(), func(f fault) bool { return !slices.Contains(f.ops, graph.OpMatMul) })
		require.NotEmpty(t, faults)
		for _, f := range faults {
			if d != graph.F32 && (strings.Contains(f.name, "tensor-float-32") || strings.Contains(f.name, "float16")) {
				continue // the results have few bits anyway
			}
			b.Hook = f.spoil
			require.Error(t, CheckKernel(b, node(d)), "%s in %s", f.name, d)
		}
	}
	require.ErrorContains(t, CheckKernel(refusesAll{reference.NewBackend()}, node(graph.F32)), "no case of the conformance kit")
}

// refusesAll supports nothing.
type refusesAll struct{ backend.Backend }

func (refusesAll) Compile(*graph.Program, backend.Store) (backend.Executable, error) {
	return nil, errors.ErrUnsupported
}
