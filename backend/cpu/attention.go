package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/gemm"
	"github.com/vktrain/vktrain/graph"
)

// queryBlock is how many queries' logits are held at once: memory is linear in the sequence.
const queryBlock = 48

// heads addresses the heads of q, k and v in tensors (B, T, heads*h).
type heads struct {
	at            graph.AttentionAttr
	positions     int
	qRow, kRow, h int
}

func headsOf(n *graph.Node, q *graph.Value) heads {
	at := graph.AttrOf[graph.AttentionAttr](n)
	return heads{at: at, positions: q.Shape()[1], qRow: at.Heads * at.HeadDim, kRow: at.KVHeads * at.HeadDim, h: at.HeadDim}
}

// query is the matrix of query positions from.. of a head.
func (s heads) query(x []float32, batch, head, from int) gemm.Matrix {
	return gemm.Matrix{Data: x[(batch*s.positions+from)*s.qRow+head*s.h:], Row: s.qRow, Col: 1}
}

// key is the matrix of all keys or values of a key head.
func (s heads) key(x []float32, batch, head int) gemm.Matrix {
	return gemm.Matrix{Data: x[batch*s.positions*s.kRow+head*s.h:], Row: s.kRow, Col: 1}
}

func transposed(m gemm.Matrix) gemm.Matrix { return gemm.Matrix{Data: m.Data, Row: m.Col, Col: m.Row} }

func (s heads) row(m gemm.Matrix, i int) []float32 { return m.Data[i*m.Row : i*m.Row+s.h] }

// allFinite tells whether the first rows of a head are finite: then a masked weight of 0 takes nothing from them.
func (s heads) allFinite(m gemm.Matrix, rows int) bool {
	for i := range rows {
		if !finite(s.row(m, i)) {
			return false
		}
	}
	return true
}

// scale is the logits' factor: the operand if there is one.
func (s heads) scale(operand []float32) float32 {
	if operand != nil {
		return operand[0]
	}
	return float32(s.at.Scale)
}

// capped applies the soft-cap to a logit.
func (s heads) capped(x float32) float32 {
	if s.at.SoftCap == 0 {
		return x
	}
	limit := float64(s.at.SoftCap)
	return float32(limit * math.Tanh(float64(x)/limit))
}

// attention: a task is a block of queries of a head. Blocks of keys after it are skipped.
func attention(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	q, k, v, o, lse := in[0], in[1], in[2], out[0], out[1]
	s := headsOf(n, n.In[0])
	blocks := (s.positions + queryBlock - 1) / queryBlock
	batch := n.In[0].Shape()[0]
	c.scratch.grow(queryBlock * s.positions)
	return parallel(batch*s.at.Heads*blocks, func(worker, task int) {
		w := &c.scratch.workers[worker]
		from := (blocks - 1 - task%blocks) * queryBlock // the longest first
		head, b := task/blocks%s.at.Heads, task/blocks/s.at.Heads
		rows, keys := min(queryBlock, s.positions-from), min(from+queryBlock, s.positions)
		qm, om := s.query(q, b, head, from), s.query(o, b, head, from)
		km, vm := s.key(k, b, head/(s.at.Heads/s.at.KVHeads)), s.key(v, b, head/(s.at.Heads/s.at.KVHeads))
		p := w.f32[0]
		w.mul.Mul(rows, keys, s.h, qm, transposed(km), p, keys, false)
		scale := s.scale(in[3])
		for i := range rows {
			x := p[i*keys : i*keys+from+i+1]
			for j, l := range x {
				x[j] = s.capped(l * scale)
			}
			top, total := largest(x), 0.0
			for j, l := range x {
				e := exp(l - top)
				x[j] = e
				total += float64(e)
			}
			lse[(b*s.at.Heads+head)*s.positions+from+i] = float32(float64(top) + math.Log(total))
			f := float32(1 / total)
			for j := range x {
				x[j] *= f
			}
			clear(p[i*keys+len(x) : (i+1)*keys])
		}
		if s.allFinite(vm, keys) {
			w.mul.Mul(rows, s.h, keys, gemm.Matrix{Data: p, Row: keys, Col: 1}, vm, om.Data, om.Row, false)
			return
		}
		for i := range rows {
			y := s.row(om, i)
			clear(y)
			for j, e := range p[i*keys : i*keys+from+i+1] {
				axpy(y, e, s.row(vm, j))
			}
		}
	})
}

