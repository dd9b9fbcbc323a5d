package cpu

import (
	"math"

	"github.com/vktrain/vktrain/backend/cpu/simd"
	"github.com/vktrain/vktrain/graph"
)

// queryBlock is how many queries' weights the backward pass holds at once: memory is linear in the sequence.
const queryBlock = 48

// heads addresses the heads of q, k and v in tensors (B, T, heads*h).
type heads struct {
	at              graph.AttentionAttr
	batch           int
	positions       int
	qRow, kRow, h   int
	wide            int // h rounded up to whole tiles
	padded, sharing int // positions rounded up to whole tiles; query heads that share a key head
}

func headsOf(n *graph.Node, q *graph.Value) heads {
	at := graph.AttrOf[graph.AttentionAttr](n)
	return heads{
		at: at, batch: q.Shape()[0], positions: q.Shape()[1], qRow: at.Heads * at.HeadDim, kRow: at.KVHeads * at.HeadDim, h: at.HeadDim,
		wide: roundUp(at.HeadDim, simd.NR), padded: roundUp(q.Shape()[1], queryBlock), sharing: at.Heads / at.KVHeads,
	}
}

// panels is how many panels n columns fill.
func panels(n int) int { return (n + simd.NR - 1) / simd.NR }

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// matrix is the positions of a head: rows of h elements, ld apart.
type matrix struct {
	data []float32
	ld   int
	h    int
}

func (s heads) query(x []float32, batch, head int) matrix {
	return matrix{x[batch*s.positions*s.qRow+head*s.h:], s.qRow, s.h}
}

func (s heads) key(x []float32, batch, head int) matrix {
	return matrix{x[batch*s.positions*s.kRow+head*s.h:], s.kRow, s.h}
}

func (m matrix) row(i int) []float32 { return m.data[i*m.ld : i*m.ld+m.h] }

// finite tells that rows from..to-1 are finite and not huge: then a masked weight of 0 takes nothing from them.
func (m matrix) finite(from, to int) bool {
	for i := from; i < to; i++ {
		if s := simd.Dot(m.row(i), m.row(i)); s-s != 0 {
			return false
		}
	}
	return true
}

// tiled is m with rows of whole tiles: itself, or a copy with zeros after each row.
func (s heads) tiled(m matrix, scratch []float32) matrix {
	if s.h == s.wide {
		return m
	}
	c := matrix{scratch, s.wide, s.wide}
	for i := range s.positions {
		clear(c.row(i)[copy(c.row(i), m.row(i)):])
	}
	return c
}

