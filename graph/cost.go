package graph

// elementCosts is indexed by Op: the operations for each element of the operand that the operator walks over. An add, a multiplication, a
// comparison, a division, a root and an elementary function count as one each. What attributes and optional operands change is in
// elementCost; products of matrices are in Cost.
var elementCosts = [NumOps]struct {
	in  int // whose elements; -1: there is nothing to compute
	ops int64
}{
	OpEmbedding:        {-1, 0},
	OpEmbeddingGrad:    {1, 1},
	OpRMSNorm:          {0, 3},  // square, sum; times 1/rms
	OpRMSNormGrad:      {1, 9},  // the statistic 2; x̂ 1; u x̂, sum 2; dx 4
	OpLayerNorm:        {0, 6},  // mean 1, deviation 1, variance 2; deviation, times r
	OpLayerNormGrad:    {1, 13}, // the statistics 4; x̂ 2; sums of u and u x̂ 3; dx 4
	OpQKNormRoPE:       {0, 3},  // a rotation
	OpQKNormRoPEGrad:   {1, 3},
	OpSoftmax:          {0, 5},
	OpSoftmaxGrad:      {0, 4},
	OpSwiGLU:           {0, 4},
	OpSwiGLUGrad:       {0, 11},
	OpGELU:             {0, 5},
	OpGELUGrad:         {0, 11},
	OpReLU:             {0, 1},
	OpReLUGrad:         {0, 2},
	OpSoftCap:          {0, 3},
	OpSoftCapGrad:      {0, 4},
	OpCrossEntropy:     {0, 4},
	OpCrossEntropyGrad: {0, 4},
	OpAdd:              {0, 1},
	OpSum:              {0, 1},
	OpBroadcast:        {0, 0},
	OpSumRows:          {0, 1},
	OpFill:             {-1, 0},
	OpSumSquares:       {0, 2},
	OpClipNorm:         {0, 1},
	OpAdamW:            {0, 16}, // clip 1, decay 1, m 3, v 4, update 7
	OpCast:             {0, 0},
	OpRowMoments:       {0, 5}, // mean 1, deviation 1, the sums of it 1 and of its square 2
	OpSummary:          {0, 6},
	OpTopMagnitudes:    {0, 48}, // 16 times 3 comparisons
	OpDots:             {0, 6},
	OpAdamWStats:       {0, 22}, // adamw's 16, dots' 6
	OpRowAngle:         {0, 12}, // squares 4, directions 2, difference and sum 2, squares 4
	OpRowNorms:         {0, 2},
}

// Cost counts what a node has to do: floating-point operations, an FMA being two, and the bytes of its operands that it reads and writes, each once and
// whatever a cache saves. Products that a causal mask takes away do not count, nor does what a backend computes again, except that the
// gradient of attention needs its logits a second time.
func Cost(n *Node) (flops, bytes int64) {
	return nodeFlops(n), nodeBytes(n)
}

func nodeFlops(n *Node) int64 {
	switch n.Op {
	case OpMatMul:
		batch, m, cols, k := MatMulDims(n)
		flops := 2 * int64(batch) * int64(m) * int64(cols) * int64(k)
		if n.In[2] != nil {
			flops += int64(n.Out[0].Elems())
		}
		return flops
	case OpRowNorms:
		flops := int64(0)
		for _, v := range n.In {
			if v != nil {
				flops += elementCosts[n.Op].ops * int64(v.Elems())
			}
		}
		return flops
	case OpAttention: // q k and p v
		return 2 * causalProduct(n.In[0])
	case OpAttentionGrad: // q k again, do v, and three products for the gradients
		return 5 * causalProduct(n.In[1])
	}
	c := elementCosts[n.Op]
	if c.in < 0 {
		return 0
	}
	return int64(n.In[c.in].Elems()) * (c.ops + moreOps(n))
}

// moreOps is what attributes and optional operands add to elementCosts.
func moreOps(n *Node) int64 {
	here := func(v *Value, ops int64) int64 {
		if v == nil {
			return 0
		}
		return ops
	}
	switch n.Op {
	case OpRMSNorm, OpLayerNorm:
		return here(n.In[1], 1) + here(n.In[2], 1)
	case OpRMSNormGrad, OpLayerNormGrad:
		return here(n.In[2], 3) + here(n.In[3], 1) // u, and the gain's own gradient 2
	case OpQKNormRoPE:
		return qkNormOps(AttrOf[QKNormRoPEAttr](n).Norm, elementCosts[OpRMSNorm].ops, elementCosts[OpLayerNorm].ops) + here(n.In[1], 1)
	case OpQKNormRoPEGrad:
		return qkNormOps(AttrOf[QKNormRoPEAttr](n).Norm, elementCosts[OpRMSNormGrad].ops, elementCosts[OpLayerNormGrad].ops) + here(n.In[2], 3)
	case OpBroadcast, OpSummary:
		return here(n.In[1], 1)
	}
	return 0
}

func qkNormOps(kind QKNorm, rms, layer int64) int64 {
	switch kind {
	case QKNone:
		return 0
	case QKLayerNorm:
		return layer
	}
	return rms // L2 divides by another root
}

// causalProduct counts 2 operations for each element of each causal query-key pair of q (B, T, heads*h).
func causalProduct(q *Value) int64 {
	t := int64(q.shape[len(q.shape)-2])
	return int64(q.Elems()) * (t + 1)
}

func nodeBytes(n *Node) int64 {
	bytes := int64(0)
	for _, list := range [][]*Value{n.In, n.Out} {
		for _, v := range list {
			if v != nil {
				bytes += int64(v.Bytes())
			}
		}
	}
	if n.Op == OpEmbedding { // of the table, the rows that are looked up
		bytes += int64(n.Out[0].Bytes()) - int64(n.In[0].Bytes())
	}
	return bytes
}
