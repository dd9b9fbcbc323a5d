package reference

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

func zLossOf(n *graph.Node) float64 {
	return float64(graph.AttrOf[graph.CrossEntropyAttr](n).ZLoss)
}

// losses[r] = lse - logits[target] + zloss lse², 0 where the target is no class.
func crossEntropy(n *graph.Node, in, out [][]float64) {
	logits, targets, losses, lse := in[0], in[1], out[0], out[1]
	vocab, z := n.In[0].Shape().Last(), zLossOf(n)
	for r, target := range targets {
		x := logits[r*vocab : (r+1)*vocab]
		lse[r] = logSumExp(x)
		losses[r] = 0
		if t := int(target); t >= 0 && t < vocab {
			losses[r] = lse[r] - x[t] + z*lse[r]*lse[r]
		}
	}
}

// dlogits[r,j] = dlosses[r] (p (1 + 2 zloss lse) - [j == target]) with p = exp(logits - lse).
func crossEntropyGrad(n *graph.Node, in, out [][]float64) {
	logits, targets, lse, dlosses, dlogits := in[0], in[1], in[2], in[3], out[0]
	vocab, z := n.In[0].Shape().Last(), zLossOf(n)
	for r, target := range targets {
		t := int(target)
		for j := range vocab {
			if t < 0 || t >= vocab {
				dlogits[r*vocab+j] = 0
				continue
			}
			d := math.Exp(logits[r*vocab+j]-lse[r]) * (1 + 2*z*lse[r])
			if j == t {
				d--
			}
			dlogits[r*vocab+j] = dlosses[r] * d
		}
	}
}

// y = scale sum(x)
func sum(_ *graph.Node, in, out [][]float64) {
	s := 0.0
	for _, v := range in[0] {
		s += v
	}
	out[0][0] = s * scalar(in[1])
}

// scalar is an optional factor: 1 if absent.
func scalar(s []float64) float64 {
	if s == nil {
		return 1
	}
	return s[0]
}

// y = x scale in each element.
func broadcast(_ *graph.Node, in, out [][]float64) {
	v := in[0][0] * scalar(in[1])
	for i := range out[0] {
		out[0][i] = v
	}
}

// y = addend + the sum over the rows.
func sumRows(n *graph.Node, in, out [][]float64) {
	x, addend, y := in[0], in[1], out[0]
	for i := range y {
		s := 0.0
		if addend != nil {
			s = addend[i]
		}
		for r := range n.In[0].Shape().Rows() {
			s += x[r*len(y)+i]
		}
		y[i] = s
	}
}

func fillValue(n *graph.Node, _, out [][]float64) {
	for i := range out[0] {
		out[0][i] = float64(graph.AttrOf[graph.FillAttr](n).Value)
	}
}
