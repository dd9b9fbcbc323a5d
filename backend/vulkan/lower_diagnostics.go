package vulkan

import "github.com/vktrain/vktrain/graph"

type rowMomentsPush struct {
	RowCount, N uint32
	InvN        float32
}

func lowerRowMoments(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x := n.In[0]
	rows, length := x.Shape().Rows(), x.Shape().Last()
	lanes := d.rowLanes(length)
	kernel, spec := forFormats(n, "row_moments", []uint32{uint32(lanes)}, x)
	return []dispatch{{
		kernel: kernel, spec: spec, push: rowMomentsPush{uint32(rows), uint32(length), 1 / float32(length)},
		bind: []*graph.Value{x, n.Out[0], n.Out[1]}, groups: d.grid(ceilDiv(rows, d.threads()/lanes)),
	}}, nil
}

// overChunks launches a kernel whose workgroups have a chunk of some tensors each, over parts of them that can be bound. first numbers a part's first chunk.
func (d *deviceCaps) overChunks(tensors []*graph.Value, chunk int, launch func(parts []*graph.Value, count, first int) dispatch) []dispatch {
	count := tensors[0].Elems()
	most := count
	for _, v := range tensors {
		if bound := int(d.maxBindBytes) / v.DType().Size(); bound < count {
			most = min(most, bound/chunk*chunk)
		}
	}
	var list []dispatch
	for from := 0; from < count; from += most {
		length := min(most, count-from)
		var parts []*graph.Value
		for _, v := range tensors {
			parts = append(parts, graph.Part(v, from, length))
		}
		part := launch(parts, length, from/chunk)
		part.groups = d.grid(ceilDiv(length, chunk))
		part.barrier = from > 0 // each writes some of the chunks' results, which it binds whole
		list = append(list, part)
	}
	return list
}

// spare is scratch memory for what chunks give, which is bound whole.
func (d *deviceCaps) spare(n *graph.Node, elems int) (*graph.Value, error) {
	if int64(elems)*4 > d.maxBindBytes {
		return nil, d.unsupported(n, "what is left of %q after one pass has %d bytes, kernels bind at most %d at once (maxStorageBufferRange)",
			n.In[0].Name(), elems*4, d.maxBindBytes)
	}
	return graph.Spare("chunks", graph.F32, elems), nil
}

// reduceEach is EACH of the kernels that reduce a tensor to some numbers: elements a thread.
const reduceEach = 64

type (
	summaryChunksPush struct {
		Count, First uint32
		Threshold    float32
	}
	countPush struct{ Count uint32 }
)

func lowerSummary(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	const words = 6
	x, chunk := n.In[0], reduceEach*d.threads()
	count := ceilDiv(x.Elems(), chunk)
	chunks, err := d.spare(n, count*words)
	if err != nil {
		return nil, err
	}
	kernel, spec := forFormats(n, "summary_chunks", nil, x)
	list := d.overChunks([]*graph.Value{x}, chunk, func(parts []*graph.Value, count, first int) dispatch {
		return dispatch{
			kernel: kernel, spec: spec, push: summaryChunksPush{uint32(count), uint32(first), graph.AttrOf[graph.SummaryAttr](n).Threshold},
			bind: []*graph.Value{parts[0], chunks},
		}
	})
	return append(list, dispatch{
		kernel: "summary", push: countPush{uint32(count)}, bind: []*graph.Value{chunks, n.Out[0]}, groups: [3]uint32{1, 1, 1}, barrier: true,
	}), nil
}

// topEach is EACH of top_magnitudes.comp.
const topEach = 16

type topMagnitudesPush struct{ Count, First, K uint32 }

// lowerTopMagnitudes takes the largest of chunks, of what these gave, and so on.
func lowerTopMagnitudes(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	k, chunk := graph.AttrOf[graph.TopMagnitudesAttr](n).K, topEach*d.threads()
	kernel, spec := forFormats(n, "top_magnitudes", nil, n.In[0])
	var list []dispatch
	for x := n.In[0]; ; kernel, spec = "top_magnitudes", nil {
		y := n.Out[0]
		chunks := ceilDiv(x.Elems(), chunk)
		if chunks > 1 {
			var err error
			if y, err = d.spare(n, chunks*k); err != nil {
				return nil, err
			}
		}
		level := d.overChunks([]*graph.Value{x}, chunk, func(parts []*graph.Value, count, first int) dispatch {
			return dispatch{
				kernel: kernel, spec: spec, push: topMagnitudesPush{uint32(count), uint32(first), uint32(k)}, bind: []*graph.Value{parts[0], y},
			}
		})
		level[0].barrier = len(list) > 0
		list = append(list, level...)
		if chunks == 1 {
			return list, nil
		}
		x = y
	}
}
