package vulkan

import "github.com/vktrain/vktrain/graph"

// The loops of the shaders peak_fma and peak_triad, which no operator has: programs of one node stand for them.
const (
	fmaSums         = 12 // of a thread
	fmaUnroll       = 8  // FMAs of each sum in a round
	triadThreadVecs = 4  // vectors of four that a thread takes
)

// fmaPush is the block of peak_fma.comp.
type fmaPush struct {
	Rounds uint32
	X, Y   float32
}

// triadPush is the block of peak_triad.comp.
type triadPush struct {
	Count uint32
	S     float32
}

// fmaProgram has a node that lowerFMA can lower.
func fmaProgram(threads int) *graph.Program {
	g := graph.NewBuilder()
	g.Fill(g.Var("result", graph.F32, threads), 0)
	return g.Build("peak_fma")
}

func lowerFMA(groups int, push fmaPush) lowerFunc {
	return func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		return []dispatch{{kernel: "peak_fma", push: push, bind: n.Out, groups: d.grid(groups)}}, nil
	}
}

// triadProgram has a node that lowerTriad can lower: a = b + s * c.
func triadProgram(n int) *graph.Program {
	g := graph.NewBuilder()
	g.Add(g.Var("b", graph.F32, n), g.Var("c", graph.F32, n), g.Var("a", graph.F32, n))
	return g.Build("peak_triad")
}

func lowerTriad(s float32) lowerFunc {
	return func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		count := n.Out[0].Elems() / 4
		return []dispatch{{
			kernel: "peak_triad", push: triadPush{uint32(count), s}, bind: []*graph.Value{n.In[0], n.In[1], n.Out[0]},
			groups: d.grid(ceilDiv(count, d.threads()*triadThreadVecs)),
		}}, nil
	}
}
