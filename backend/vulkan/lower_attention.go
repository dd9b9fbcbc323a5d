package vulkan

import (
	"fmt"

	"github.com/vktrain/vktrain/graph"
)

// attentionTile is how many queries or keys a tile of attention.glsl has for a node: 32, or 16 on devices with less shared memory than that takes. A larger
// one loads a key for more queries; a smaller one gives more workgroups, of which more fit, and leaves less of the diagonal idle. So where both fit, 16 is
// taken if it was measured to be faster.
func (d *deviceCaps) attentionTile(n *graph.Node) int {
	if d.sharedBytes < 32<<10 {
		return 16
	}
	if d.chosen != nil {
		small := n.Op.String() + "_16"
		if d.chosen(n, attentionShape(n), []string{n.Op.String(), small}) == small {
			return 16
		}
	}
	return 32
}

// attentionShape names all that the time of attention, or of its gradient, depends on. Statistics are not in it: attention has the same tiles with them.
func attentionShape(n *graph.Node) string {
	at, first := graph.AttrOf[graph.AttentionAttr](n), n.In[0] // q, or do, which is like it
	s := fmt.Sprintf("%d of %d, %d/%d heads of %d", first.Shape()[0], first.Shape()[1], at.Heads, at.KVHeads, at.HeadDim)
	if at.SoftCap != 0 {
		s += " capped"
	}
	return s + " " + first.DType().String()
}

// attentionPush is the block of attention.glsl.
type attentionPush struct {
	Positions, Heads, KVHeads, Tiles, Count uint32
	ScaleValue, Cap                         float32
}

// attention is a pass with `parts` workgroups for each tile of each of so many heads of the batch. Of what it binds, those of activations are numbered in
// order.
func (d *deviceCaps) attention(kernel string, n *graph.Node, tile int, q, scale *graph.Value, heads, parts int, activations []*graph.Value, bind ...*graph.Value) dispatch {
	at := graph.AttrOf[graph.AttentionAttr](n)
	batch, positions := q.Shape()[0], q.Shape()[1]
	tiles := ceilDiv(positions, tile)
	count := batch * heads * tiles
	kernel, spec := forFormats(n, kernel, []uint32{uint32(at.HeadDim), flag(at.SoftCap != 0), flag(scale != nil)}, activations...)
	if tile == 16 {
		kernel += "_16"
	}
	return dispatch{
		kernel: kernel, spec: spec,
		push: attentionPush{
			uint32(positions), uint32(at.Heads), uint32(at.KVHeads), uint32(tiles), uint32(count), float32(at.Scale), at.SoftCap,
		},
		bind: bind, groups: d.grid(count * parts),
	}
}

func (d *deviceCaps) checkAttention(n *graph.Node, tile int, q *graph.Value, sharing int) error {
	h := graph.AttrOf[graph.AttentionAttr](n).HeadDim
	if h > maxHeadDim {
		return d.unsupported(n, "heads of %d elements, the kernel takes at most %d", h, maxHeadDim)
	}
	// Loads, products and sums of each pair of tiles.
	rounds := ceilDiv(h, 64)*(2*min(h+3, 64)+68) + 40
	return d.checkLoops(n, rounds*sharing*ceilDiv(q.Shape()[1], tile))
}

func lowerAttention(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	tile := d.attentionTile(n)
	if err := d.checkAttention(n, tile, n.In[0], 1); err != nil {
		return nil, err
	}
	q, k, v, scale, o, lse := n.In[0], n.In[1], n.In[2], n.In[3], n.Out[0], n.Out[1]
	heads := graph.AttrOf[graph.AttentionAttr](n).Heads
	kernel, bind := "attention", []*graph.Value{q, k, v, scale, o, lse}
	if top, entropy := n.Out[2], n.Out[3]; top != nil {
		kernel, bind = "attention_stats", append(bind, top, entropy)
	}
	return []dispatch{d.attention(kernel, n, tile, q, scale, heads, 1, []*graph.Value{q, k, v, o}, bind...)}, nil
}

type attentionDeltaPush struct{ RowCount, N, Heads, Positions uint32 }

// lowerAttentionGrad: delta, then dq, then dk and dv. The last two are independent of each other.
func lowerAttentionGrad(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	at := graph.AttrOf[graph.AttentionAttr](n)
	tile := d.attentionTile(n)
	if err := d.checkAttention(n, tile, n.In[1], at.Heads/at.KVHeads); err != nil {
		return nil, err
	}
	do, q, k, v, o, lse, scale := n.In[0], n.In[1], n.In[2], n.In[3], n.In[4], n.In[5], n.In[6]
	dq, dk, dv, delta, dscale := n.Out[0], n.Out[1], n.Out[2], n.Out[3], n.Out[4]
	rows := delta.Elems()
	lanes := d.rowLanes(at.HeadDim / perThread(n))
	kernel, spec := forFormats(n, "attention_delta", []uint32{uint32(lanes)}, do, o)
	first := dispatch{
		kernel: kernel, spec: spec,
		push: attentionDeltaPush{uint32(rows), uint32(at.HeadDim), uint32(at.Heads), uint32(q.Shape()[1])},
		bind: []*graph.Value{do, o, delta}, groups: d.grid(ceilDiv(rows, d.threads()/lanes)),
	}
	second := d.attention("attention_grad_q", n, tile, q, scale, at.Heads, 1, []*graph.Value{do, q, k, v, dq}, do, q, k, v, lse, scale, delta, dq, dscale)
	second.barrier = true
	parts := 1
	kernel = "attention_grad_kv_64"
	if at.HeadDim > 64 {
		kernel, parts = "attention_grad_kv_128", ceilDiv(at.HeadDim, 128)
	}
	third := d.attention(kernel, n, tile, q, scale, at.KVHeads, parts, []*graph.Value{do, q, k, v, dk, dv}, do, q, k, v, lse, scale, delta, dk, dv)
	return []dispatch{first, second, third}, nil
}
