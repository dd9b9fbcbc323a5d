package graph

// AttentionAttr is the attribute of attention and its gradient.
type AttentionAttr struct {
	Heads, KVHeads int // KVHeads divides Heads
	HeadDim        int
	Scale          float64 // of the logits; 0 when the scale is an operand. Wide, so that 1/sqrt(HeadDim) is exact for a float64 reference
	SoftCap        float32 // logits become c tanh(s/c); 0: off
}

// Attention is causal grouped-query attention. Query head j reads key and value head j*KVHeads/Heads; for each query t:
//
//	s[u]   = scale q[t]·k[u], u = 0..t; with SoftCap c: c tanh(s[u]/c)
//	lse[t] = log sum over u of exp(s[u])
//	o[t]   = sum over u of exp(s[u] - lse[t]) v[u]
//
//	q, o (B, T, Heads*h); k, v (B, T, KVHeads*h); lse (B, Heads, T); scale (1) or nil
//
// o has q's format.
//
// The logits are never stored: memory is linear in T.
func (b *Builder) Attention(q, k, v, scale *Value, attr AttentionAttr) (o, lse *Value) {
	return b.attention(q, k, v, scale, attr, nil, nil)
}

// AttentionStats is Attention that also gives, for each query, the largest logit and the entropy of its weights in nats, from 0 (one key has all
// the weight) to log(t+1):
//
//	top[t]     = max over u of s[u]
//	entropy[t] = - sum over u of p[u] log p[u], p[u] = exp(s[u] - lse[t])
//
//	top, entropy (B, Heads, T)
func (b *Builder) AttentionStats(q, k, v, scale *Value, attr AttentionAttr) (o, lse, top, entropy *Value) {
	rows := Shape{q.shape[0], attr.Heads, q.shape[1]}
	top, entropy = b.Temp("top", F32, rows...), b.Temp("entropy", F32, rows...)
	o, lse = b.attention(q, k, v, scale, attr, top, entropy)
	return o, lse, top, entropy
}

func (b *Builder) attention(q, k, v, scale *Value, attr AttentionAttr, top, entropy *Value) (o, lse *Value) {
	checkHeads(OpAttention, q, attr.Heads, attr.HeadDim)
	checkHeads(OpAttention, k, attr.KVHeads, attr.HeadDim)
	wantFloat(OpAttention, q, k, v, scale)
	wantElems(OpAttention, k.Elems(), v)
	wantElems(OpAttention, 1, scale)
	if attr.Heads%attr.KVHeads != 0 || q.Elems()/attr.Heads != k.Elems()/attr.KVHeads || (scale != nil) != (attr.Scale == 0) {
		misuse("attention of %v over %v with %+v", q.shape, k.shape, attr)
	}
	o = b.Temp("attention", q.dtype, q.shape...)
	lse = b.Temp("lse", F32, q.shape[0], attr.Heads, q.shape[1])
	b.node(OpAttention, []*Value{q, k, v, scale}, []*Value{o, lse, top, entropy}, attr)
	return o, lse
}

// AttentionGrad recomputes p = exp(s - lse) and gives, with dp[t,u] = do[t]·v[u], delta[t] = do[t]·o[t],
// ds = p (dp - delta) (times 1 - (s/c)² with a SoftCap) (Dao 2022, algorithm 4):
//
//	dq[t] = scale sum over u of ds[t,u] k[u]
//	dk[u] = scale sum over t and the group's heads of ds[t,u] q[t]
//	dv[u] = sum over t and the group's heads of p[t,u] do[t]
//	dscale_rows[t] = sum over u of ds[t,u] q[t]·k[u]
//
//	do, o, dq like q; dk, dv like k; lse, delta, dscale_rows (B, Heads, T); dscale_rows is nil without a scale operand
func (b *Builder) AttentionGrad(do, q, k, v, o, lse, scale *Value, attr AttentionAttr) (dq, dk, dv, dscaleRows *Value) {
	wantElems(OpAttentionGrad, q.Elems(), do, o)
	dq = b.Temp("dq", q.dtype, q.shape...)
	dk = b.Temp("dk", k.dtype, k.shape...)
	dv = b.Temp("dv", v.dtype, v.shape...)
	delta := b.Temp("delta", F32, lse.shape...)
	if scale != nil {
		dscaleRows = b.Temp("dscale_rows", F32, lse.shape...)
	}
	b.node(OpAttentionGrad, []*Value{do, q, k, v, o, lse, scale}, []*Value{dq, dk, dv, delta, dscaleRows}, attr)
	return dq, dk, dv, dscaleRows
}

func gradAttention(s *gradState, n *Node, dy []*Value) {
	q, k, v, scale := n.In[0], n.In[1], n.In[2], n.In[3]
	dq, dk, dv, rows := s.b.AttentionGrad(dy[0], q, k, v, n.Out[0], n.Out[1], scale, AttrOf[AttentionAttr](n))
	s.giveOwned(q, dq)
	s.giveOwned(k, dk)
	s.giveOwned(v, dv)
	if s.wants(scale) {
		s.giveOwned(scale, s.b.Sum(rows, nil))
	}
}
