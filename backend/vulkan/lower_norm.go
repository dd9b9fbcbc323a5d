package vulkan

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

type normPush struct {
	RowCount, N uint32
	InvN, Eps   float32
}

func lowerNorm(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x, gain, addend, y := n.In[0], n.In[1], n.In[2], n.Out[0]
	rows, length := x.Shape().Rows(), x.Shape().Last()
	lanes := d.rowLanes(length / perThread(n))
	spec := []uint32{uint32(lanes), flag(n.Op == graph.OpLayerNorm), flag(gain != nil), flag(addend != nil)}
	kernel, spec := forFormats(n, "norm", spec, x, addend, y)
	return []dispatch{{
		kernel: kernel, spec: spec,
		push: normPush{uint32(rows), uint32(length), 1 / float32(length), graph.AttrOf[graph.NormAttr](n).Eps},
		bind: []*graph.Value{x, gain, addend, y}, groups: d.grid(ceilDiv(rows, d.threads()/lanes)),
	}}, nil
}

// normGradKept is KEPT of norm_grad.comp.
const normGradKept = 8

type normGradPush struct {
	RowCount, N, Span uint32
	InvN, Eps         float32
}

func lowerNormGrad(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return d.normGrad(n, graph.RowsPerPart(n.In[1].Shape().Rows()))
}

// normGrad sums `part` rows to each of the gain's partial gradient, if there is one.
func (d *deviceCaps) normGrad(n *graph.Node, part int) ([]dispatch, error) {
	dy, x, gain, addend, dx, dgain := n.In[0], n.In[1], n.In[2], n.In[3], n.Out[0], n.Out[1]
	rows, length := x.Shape().Rows(), x.Shape().Last()
	// A longer row than a lane can keep column sums of must have the workgroup to itself.
	lanes := max(d.rowLanes(length/perThread(n)), d.lanesFor(length, normGradKept))
	span := d.threads() / lanes
	if gain != nil {
		span = part
	}
	if err := d.checkLoops(n, ceilDiv(span, d.threads()/lanes)*(5*ceilDiv(length, lanes)+60)); err != nil {
		return nil, err
	}
	spec := []uint32{uint32(lanes), flag(n.Op == graph.OpLayerNormGrad), flag(gain != nil), flag(addend != nil)}
	kernel, spec := forFormats(n, "norm_grad", spec, dy, x, addend, dx)
	return []dispatch{{
		kernel: kernel, spec: spec,
		push: normGradPush{uint32(rows), uint32(length), uint32(span), 1 / float32(length), graph.AttrOf[graph.NormAttr](n).Eps},
		bind: []*graph.Value{dy, x, gain, addend, dx, dgain}, groups: d.grid(ceilDiv(rows, span)),
	}}, nil
}

// qkNormPush is the block of qk_norm_rope.glsl.
type qkNormPush struct {
	Powers01, Powers23, Powers45                        uint128
	Power6                                              uint64Words
	RowCount, HalfDim, Heads, Positions, FirstRow, Span uint32
	InvN, Eps                                           float32
}

type (
	uint128     [4]uint32
	uint64Words [2]uint32
)

// maxHeadDim is the longest head that the RoPE and attention kernels take.
const maxHeadDim = 256

// q64 is x, 0 to 1, as a fraction in 64 bits, the upper word first.
func q64(x float64) [2]uint32 {
	hi, rest := math.Modf(math.Ldexp(x, 32))
	if hi >= 1<<32 {
		return [2]uint32{math.MaxUint32, math.MaxUint32}
	}
	return [2]uint32{uint32(hi), uint32(math.Ldexp(rest, 32))}
}

// qkRows says which heads of positions, in order (b, t, head), a tensor has: those of sequences of so many positions, from a first one on; and how many of them
// each row of a gain's partial gradient is the sum of.
type qkRows struct{ positions, first, part int }

func allQKRows(n *graph.Node, x *graph.Value) qkRows {
	return qkRows{positions: x.Shape()[1], part: graph.RowsPerPart(x.Elems() / graph.AttrOf[graph.QKNormRoPEAttr](n).HeadDim)}
}

