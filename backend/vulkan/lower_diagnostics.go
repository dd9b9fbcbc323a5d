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

// overChunks launches a kernel whose workgroups have a chunk of some tensors each, of those that are there, over parts that can be bound. first numbers a part's first chunk.
func (d *deviceCaps) overChunks(tensors []*graph.Value, chunk int, launch func(parts []*graph.Value, count, first int) dispatch) []dispatch {
	count := tensors[0].Elems()
	most := count
	for _, v := range tensors {
		if v == nil {
			continue
		}
		if bound := int(d.maxBindBytes) / v.DType().Size(); bound < count {
			most = min(most, bound/chunk*chunk)
		}
	}
	var list []dispatch
	for from := 0; from < count; from += most {
		length := min(most, count-from)
		var parts []*graph.Value
		for _, v := range tensors {
			if v != nil {
				v = graph.Part(v, from, length)
			}
			parts = append(parts, v)
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
	x, minus, chunk := n.In[0], n.In[1], reduceEach*d.threads()
	count := ceilDiv(x.Elems(), chunk)
	chunks, err := d.spare(n, count*words)
	if err != nil {
		return nil, err
	}
	kernel, spec := forFormats(n, "summary_chunks", []uint32{flag(minus != nil)}, x, minus)
	list := d.overChunks([]*graph.Value{x, minus}, chunk, func(parts []*graph.Value, count, first int) dispatch {
		return dispatch{
			kernel: kernel, spec: spec, push: summaryChunksPush{uint32(count), uint32(first), graph.AttrOf[graph.SummaryAttr](n).Threshold},
			bind: append(parts, chunks),
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

type chunksPush struct{ Count, First uint32 }

// lowerDots gives three sums of each chunk, then of the chunks.
func lowerDots(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	kernel, spec := forFormats(n, "dots_chunks", []uint32{uint32(d.threads())}, n.In[0], n.In[1])
	return d.sumChunks(n, n.In, func(parts []*graph.Value, chunks *graph.Value, count, first uint32) dispatch {
		return dispatch{kernel: kernel, spec: spec, push: chunksPush{count, first}, bind: append(parts, chunks)}
	})
}

// chunksDecayPush is the block of chunks.glsl with CHUNKS_DECAY.
type chunksDecayPush struct {
	Count, First uint32
	Decay        float32
}

func lowerAdamWStats(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	kernel, spec := forFormats(n, "adamw_stats_chunks", []uint32{uint32(d.threads())}, n.In[0])
	decay := graph.AttrOf[graph.AdamWAttr](n).Decay
	return d.sumChunks(n, n.In[:4], func(parts []*graph.Value, chunks *graph.Value, count, first uint32) dispatch {
		return dispatch{
			kernel: kernel, spec: spec, push: chunksDecayPush{count, first, decay}, bind: append(parts, n.In[4], n.In[5], chunks),
		}
	})
}

// sumChunks launches a kernel that gives three sums of each chunk of some tensors, and the one that adds them up.
func (d *deviceCaps) sumChunks(n *graph.Node, tensors []*graph.Value,
	launch func(parts []*graph.Value, chunks *graph.Value, count, first uint32) dispatch) ([]dispatch, error) {
	chunk := reduceEach * d.threads()
	count := ceilDiv(n.In[0].Elems(), chunk)
	chunks, err := d.spare(n, graph.DotsLen*count)
	if err != nil {
		return nil, err
	}
	list := d.overChunks(tensors, chunk, func(parts []*graph.Value, count, first int) dispatch {
		return launch(parts, chunks, uint32(count), uint32(first))
	})
	return append(list, dispatch{
		kernel: "sum_chunks", spec: []uint32{uint32(d.threads())}, push: countPush{uint32(count)}, bind: []*graph.Value{chunks, n.Out[0]},
		groups: [3]uint32{1, 1, 1}, barrier: true,
	}), nil
}

func lowerRowAngle(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x, y := n.In[0], n.In[1]
	rows, length := x.Shape().Rows(), x.Shape().Last()
	lanes := d.rowLanes(length)
	kernel, spec := forFormats(n, "row_angle", []uint32{uint32(lanes)}, x, y)
	return []dispatch{{
		kernel: kernel, spec: spec, push: rowsPush{uint32(rows), uint32(length)},
		bind: []*graph.Value{x, y, n.Out[0]}, groups: d.grid(ceilDiv(rows, d.threads()/lanes)),
	}}, nil
}

type rowNormsPush struct{ RowCount, N, TimesN, OverN uint32 }

func lowerRowNorms(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x, times, over := n.In[0], n.In[1], n.In[2]
	length := func(v *graph.Value) uint32 {
		if v == nil {
			return 0
		}
		return uint32(v.Shape().Last())
	}
	rows := x.Shape().Rows()
	lanes := d.rowLanes(int(max(length(x), length(times), length(over))))
	kernel, spec := forFormats(n, "row_norms", []uint32{uint32(lanes), flag(times != nil), flag(over != nil), flag(graph.AttrOf[graph.RowNormsAttr](n).Centered)}, x, times, over)
	return []dispatch{{
		kernel: kernel, spec: spec, push: rowNormsPush{uint32(rows), length(x), length(times), length(over)},
		bind: []*graph.Value{x, times, over, n.Out[0]}, groups: d.grid(ceilDiv(rows, d.threads()/lanes)),
	}}, nil
}