// transposed packs the first n rows as panels of 16: element l of row j+i is at dst[j*h+l*16+i].
func (s heads) transposed(dst []float32, m matrix, n int) []float32 {
	for j := 0; j < n; j += simd.NR {
		simd.Transpose(dst[j*s.h:], simd.NR, m.data[j*m.ld:], m.ld, min(8, n-j), s.h)
		if rest := n - j - 8; rest > 0 {
			simd.Transpose(dst[j*s.h+8:], simd.NR, m.data[(j+8)*m.ld:], m.ld, min(8, rest), s.h)
		}
	}
	return dst
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

// attention: a task is some queries of the heads that share a key head, a tile at a time; keys after a tile's last are skipped.
func attention(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	q, k, v, o, lse, top, entropy := in[0], in[1], in[2], out[0], out[1], out[2], out[3]
	s := headsOf(n, n.In[0])
	// Each task packs the keys again, so there are no more of them than the workers need.
	groups := s.batch * s.at.KVHeads
	chunks := max(1, min((4*c.pool.workers+groups-1)/groups, s.positions/queryBlock))
	c.scratch.growAttention(2*s.padded*s.wide + simd.MaxMR*(s.padded+s.wide) + 2*s.padded)
	return parallel(groups*chunks, func(worker, task int) {
		carve := carver(c.scratch.workers[worker].attention)
		kt, values := carve.take(s.padded*s.h), carve.take(s.padded*s.wide)
		p, y := carve.take(simd.MaxMR*s.padded), carve.take(simd.MaxMR*s.wide)
		logits, exps := carve.take(s.padded), carve.take(s.padded)
		chunk := chunks - 1 - task%chunks // the longest first
		b, kv := task/chunks/s.at.KVHeads, task/chunks%s.at.KVHeads
		from, to := chunk*s.positions/chunks, (chunk+1)*s.positions/chunks
		vm := s.key(v, b, kv)
		s.transposed(kt, s.key(k, b, kv), to)
		finite := vm.finite(0, to)
		vt := s.tiled(vm, values)
		for head := kv * s.sharing; head < (kv+1)*s.sharing; head++ {
			qm, om := s.query(q, b, head), s.query(o, b, head)
			first := (b*s.at.Heads + head) * s.positions
			stat := lse[first:]
			for t := from; t < to; t += simd.MR {
				rows := min(simd.MR, to-t)
				keys := t + rows
				simd.Tile(rows, panels(keys), s.h, qm.data[t*qm.ld:], qm.ld, 1, kt, simd.NR, s.h*simd.NR, p, s.padded, false)
				var norm [simd.MaxMR]float32
				for i := range rows {
					if top != nil {
						top[first+t+i], entropy[first+t+i] = s.stats(p[i*s.padded:i*s.padded+t+i+1], logits, exps, s.scale(in[3]))
					}
					norm[i], stat[t+i] = s.weights(p[i*s.padded:i*s.padded+t+i+1], s.scale(in[3]))
					clear(p[i*s.padded+t+i+1 : i*s.padded+keys])
				}
				if !finite {
					for i := range rows {
						dst := om.row(t + i)
						clear(dst)
						for j, e := range p[i*s.padded : i*s.padded+t+i+1] {
							simd.Axpy(dst, e*norm[i], vm.row(j))
						}
					}
					continue
				}
				simd.Tile(rows, panels(s.h), keys, p, s.padded, 1, vt.data, vt.ld, simd.NR, y, s.wide, false)
				for i := range rows {
					simd.Scale(om.row(t+i), y[i*s.wide:i*s.wide+s.h], norm[i])
				}
			}
		}
	})
}

// weights turns a query's products into e^(s - max) in place, and returns 1 / their sum and the log-sum-exp.
func (s heads) weights(x []float32, scale float32) (norm, lse float32) {
	if s.at.SoftCap != 0 || !(scale >= 0) {
		for j, l := range x {
			x[j] = s.capped(l * scale)
		}
		scale = 1
	}
	top := simd.Max(x) * scale
	total := simd.ExpScaleSum(x, x, scale, top)
	return 1 / total, float32(float64(top) + math.Log(float64(total)))
}

// stats gives the largest of a query's logits, and the entropy of their softmax, with two buffers of as many elements.
func (s heads) stats(x, logits, exps []float32, scale float32) (top, entropy float32) {
	logits, exps = logits[:len(x)], exps[:len(x)]
	simd.Scale(logits, x, scale)
	if s.at.SoftCap != 0 {
		for j, l := range logits {
			logits[j] = s.capped(l)
		}
	}
	top = simd.Max(logits)
	for j, l := range logits {
		if l -= top; l < noWeight {
			l = noWeight
		}
		logits[j] = l
	}
	sum := simd.ExpScaleSum(exps, logits, 1, 0)
	if math.IsNaN(float64(sum)) && !math.IsInf(float64(top), 1) {
		return sum, sum
	}
	return top, float32(math.Log(float64(sum)) - float64(simd.Dot(exps, logits))/float64(sum))
}

// noWeight is a logit below the largest from which its exponential is 0.
const noWeight = -200

// attentionGrad: a task is a key head, whose dk and dv sum over the queries of the heads that read it, in order.
func attentionGrad(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	do, q, k, v, o, lse := in[0], in[1], in[2], in[3], in[4], in[5]
	dq, dk, dv, delta, dscale := out[0], out[1], out[2], out[3], out[4]
	s := headsOf(n, n.In[1])
	copies := 0
	if s.h != s.wide {
		copies = 3
	}
	c.scratch.growAttention(2*s.padded*s.h + (2+copies)*s.padded*s.wide + queryBlock*(2*s.padded+s.wide))
	return parallel(s.batch*s.at.KVHeads, func(worker, task int) {
		carve := carver(c.scratch.workers[worker].attention)
		b, kv := task/s.at.KVHeads, task%s.at.KVHeads
		km, vm := s.key(k, b, kv), s.key(v, b, kv)
		g := gradBlock{
			heads: s, kt: s.transposed(carve.take(s.padded*s.h), km, s.positions), vt: s.transposed(carve.take(s.padded*s.h), vm, s.positions),
			dk: carve.take(s.padded * s.wide), dv: carve.take(s.padded * s.wide),
			p: carve.take(queryBlock * s.padded), ds: carve.take(queryBlock * s.padded), y: carve.take(queryBlock * s.wide),
			k: km, finite: km.finite(0, s.positions), scale: s.scale(in[6]),
		}
		clear(g.dk)
		clear(g.dv)
		if copies > 0 {
			g.k = s.tiled(km, carve.take(s.padded*s.wide))
		}
		qCopy, doCopy := carve.take(s.padded*s.wide*copies/3), carve.take(s.padded*s.wide*copies/3)
		for head := kv * s.sharing; head < (kv+1)*s.sharing; head++ {
			g.q, g.do = s.tiled(s.query(q, b, head), qCopy), s.tiled(s.query(do, b, head), doCopy)
			g.o, g.dq = s.query(o, b, head), s.query(dq, b, head)
			stat := (b*s.at.Heads + head) * s.positions
			g.lse, g.delta = lse[stat:], delta[stat:]
			if dscale != nil {
				g.dscale = dscale[stat:]
			}
			for from := 0; from < s.positions; from += queryBlock {
				g.run(from, min(queryBlock, s.positions-from))
			}
		}
		dkm, dvm := s.key(dk, b, kv), s.key(dv, b, kv)
		for j := range s.positions {
			copy(dkm.row(j), g.dk[j*s.wide:])
			copy(dvm.row(j), g.dv[j*s.wide:])
		}
	})
}

// gradBlock is the gradient of a head, a block of queries at a time.
type gradBlock struct {
	heads
	kt, vt             []float32 // panels
	k, q, do, o, dq    matrix
	dk, dv             []float32 // rows of wide
	p, ds, y           []float32 // rows of padded; of wide
	lse, delta, dscale []float32
	finite             bool
	scale              float32
}

func (g *gradBlock) run(from, rows int) {
	ld := g.padded
	for i := 0; i < rows; i += simd.MR {
		t, n := from+i, min(simd.MR, rows-i)
		simd.Tile(n, panels(t+n), g.h, g.q.data[t*g.q.ld:], g.q.ld, 1, g.kt, simd.NR, g.h*simd.NR, g.p[i*ld:], ld, false)
		simd.Tile(n, panels(t+n), g.h, g.do.data[t*g.do.ld:], g.do.ld, 1, g.vt, simd.NR, g.h*simd.NR, g.ds[i*ld:], ld, false)
		for r := i; r < i+n; r++ {
			t := from + r
			d := simd.Dot(g.do.row(t)[:g.h], g.o.row(t))
			g.delta[t] = d
			sum := g.logitGrads(g.p[r*ld:r*ld+t+1], g.ds[r*ld:r*ld+t+1], g.scale, g.lse[t], d)
			if g.dscale != nil {
				g.dscale[t] = sum
			}
			clear(g.p[r*ld+t+1 : r*ld+from+rows])
			clear(g.ds[r*ld+t+1 : r*ld+from+rows])
		}
	}
	if !g.finite || !g.q.finite(from, from+rows) || !g.do.finite(from, from+rows) {
		g.rowByRow(from, rows)
		return
	}
	for i := 0; i < rows; i += simd.MR {
		t, n := from+i, min(simd.MR, rows-i)
		dst, stride := g.y, g.wide
		if g.h == g.wide {
			dst, stride = g.dq.data[t*g.dq.ld:], g.dq.ld
		}
		simd.Tile(n, panels(g.h), t+n, g.ds[i*ld:], ld, 1, g.k.data, g.k.ld, simd.NR, dst, stride, false)
		if g.h != g.wide {
			for r := range n {
				copy(g.dq.row(t+r), g.y[r*g.wide:])
			}
		}
	}
	for j := 0; j < from+rows; j += simd.MR {
		n := min(simd.MR, from+rows-j)
		first := max(0, j-from) // queries before see none of these keys
		q, do := g.q.data[(from+first)*g.q.ld:], g.do.data[(from+first)*g.do.ld:]
		simd.Tile(n, panels(g.h), rows-first, g.ds[first*ld+j:], 1, ld, q, g.q.ld, simd.NR, g.dk[j*g.wide:], g.wide, true)
		simd.Tile(n, panels(g.h), rows-first, g.p[first*ld+j:], 1, ld, do, g.do.ld, simd.NR, g.dv[j*g.wide:], g.wide, true)
	}
}

// rowByRow does without the weights that are masked: 0 times an inf or a NaN is no zero.
func (g *gradBlock) rowByRow(from, rows int) {
	for r := range rows {
		t := from + r
		dq := g.dq.row(t)
		clear(dq)
		for j := range t + 1 {
			p, ds := g.p[r*g.padded+j], g.ds[r*g.padded+j]
			simd.Axpy(dq, ds, g.k.row(j)[:g.h])
			simd.Axpy(g.dk[j*g.wide:j*g.wide+g.h], ds, g.q.row(t)[:g.h])
			simd.Axpy(g.dv[j*g.wide:j*g.wide+g.h], p, g.do.row(t)[:g.h])
		}
	}
}

// logitGrads turns a query's products x = q·k and g = do·v into p = exp(s - lse) and scale ds, in place, and returns sum of ds x.
func (s heads) logitGrads(x, g []float32, scale, lse, delta float32) float32 {
	if s.at.SoftCap == 0 {
		return simd.LogitGrad(x, g, scale, lse, delta)
	}
	sum := 0.0
	for j, l := range x {
		a := s.capped(l * scale)
		u := a / s.at.SoftCap
		e := simd.Exp(a - lse)
		d := e * (g[j] - delta) * (1 - u*u)
		sum += float64(d) * float64(l)
		x[j], g[j] = e, d*scale
	}
	return float32(sum)
}

// carver hands out pieces of a buffer.
type carver []float32

func (c *carver) take(n int) []float32 {
	piece := (*c)[:n:n]
	*c = (*c)[n:]
	return piece
}