func newQKNormPush(x *graph.Value, at graph.QKNormRoPEAttr, which qkRows, span int) qkNormPush {
	var powers [8][2]uint32
	for b := range 7 {
		powers[b] = q64(math.Pow(float64(at.Theta), -math.Ldexp(1, b+1)/float64(at.HeadDim)))
	}
	pair := func(b int) uint128 {
		return uint128{powers[b][0], powers[b][1], powers[b+1][0], powers[b+1][1]}
	}
	invN := 1 / float32(at.HeadDim)
	if at.Norm == graph.QKL2 {
		invN = 1
	}
	return qkNormPush{
		Powers01: pair(0), Powers23: pair(2), Powers45: pair(4), Power6: powers[6],
		RowCount: uint32(x.Elems() / at.HeadDim), HalfDim: uint32(at.HeadDim / 2), Heads: uint32(at.Heads),
		Positions: uint32(which.positions), FirstRow: uint32(which.first), Span: uint32(span), InvN: invN, Eps: at.Eps,
	}
}

// qkNorms numbers the norms as qk_norm_rope.glsl does.
var qkNorms = map[graph.QKNorm]uint32{graph.QKNone: 0, graph.QKRMS: 1, graph.QKLayerNorm: 2, graph.QKL2: 3}

func (d *deviceCaps) checkRoPE(n *graph.Node, at graph.QKNormRoPEAttr) error {
	if at.HeadDim > maxHeadDim {
		return d.unsupported(n, "heads of %d elements, the kernel takes at most %d", at.HeadDim, maxHeadDim)
	}
	if at.Theta < 1 {
		return d.unsupported(n, "a RoPE base of %g, the kernel takes 1 and more", at.Theta)
	}
	return nil
}

// ropeSpan is how many rows a workgroup takes where no part of a gain's gradient says so: a workgroup makes its table of
// frequencies once, and there should be many of them all the same.
func ropeSpan(rows, slots int) int {
	return slots * min(max(rows/(slots*2048), 1), 16)
}

func lowerQKNormRoPE(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return d.qkNormRoPE(n, allQKRows(n, n.In[0]))
}

func (d *deviceCaps) qkNormRoPE(n *graph.Node, which qkRows) ([]dispatch, error) {
	x, gain, y := n.In[0], n.In[1], n.Out[0]
	at := graph.AttrOf[graph.QKNormRoPEAttr](n)
	if err := d.checkRoPE(n, at); err != nil {
		return nil, err
	}
	rows := x.Elems() / at.HeadDim
	lanes := d.lanesFor(at.HeadDim, 4)
	span := ropeSpan(rows, d.threads()/lanes)
	kernel, spec := forFormats(n, "qk_norm_rope", []uint32{uint32(lanes), qkNorms[at.Norm], flag(gain != nil)}, x, y)
	return []dispatch{{
		kernel: kernel, spec: spec, push: newQKNormPush(x, at, which, span),
		bind: []*graph.Value{x, gain, y}, groups: d.grid(ceilDiv(rows, span)),
	}}, nil
}

func lowerQKNormRoPEGrad(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return d.qkNormRoPEGrad(n, allQKRows(n, n.In[1]))
}

func (d *deviceCaps) qkNormRoPEGrad(n *graph.Node, which qkRows) ([]dispatch, error) {
	dy, x, gain, dx, dgain := n.In[0], n.In[1], n.In[2], n.Out[0], n.Out[1]
	at := graph.AttrOf[graph.QKNormRoPEAttr](n)
	if err := d.checkRoPE(n, at); err != nil {
		return nil, err
	}
	rows := x.Elems() / at.HeadDim
	lanes := d.lanesFor(at.HeadDim, 4)
	span := ropeSpan(rows, d.threads()/lanes)
	if gain != nil {
		span = which.part
	}
	if err := d.checkLoops(n, ceilDiv(span, d.threads()/lanes)*60); err != nil {
		return nil, err
	}
	kernel, spec := forFormats(n, "qk_norm_rope_grad", []uint32{uint32(lanes), qkNorms[at.Norm], flag(gain != nil)}, dy, x, dx)
	return []dispatch{{
		kernel: kernel, spec: spec, push: newQKNormPush(x, at, which, span),
		bind: []*graph.Value{dy, x, gain, dx, dgain}, groups: d.grid(ceilDiv(rows, span)),
	}}, nil
}
