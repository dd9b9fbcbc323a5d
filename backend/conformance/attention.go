package conformance

import (
	"math"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

var attentionShapes = []struct {
	batch, seq, heads, kv, dim int
	scale                      bool // as an operand
	softCap                    float32
}{
	{1, 1, 1, 1, 2, false, 0},
	{2, 7, 2, 2, 6, false, 0},
	{1, 17, 4, 2, 10, true, 0},
	{2, 33, 3, 1, 16, false, 2},
	{1, 65, 6, 3, 32, true, 0},
	{1, 31, 2, 2, 64, false, 50},
	{3, 5, 8, 1, 2, true, 1.5},
	{1, 129, 1, 1, 8, false, 0},
	{1, 9, 2, 1, 128, false, 0},
	{1, 5, 2, 2, 256, true, 0},
	{1, 3, 1, 1, 130, false, 0},
}

// attentionShape is a row of the table as tensors.
type attentionShape struct {
	name        string
	attr        graph.AttentionAttr
	q, k        tensor
	rows, scale tensor
	special     bool
}

func attentionShapeList() []attentionShape {
	var list []attentionShape
	for _, s := range attentionShapes {
		a := attentionShape{
			name: dims(s.batch, s.seq) + " heads " + dims(s.heads, s.kv, s.dim),
			attr: graph.AttentionAttr{Heads: s.heads, KVHeads: s.kv, HeadDim: s.dim, SoftCap: s.softCap, Scale: 1 / math.Sqrt(float64(s.dim))},
			q:    f32(s.batch, s.seq, s.heads*s.dim), k: f32(s.batch, s.seq, s.kv*s.dim), rows: f32(s.batch, s.heads, s.seq),
			special: s.dim == 6 || s.dim == 10 || s.dim == 16}
		if s.scale {
			a.name += " scale"
			a.attr.Scale, a.scale = 0, f32(1).with(uniform(0.3, 1))
		}
		if s.softCap != 0 {
			a.name += " soft cap"
		}
		list = append(list, a)
	}
	return list
}

// extremes of q, k and v, which are the operands from first on.
func (a attentionShape) extremes(first int) []variant {
	q, k, v := first, first+1, first+2
	batch, seq, width := a.k.shape[0], a.k.shape[1], a.k.shape[2]
	key := func(operand, t int) func([][]float64) { // spoils an element at position t of the last sequence
		return func(in [][]float64) { in[operand][((batch-1)*seq+t)*width+width/2] = math.NaN() }
	}
	return []variant{
		{name: "logits of 1e4", set: scaleBy(1e4, q)},
		{name: "logits of 1e-30", set: scaleBy(1e-30, q)},
		{name: "equal logits", set: scaleBy(0, k)},
		{name: "values of 1e25", set: scaleBy(1e25, v)},
		{name: "NaN in the last key", nan: key(k, seq-1)},
		{name: "NaN in a key half way", nan: key(k, seq/2)},
		{name: "NaN in the last value", nan: key(v, seq-1)},
		{name: "NaN in a value half way", nan: key(v, seq/2)},
	}
}

func attentionCases() []opCase {
	var list []opCase
	for _, a := range attentionShapeList() {
		c := opCase{name: a.name, attr: a.attr, in: []tensor{a.q, a.k, a.k, a.scale}, out: []tensor{a.q, a.rows, {}, {}}}
		if a.special {
			c.special, c.extra = true, a.extremes(0)
		}
		list = append(list, c)
		c.name, c.out = c.name+" stats", append(c.out[:2:2], a.rows, a.rows)
		list = append(list, c)
	}
	return list
}

func attentionGradCases() []opCase {
	var list []opCase
	for _, a := range attentionShapeList() {
		c := opCase{name: a.name, attr: a.attr,
			in:  []tensor{a.q, a.q, a.k, a.k, a.q.with(derived), a.rows.with(derived), a.scale},
			out: []tensor{a.q, a.k, a.k, a.rows, {}}}
		if !a.scale.absent() {
			c.out[4] = a.rows
		}
		c.derive = func(in [][]float64) {
			inputs := []tensor{a.q, a.k, a.k, a.scale}
			out := runReference(graph.OpAttention, a.attr, inputs, []tensor{a.q, a.rows, {}, {}}, [][]float64{in[1], in[2], in[3], in[6]})
			copy(in[4], out[0])
			copy(in[5], out[1])
		}
		if a.special {
			c.special, c.extra = true, a.extremes(1)
		}
		list = append(list, c)
	}
	return list
}

// runReference computes one operator in float64, of inputs as they are rounded for the device.
func runReference(op graph.Op, attr any, in, out []tensor, data [][]float64) [][]float64 {
	g := graph.NewBuilder()
	declare := func(ts []tensor, prefix string) []*graph.Value {
		vs := make([]*graph.Value, len(ts))
		for i, t := range ts {
			if !t.absent() {
				vs[i] = g.Var(prefix+string(rune('0'+i)), t.dtype, t.shape...)
			}
		}
		return vs
	}
	ins, outs := declare(in, "in"), declare(out, "out")
	g.Append(op, ins, outs, attr)
	m := reference.New(g.Build(op.String()))
	c := opCase{in: in}
	c.roundInputs(data)
	for i, v := range ins {
		if v != nil {
			m.Set(v.Name(), data[i])
		}
	}
	if err := m.Run(); err != nil {
		panic("conformance: " + err.Error())
	}
	res := make([][]float64, len(outs))
	for i, v := range outs {
		if v != nil {
			res[i] = m.Get(v.Name())
		}
	}
	return res
}

// attentionNum walks over an attention's heads with error arithmetic.
type attentionNum struct {
	graph.AttentionAttr
	batch, seq int
	scale      num
}

func newAttentionNum(n *graph.Node, q *graph.Value, scale []num) attentionNum {
	a := attentionNum{AttentionAttr: graph.AttrOf[graph.AttentionAttr](n), batch: q.Shape()[0], seq: q.Shape()[1]}
	a.scale = num{a.Scale, unit * a.Scale} // rounded to float32
	if scale != nil {
		a.scale = scale[0]
	}
	return a
}

// query and key give a head of one position; row is a place in (B, Heads, T).
func (a attentionNum) query(x []num, b, j, t int) []num {
	return headNum(x, (b*a.seq+t)*a.Heads+j, a.HeadDim)
}

func (a attentionNum) key(x []num, b, j, u int) []num {
	return headNum(x, (b*a.seq+u)*a.KVHeads+j*a.KVHeads/a.Heads, a.HeadDim)
}

func (a attentionNum) row(b, j, t int) int { return (b*a.Heads+j)*a.seq + t }

func headNum(x []num, i, h int) []num { return x[i*h : (i+1)*h] }

// logit gives s of a query and a key, their dot product, and the slope of s over scale q·k.
func (a attentionNum) logit(q, k []num) (s, qk, slope num) {
	qk = dotNum(q, k)
	s = a.scale.mul(qk)
	if a.SoftCap == 0 {
		return s, qk, exact(1)
	}
	c := exact(float64(a.SoftCap))
	th := s.div(c).tanh()
	return th.mul(c), qk, exact(1).sub(th.mul(th))
}

// each calls f for every row.
func (a attentionNum) each(f func(b, j, t int)) {
	for b := range a.batch {
		for j := range a.Heads {
			for t := range a.seq {
				f(b, j, t)
			}
		}
	}
}

func topNum(s []num) num {
	top := num{v: math.Inf(-1)}
	for _, x := range s {
		top = num{math.Max(top.v, x.v), math.Max(top.e, x.e)} // a NaN stays
	}
	return top
}

// entropyNum is log(sum of exp(d)) - sum of exp(d) d / sum of exp(d), d = s - c, which is the same for every c; devices take about the
// largest logit. No term of either sum has another sign, so scaling them down block by block costs what it does in softmaxNum.
func entropyNum(s []num) num {
	top := exact(topNum(s).v)
	e, d := make([]num, len(s)), make([]num, len(s))
	ones := make([]num, len(s))
	for i := range s {
		if d[i] = s[i].sub(top); math.IsInf(d[i].v, -1) && !math.IsInf(top.v, 0) {
			d[i] = exact(0) // times a weight of 0
			continue
		}
		e[i], ones[i] = d[i].exp().loosen(fadeUnits(len(s))), exact(1)
	}
	sum, weighted := dotNum(e, ones), dotNum(e, d)
	return sum.log().sub(weighted.div(sum))
}

// fadeUnits is the rounding of n summed exponentials where the largest logit is found block by block, and what was summed is scaled down
// again at each new one: allowed are an exp and a product for every 8 logits.
func fadeUnits(n int) float64 { return float64((n+7)/8) * (funUnits + 1) }

// softmaxNum gives exp(s - lse) and lse.
func softmaxNum(s []num) (p []num, lse num) {
	top := math.Inf(-1)
	for _, x := range s {
		top = math.Max(top, x.v)
	}
	p = make([]num, len(s))
	for i, x := range s {
		p[i] = x.sub(exact(top)).exp().loosen(fadeUnits(len(s)))
	}
	total := sumNum(p...)
	for i := range p {
		p[i] = p[i].div(total)
	}
	return p, total.log().add(exact(top))
}

func attentionBound(n *graph.Node, in, out [][]num) {
	a := newAttentionNum(n, n.In[0], in[3])
	a.each(func(b, j, t int) {
		s := make([]num, t+1)
		for u := range s {
			s[u], _, _ = a.logit(a.query(in[0], b, j, t), a.key(in[1], b, j, u))
		}
		p, lse := softmaxNum(s)
		out[1][a.row(b, j, t)] = lse
		if out[2] != nil {
			out[2][a.row(b, j, t)], out[3][a.row(b, j, t)] = topNum(s), entropyNum(s)
		}
		o, v := a.query(out[0], b, j, t), make([]num, t+1)
		for i := range o {
			for u := range v {
				v[u] = a.key(in[2], b, j, u)[i]
			}
			o[i] = dotNum(p, v)
		}
	})
}

func attentionGradBound(n *graph.Node, in, out [][]num) {
	do, q, k, v, o, lse := in[0], in[1], in[2], in[3], in[4], in[5]
	a := newAttentionNum(n, n.In[1], in[6])
	dk, dv := make([][2][]num, len(k)), make([][2][]num, len(k)) // the factors of each element's sum
	a.each(func(b, j, t int) {
		row, qt, dot := a.row(b, j, t), a.query(q, b, j, t), a.query(do, b, j, t)
		delta := dotNum(dot, a.query(o, b, j, t))
		out[3][row] = delta
		ds, qks := make([]num, t+1), make([]num, t+1)
		for u := range ds {
			s, qk, slope := a.logit(qt, a.key(k, b, j, u))
			p := s.sub(lse[row]).exp()
			ds[u], qks[u] = p.mul(dotNum(dot, a.key(v, b, j, u)).sub(delta)).mul(slope), qk
			at := ((b*a.seq+u)*a.KVHeads + j*a.KVHeads/a.Heads) * a.HeadDim
			for i := range qt {
				push(&dk[at+i], ds[u].mul(a.scale), qt[i])
				push(&dv[at+i], p, dot[i])
			}
		}
		dq, ku := a.query(out[0], b, j, t), make([]num, t+1)
		for i := range dq {
			for u := range ku {
				ku[u] = a.key(k, b, j, u)[i]
			}
			dq[i] = dotNum(ds, ku).mul(a.scale)
		}
		if out[4] != nil {
			out[4][row] = dotNum(ds, qks)
		}
	})
	for i := range dk {
		out[1][i], out[2][i] = dotNum(dk[i][0], dk[i][1]), dotNum(dv[i][0], dv[i][1])
	}
}

func push(factors *[2][]num, a, b num) {
	factors[0], factors[1] = append(factors[0], a), append(factors[1], b)
}
