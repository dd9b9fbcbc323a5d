package vulkan

import "github.com/vktrain/vktrain/graph"

// pointwisePush is the block of pointwise.glsl.
type pointwisePush struct {
	Count uint32
	Value float32
}

// pointwiseElems is how many elements a thread of pointwise.glsl covers.
const pointwiseElems = 4

// lowerPointwise serves operators whose kernel has their name and binds their operands in order.
func lowerPointwise(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	var value float32
	switch a := n.Attr.(type) {
	case graph.SoftCapAttr:
		value = a.Cap
	case graph.FillAttr:
		value = a.Value
	}
	bind := append(append([]*graph.Value{}, n.In...), n.Out...)
	kernel, spec := forFormats(n, n.Op.String(), nil, bind...)
	return []dispatch{d.pointwise(kernel, n.Out[0].Elems()/perThread(n), value, spec, bind)}, nil
}

func (d *deviceCaps) pointwise(kernel string, count int, value float32, spec []uint32, bind []*graph.Value) dispatch {
	return dispatch{
		kernel: kernel, spec: spec, push: pointwisePush{uint32(count), value}, bind: bind, groups: d.grid(ceilDiv(count, pointwiseElems*d.threads())),
	}
}

func lowerBroadcast(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	x, scale, y := n.In[0], n.In[1], n.Out[0]
	spec := []uint32{flag(scale != nil)}
	return []dispatch{d.pointwise("broadcast", y.Elems(), 0, spec, []*graph.Value{x, scale, y})}, nil
}

// adamWPush is the block of adamw_bf16.comp.
type adamWPush struct {
	Count         uint32
	Decay         float32
	Tensor, Block uint32 // of random words
}

// adamWEach is how many elements a thread of adamw_bf16 has.
const adamWEach = 8

// lowerAdamW binds each operand once: p, m and v are inputs and outputs.
func lowerAdamW(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	at, elems, key := graph.AttrOf[graph.AdamWAttr](n), n.In[0].Elems(), n.In[6]
	if n.In[0].DType() == graph.F32 {
		return []dispatch{d.pointwise("adamw", elems, at.Decay, nil, n.In[:6])}, nil
	}
	return []dispatch{{
		kernel: "adamw_bf16", spec: []uint32{flag(key != nil)}, push: adamWPush{uint32(elems), at.Decay, at.Tensor, uint32(at.First / adamWEach)},
		bind: n.In, groups: d.grid(ceilDiv(elems, adamWEach*d.threads())),
	}}, nil
}

type castPush struct{ Count uint32 }

// castFormats numbers formats as cast.comp does.
var castFormats = map[graph.DType]uint32{graph.F32: 0, graph.BF16: 1, graph.F16: 2}

func lowerCast(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	return []dispatch{d.cast(n.In[0], n.Out[0])}, nil
}

func (d *deviceCaps) cast(x, y *graph.Value) dispatch {
	return dispatch{
		kernel: "cast", spec: []uint32{castFormats[x.DType()], castFormats[y.DType()]}, push: castPush{uint32(x.Elems())},
		bind: []*graph.Value{x, y}, groups: d.grid(ceilDiv(x.Elems(), 2*d.threads())),
	}
}
