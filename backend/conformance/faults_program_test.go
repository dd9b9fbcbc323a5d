package conformance

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// nodeFault breaks the nodes of a program that it is possible in.
type nodeFault struct {
	name   string
	breaks func(n *graph.Node) bool
	spoil  func() hook // fresh, since some remember earlier runs
	all    float64     // how many bounds the worst value must be off where every such node is broken; less says that the bounds are too wide
	one    float64     // and where one node is; 0: that is no more than a rounding that falls to the other side
}

func programFaults() []nodeFault {
	product := func(n *graph.Node) bool { return n.Op == graph.OpMatMul }
	return []nodeFault{
		{"an addend that is left out", func(n *graph.Node) bool { return addendOf(n) >= 0 },
			func() hook {
				return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
					if n.Op == graph.OpAdd {
						copy(out[0], in[0])
						return
					}
					without(addendOf(n))(n, in, out, run)
				}
			}, 50, 4},
		{"no 1/sqrt(head_dim)", func(n *graph.Node) bool {
			return n.Op == graph.OpAttention && n.In[3] == nil || n.Op == graph.OpAttentionGrad && n.In[6] == nil
		},
			func() hook { return with(func(at *graph.AttentionAttr) { at.Scale = 1 }) }, 50, 4},
		{"sums that are rounded to bf16 at each addition", func(n *graph.Node) bool {
			return product(n) && (n.In[0].DType() == graph.BF16 || n.In[1].DType() == graph.BF16)
		}, func() hook { return sumsIn16Bits }, 1.5, 0},
		{"a product of what was there in the run before", product, staleOperand, 50, 4},
		{"a block of a product that is not written", product, unwrittenBlock, 50, 4},
	}
}

// addendOf is the index of a node's addend, -1 for none.
func addendOf(n *graph.Node) int {
	in, _ := n.Op.Operands()
	if n.Op == graph.OpAdd {
		return 1
	}
	if i := slices.Index(in, "[addend]"); i >= 0 && n.In[i] != nil {
		return i
	}
	return -1
}

// staleOperand reads the first operand as it was in the program's run before.
func staleOperand() hook {
	before := map[*graph.Node][]float64{}
	return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		now := slices.Clone(in[0])
		if old := before[n]; old != nil {
			in = append([][]float64{old}, in[1:]...)
		}
		run(n, in, out)
		before[n] = now
	}
}

// unwrittenBlock leaves the last 4 x 4 elements as the run before left them.
func unwrittenBlock() hook {
	before := map[*graph.Node][]float64{}
	return func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
		old := before[n]
		if old == nil {
			old = make([]float64, len(out[0]))
		}
		run(n, in, out)
		_, rows, cols, _ := graph.MatMulDims(n)
		for i := max(0, rows-4); i < rows; i++ {
			copy(out[0][i*cols+max(0, cols-4):(i+1)*cols], old[i*cols+max(0, cols-4):])
		}
		before[n] = slices.Clone(out[0])
	}
}

// TestProgramsIn16BitsSeeFaults breaks one kind of node in whole programs of 16 bits, and then single nodes, one in five.
func TestProgramsIn16BitsSeeFaults(t *testing.T) {
	for _, d := range []graph.DType{graph.BF16, graph.F16} {
		for name, s := range narrowScenarios(t, d) {
			exact, moves := s.measure()
			worst := func(spoil hook, broken func(n *graph.Node) bool) float64 {
				b := reference.NewBackend()
				b.Hook = func(n *graph.Node, in, out [][]float64, run reference.Kernel) {
					if broken(n) {
						spoil(n, in, out, run)
					} else {
						run(n, in, out)
					}
				}
				most := 0.0
				require.NoError(t, s.on(b, func(value string, got []float64) {
					ratio, _ := compare(value, got, exact[value], moves.bound(value))
					if math.IsNaN(ratio) {
						ratio = math.Inf(1)
					}
					most = math.Max(most, ratio)
				}))
				return most
			}
			require.LessOrEqual(t, worst(nil, func(*graph.Node) bool { return false }), 1.0, "%s %s without a fault", d, name)
			for _, f := range programFaults() {
				var nodes []*graph.Node
				for _, p := range s.programs {
					nodes = append(nodes, slices.DeleteFunc(slices.Clone(p.Nodes()), func(n *graph.Node) bool { return !f.breaks(n) })...)
				}
				if len(nodes) == 0 {
					continue
				}
				all := worst(f.spoil(), f.breaks)
				require.Greater(t, all, f.all, "%s %s: %s, in %d nodes", d, name, f.name, len(nodes))
				if f.one == 0 {
					t.Logf("%s %s: %s: %.3g bounds off in %d nodes", d, name, f.name, all, len(nodes))
					continue
				}
				least := math.Inf(1)
				for i := 0; i < len(nodes); i += 5 {
					one := worst(f.spoil(), func(n *graph.Node) bool { return n == nodes[i] })
					require.Greater(t, one, f.one, "%s %s: %s, in %s", d, name, f.name, nodes[i])
					least = min(least, one)
				}
				t.Logf("%s %s: %s: %.3g bounds off in %d nodes, at least %.3g in one", d, name, f.name, all, len(nodes), least)
			}
		}
	}
}

// narrowScenarios are the quicker ones of narrowModelCases.
func narrowScenarios(t *testing.T, d graph.DType) map[string]scenario {
	plain, axes := narrowTrainings(d)
	list := map[string]scenario{}
	for name, make := range map[string]func() (scenario, error){"peri": plain.steps, "post, l2, gelu": axes.steps, "two micro-batches": plain.accumulated} {
		s, err := make()
		require.NoError(t, err)
		list[name] = s
	}
	return list
}