// axpy is y += a x.
func axpy(y []float32, a float32, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] += a * v
	}
}

// attentionGrad: a task is a key head, whose dk and dv sum over the queries of the heads that read it, in order.
func attentionGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	do, q, k, v, o, lse := in[0], in[1], in[2], in[3], in[4], in[5]
	dq, dk, dv, delta, dscale := out[0], out[1], out[2], out[3], out[4]
	s := headsOf(n, n.In[1])
	batch, sharing := n.In[1].Shape()[0], s.at.Heads/s.at.KVHeads
	c.scratch.grow(queryBlock * s.positions)
	return parallel(batch*s.at.KVHeads, func(worker, task int) {
		w := &c.scratch.workers[worker]
		b, kv := task/s.at.KVHeads, task%s.at.KVHeads
		km, vm, dkm, dvm := s.key(k, b, kv), s.key(v, b, kv), s.key(dk, b, kv), s.key(dv, b, kv)
		for j := range s.positions {
			clear(s.row(dkm, j))
			clear(s.row(dvm, j))
		}
		scale := s.scale(in[6])
		for head := kv * sharing; head < (kv+1)*sharing; head++ {
			stat := (b*s.at.Heads + head) * s.positions
			for from := 0; from < s.positions; from += queryBlock {
				rows, keys := min(queryBlock, s.positions-from), min(from+queryBlock, s.positions)
				qm, dom, dqm := s.query(q, b, head, from), s.query(do, b, head, from), s.query(dq, b, head, from)
				om := s.query(o, b, head, from)
				p, ds := w.f32[0], w.f32[1]
				w.mul.Mul(rows, keys, s.h, qm, transposed(km), p, keys, false)
				w.mul.Mul(rows, keys, s.h, dom, transposed(vm), ds, keys, false)
				for i := range rows {
					t := from + i
					d := float32(dot(s.row(dom, i), s.row(om, i)))
					delta[stat+t] = d
					x, g := p[i*keys:i*keys+t+1], ds[i*keys:i*keys+t+1]
					sum := s.logitGrads(x, g, scale, lse[stat+t], d)
					if dscale != nil {
						dscale[stat+t] = sum
					}
					clear(p[i*keys+t+1 : (i+1)*keys])
					clear(ds[i*keys+t+1 : (i+1)*keys])
				}
				pm, dsm := gemm.Matrix{Data: p, Row: keys, Col: 1}, gemm.Matrix{Data: ds, Row: keys, Col: 1}
				if s.allFinite(km, keys) && s.allFinite(qm, rows) && s.allFinite(dom, rows) {
					w.mul.Mul(rows, s.h, keys, dsm, km, dqm.Data, dqm.Row, false)
					w.mul.Mul(keys, s.h, rows, transposed(dsm), qm, dkm.Data, dkm.Row, true)
					w.mul.Mul(keys, s.h, rows, transposed(pm), dom, dvm.Data, dvm.Row, true)
					continue
				}
				for i := range rows {
					clear(s.row(dqm, i))
					for j := range from + i + 1 {
						axpy(s.row(dqm, i), ds[i*keys+j], s.row(km, j))
						axpy(s.row(dkm, j), ds[i*keys+j], s.row(qm, i))
						axpy(s.row(dvm, j), p[i*keys+j], s.row(dom, i))
					}
				}
			}
		}
	})
}

// logitGrads turns a query's products x = q·k and g = do·v into p = exp(s - lse) and scale ds, in place, and returns sum of ds x.
func (s heads) logitGrads(x, g []float32, scale, lse, delta float32) float32 {
	sum := 0.0
	for j, l := range x {
		a := s.capped(l * scale)
		e := exp(a - lse)
		d := e * (g[j] - delta)
		if s.at.SoftCap != 0 {
			u := a / s.at.SoftCap
			d *= 1 - u*u
		}
		sum += float64(d) * float64(l)
		x[j], g[j] = e, d*scale
	}
	return float32(sum)
}
