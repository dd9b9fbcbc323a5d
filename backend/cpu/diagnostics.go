package cpu

import (
	"math"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// rowMoments goes over deviations from the mean in float64.
func rowMoments(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	return c.overRows(len(out[0]), cols, func(_ *workerScratch, from, to int) {
		for row := from; row < to; row++ {
			x := in[0][row*cols : (row+1)*cols]
			mean := total(x) / float64(cols)
			out[0][row], out[1][row] = float32(mean), float32(deviations(x, mean)/float64(cols))
		}
	})
}

// deviations is the sum of (x - mean)².
func deviations(x []float32, mean float64) float64 {
	var a, b float64
	i := 0
	for ; i+2 <= len(x); i += 2 {
		u, v := float64(x[i])-mean, float64(x[i+1])-mean
		a += u * u
		b += v * v
	}
	if i < len(x) {
		u := float64(x[i]) - mean
		a += u * u
	}
	return a + b
}

// overBlocks is a reduction of n elements: blocks of so many, in parallel, give a part each, which finish puts together.
func overBlocks[T any](c *compiler, n, size int, block func(w *workerScratch, from, to int, part *T), finish func(parts []T)) kernel {
	parts := make([]T, (n+size-1)/size)
	body := func(worker, i int) {
		block(&c.scratch.workers[worker], i*size, min(n, (i+1)*size), &parts[i])
	}
	if len(parts) == 1 {
		return parallel(1, func(worker, _ int) { body(worker, 0); finish(parts) }) // beside other nodes' tasks: in the memory of its worker
	}
	return kernel{whole: func() {
		c.pool.For(len(parts), body)
		finish(parts)
	}}
}

type summaryPart struct {
	sum             float64
	min, max        float32
	magnitude       uint32 // its bits
	over, nonFinite int
}

func summary(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	threshold := math.Float32bits(graph.AttrOf[graph.SummaryAttr](n).Threshold) &^ signBit
	if in[1] != nil {
		c.scratch.grow(taskElems)
	}
	return overBlocks(c, len(in[0]), taskElems, func(w *workerScratch, from, to int, part *summaryPart) {
		x := in[0][from:to]
		if in[1] != nil {
			d := w.f32[0][:len(x)]
			for i, v := range in[1][from:to] {
				d[i] = x[i] - v
			}
			x = d
		}
		*part = summarize(x, threshold)
	}, func(parts []summaryPart) {
		all := parts[0]
		for _, p := range parts[1:] {
			all.sum += p.sum
			all.min, all.max, all.magnitude = min(all.min, p.min), max(all.max, p.max), max(all.magnitude, p.magnitude)
			all.over += p.over
			all.nonFinite += p.nonFinite
		}
		y := out[0]
		y[graph.SummarySum], y[graph.SummaryMin], y[graph.SummaryMax] = float32(all.sum), all.min, all.max
		y[graph.SummaryMagnitude] = math.Float32frombits(all.magnitude)
		y[graph.SummaryOver], y[graph.SummaryNonFinite] = float32(all.over), float32(all.nonFinite)
	})
}

const (
	signBit  = 1 << 31
	infinity = 0x7f800000 // its bits; those of a NaN without the sign are above
)

// summarize compares magnitudes by their bits, which are in the same order; a NaN is above all.
func summarize(x []float32, threshold uint32) summaryPart {
	p := summaryPart{min: x[0], max: x[0]}
	for _, v := range x {
		p.sum += float64(v)
		if v < p.min {
			p.min = v
		}
		if v > p.max {
			p.max = v
		}
		a := math.Float32bits(v) &^ signBit
		p.magnitude = max(p.magnitude, a)
		if a > threshold {
			p.over++
		}
		if a >= infinity {
			p.nonFinite++
		}
	}
	if p.magnitude > infinity {
		p.min, p.max = math.Float32frombits(p.magnitude), math.Float32frombits(p.magnitude)
	}
	return p
}

// topMagnitudes keeps the largest of each block in a heap, then those of all.
func topMagnitudes(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	k := len(out[0])
	all := largest{keys: make([]uint32, 0, k), k: k}
	return overBlocks(c, len(in[0]), 8*taskElems, func(_ *workerScratch, from, to int, part *largest) {
		if part.keys == nil {
			*part = largest{make([]uint32, 0, k), k}
		}
		part.keys = part.keys[:0]
		for _, v := range in[0][from:to] {
			part.add(math.Float32bits(v) &^ signBit)
		}
	}, func(parts []largest) {
		all.keys = all.keys[:0]
		for _, p := range parts {
			for _, a := range p.keys {
				all.add(a)
			}
		}
		slices.Sort(all.keys)
		clear(out[0])
		for i, a := range all.keys {
			out[0][len(all.keys)-1-i] = math.Float32frombits(a)
		}
	})
}

// largest is a heap of the k largest keys so far, the smallest of them at its root.
type largest struct {
	keys []uint32
	k    int
}

func (h *largest) add(key uint32) {
	if len(h.keys) == h.k {
		if key > h.keys[0] {
			h.keys[0] = key
			h.sink()
		}
		return
	}
	h.keys = append(h.keys, key)
	for i := len(h.keys) - 1; i > 0 && h.keys[i] < h.keys[(i-1)/2]; i = (i - 1) / 2 {
		h.keys[i], h.keys[(i-1)/2] = h.keys[(i-1)/2], h.keys[i]
	}
}

// sink brings the root to its place.
func (h *largest) sink() {
	for i := 0; 2*i+1 < len(h.keys); {
		next := 2*i + 1
		if next+1 < len(h.keys) && h.keys[next+1] < h.keys[next] {
			next++
		}
		if h.keys[i] <= h.keys[next] {
			return
		}
		h.keys[i], h.keys[next] = h.keys[next], h.keys[i]
		i = next
	}
}

// dotsPart is u·v, |u|² and |v|² so far.
type dotsPart struct{ uv, uu, vv float64 }

func (p dotsPart) plus(u, v float64) dotsPart {
	return dotsPart{p.uv + u*v, p.uu + u*u, p.vv + v*v}
}

func sumDots(y []float32) func(parts []dotsPart) {
	return func(parts []dotsPart) {
		var s dotsPart
		for _, p := range parts {
			s = dotsPart{s.uv + p.uv, s.uu + p.uu, s.vv + p.vv}
		}
		y[graph.DotsProduct], y[graph.DotsU], y[graph.DotsV] = float32(s.uv), float32(s.uu), float32(s.vv)
	}
}

func dots(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	return overBlocks(c, len(in[0]), taskElems, func(_ *workerScratch, from, to int, part *dotsPart) {
		*part = dotsOf(in[0][from:to], in[1][from:to])
	}, sumDots(out[0]))
}

func dotsOf(u, v []float32) dotsPart {
	var s dotsPart
	for i, x := range u {
		s = s.plus(float64(x), float64(v[i]))
	}
	return s
}

func adamWStats(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	m, v, g, hyper, clip := in[1], in[2], in[3], in[4], in[5]
	elems, format := n.In[0].Elems(), n.In[0].DType()
	decay := float64(graph.AttrOf[graph.AdamWAttr](n).Decay)
	var load func(y []float32, i int)
	if format != graph.F32 {
		load = loadOf(format, in[0], elems)
		c.scratch.grow(taskElems)
	}
	return overBlocks(c, elems, taskElems, func(w *workerScratch, from, to int, part *dotsPart) {
		var p []float32
		if load == nil {
			p = in[0][from:to]
		} else {
			p = w.f32[0][:to-from]
			load(p, from)
		}
		if clip[0] == 0 {
			*part = dotsPart{vv: deviations(p, 0)}
			return
		}
		*part = updateDots(p, m[from:to], v[from:to], g[from:to], hyper, float64(clip[0]), decay)
	}, sumDots(out[0]))
}

// updateDots is of what AdamW adds to p, and of p.
func updateDots(p, m, v, g, hyper []float32, clip, decay float64) dotsPart {
	h := func(i int) float64 { return float64(hyper[i]) }
	beta1, beta2, eps, rate := h(graph.HyperBeta1), h(graph.HyperBeta2), h(graph.HyperEps), -h(graph.HyperLR)
	r1, r2, shrink := 1/h(graph.HyperBias1), 1/h(graph.HyperBias2), decay*h(graph.HyperWeightDecay)
	new1, new2 := 1-beta1, 1-beta2
	var s dotsPart
	for i, f := range p {
		x, grad := float64(f), clip*float64(g[i])
		first, second := beta1*float64(m[i])+new1*grad, beta2*float64(v[i])+new2*grad*grad
		s = s.plus(rate*(shrink*x+first*r1/(math.Sqrt(second*r2)+eps)), x)
	}
	return s
}

// rowAngle goes over the rows' directions in float64.
func rowAngle(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	cols := n.In[0].Shape().Last()
	return c.overRows(len(out[0]), cols, func(_ *workerScratch, from, to int) {
		for row := from; row < to; row++ {
			out[0][row] = float32(angle(in[0][row*cols:(row+1)*cols], in[1][row*cols:(row+1)*cols]))
		}
	})
}

// angle is over pi; see graph.Builder.RowAngle.
func angle(x, y []float32) float64 {
	part := dotsOf(x, y)
	reciprocal := func(square float64) float64 {
		if square == 0 {
			return 0
		}
		return 1 / math.Sqrt(square)
	}
	rx, ry := reciprocal(part.uu), reciprocal(part.vv)
	apart, along := 0.0, 0.0
	for i, u := range x {
		u, v := float64(u)*rx, float64(y[i])*ry
		apart += (u - v) * (u - v)
		along += (u + v) * (u + v)
	}
	if apart == 0 && along == 0 {
		return 0.5
	}
	return 2 / math.Pi * math.Atan2(math.Sqrt(apart), math.Sqrt(along))
}

func rowNorms(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	rows, centered := len(out[0]), graph.AttrOf[graph.RowNormsAttr](n).Centered
	return c.overRows(rows, len(in[0])/rows, func(_ *workerScratch, from, to int) {
		for row := from; row < to; row++ {
			norm := func(x []float32, centered bool) float64 {
				cols, mean := len(x)/rows, 0.0
				x = x[row*cols : (row+1)*cols]
				if centered {
					mean = total(x) / float64(cols)
				}
				return math.Sqrt(deviations(x, mean))
			}
			y := norm(in[0], centered)
			if in[1] != nil {
				y *= norm(in[1], false)
			}
			if in[2] != nil {
				y /= norm(in[2], false)
			}
			out[0][row] = float32(y)
		}
	})
}
