package model

import (
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// Recompute says which activations a training step computes again in its backward pass, with the same bits, rather than keep them.
type Recompute string

const (
	RecomputeNone      Recompute = "none"      // keep all that gradients need
	RecomputeAttention Recompute = "attention" // keep products of matrices; norms, RoPE, attention and the MLP's activation are done twice (Korthikanti et al. 2022)
	RecomputeBlock     Recompute = "block"     // keep the input of each block; all of its forward pass is done twice (Chen et al. 2016)
)

// RecomputeNames lists the choices.
func RecomputeNames() []string {
	return []string{string(RecomputeNone), string(RecomputeAttention), string(RecomputeBlock)}
}

// Validate returns an error that names the choices. Empty is none.
func (r Recompute) Validate() error {
	if r != "" && !slices.Contains(RecomputeNames(), string(r)) {
		return fmt.Errorf("recompute: %q is unknown: use %s", string(r), orList(RecomputeNames()))
	}
	return nil
}

// drops tells whether an operator's outputs inside a block are computed again.
func (r Recompute) drops(op graph.Op) bool {
	return r == RecomputeBlock || r == RecomputeAttention && op != graph.OpMatMul
}

// Recompute marks what gradients that are taken later compute again. The residual stream between blocks is kept.
func (f *Forward) Recompute(b *graph.Builder, r Recompute) {
	for i, nodes := range f.blocks {
		for _, n := range nodes {
			for _, v := range n.Out {
				if v != nil && v != f.Hidden[i+1] && r.drops(n.Op) {
					b.Recompute(v)
				}
			}
		}
	}
}
