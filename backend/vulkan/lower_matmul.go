package vulkan

import (
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

type matMulPush struct{ M, N, K, Batch, TilesM, TilesN uint32 }

type matMulTilePush struct{ M, N, K, Batch, TilesM, TilesN, Parts, Part uint32 }

type matMulSumPush struct{ Count, Parts uint32 }

// matMulKernel is a compiled variant: the tile of the output that a workgroup computes.
type matMulKernel struct {
	name         string
	rows, cols   int
	step         int          // elements of the inner dimension that a tile in shared memory has
	unroll       int          // of those, how many are multiplied without a loop
	subgroupSize uint32       // the workgroup is one subgroup of this size; 0: any
	matrix       matrixLayout // of cooperative matrices; zero for other kernels
}

var (
	matMulTiles = []matMulKernel{ // largest first
		{name: "matmul_tile_128", rows: 128, cols: 128, step: 8, unroll: 8},
		{name: "matmul_tile_64", rows: 64, cols: 64, step: 8, unroll: 8},
		{name: "matmul_tile_32", rows: 32, cols: 32, step: 16, unroll: 8},
	}
	matMulSkinny    = matMulKernel{name: "matmul_tile_8", rows: 8, cols: 32, step: 16, unroll: 2} // for few rows, as in generation
	matMulSubgroups = []matMulKernel{
		{name: "matmul_subgroup_4", rows: 8, cols: 32, subgroupSize: 4},
		{name: "matmul_subgroup_8", rows: 16, cols: 64, subgroupSize: 8},
	}
)

func (k matMulKernel) tiles(batch, m, n int) int {
	return ceilDiv(m, k.rows) * ceilDiv(n, k.cols) * batch
}

// matMulChoice is how a matmul is computed: by a kernel, and in parts of the inner dimension that are added up afterwards; 1: whole.
type matMulChoice struct {
	kernel matMulKernel
	parts  int
}

func lowerMatMul(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	batch, _, _, inner := graph.MatMulDims(n)
	choice := d.pickMatMul(n)
	if d.uses != nil {
		d.uses(n, choice)
	}
	if err := d.checkLoops(n, choice.rounds(inner)*ceilDiv(batch, int(d.maxGroups[2]))); err != nil {
		return nil, err
	}
	list := d.matMul(n, choice)
	list[0].label = choice.String()
	return list, nil
}

// rounds is how often a thread may loop for an element of the batch.
func (c matMulChoice) rounds(inner int) int {
	if c.kernel.subgroupSize > 0 {
		return inner/int(c.kernel.subgroupSize) + 200
	}
	return inner + 500
}

const (
	// enoughTiles is the number of workgroups from which on a larger tile pays: it loads less, but few tiles leave a GPU idle.
	enoughTiles = 64
	// A part of the inner dimension is at least minPart long, and there are at most maxParts: each costs a write and a read of c.
	minPart  = 256
	maxParts = 16
)

// largestTile is a rule by vendor for what was not measured. The sums of the largest tile take 64 registers of a thread, which GPUs that share few among
// many threads pay for in threads: ggml has its large tile on Apple's never, and on Intel's with matrix units alone.
func (d *deviceCaps) largestTile() int {
	switch d.vendor {
	case vendorApple, vendorIntel, vendorArm, vendorQualcomm:
		return 64
	}
	return 128
}

// chooseMatMul takes the broadcasting kernel on devices that are a CPU, where shared memory is as slow as any; else the largest tile that gives enough
// workgroups, if need be by parts of the inner dimension. It depends on the device's kind, vendor and limits and on the shape alone.
func (d *deviceCaps) chooseMatMul(batch, m, n, k int) matMulChoice {
	if d.kind == backend.Software {
		for _, k := range matMulSubgroups {
			if k.subgroupSize == d.subgroupSize && d.has(k.name) {
				return matMulChoice{k, 1}
			}
		}
	}
	if m <= matMulSkinny.rows && n > matMulSkinny.cols/2 && d.has(matMulSkinny.name) {
		return d.split(matMulSkinny, batch, m, n, k)
	}
	for _, tile := range matMulTiles[:len(matMulTiles)-1] {
		if !d.has(tile.name) || tile.rows > d.largestTile() || 2*m <= tile.rows || 2*n <= tile.cols { // most of it would lie outside
			continue
		}
		if c := d.split(tile, batch, m, n, k); tile.tiles(batch, m, n)*c.parts >= enoughTiles {
			return c
		}
	}
	last := matMulTiles[len(matMulTiles)-1]
	for _, tile := range slices.Backward(matMulTiles) {
		if d.has(tile.name) {
			last = tile
			break
		}
	}
	return d.split(last, batch, m, n, k)
}

// split cuts the inner dimension where there would be too few workgroups. A CPU has no use for more than it has cores, and compiling is what costs
// there: nothing is unrolled for it.
func (d *deviceCaps) split(kernel matMulKernel, batch, m, n, k int) matMulChoice {
	if d.kind == backend.Software {
		kernel.unroll = 1
		return matMulChoice{kernel, 1}
	}
	fit := int(min(d.maxBindBytes/4/(int64(batch)*int64(m)*int64(n)), maxParts))
	parts := min(ceilDiv(enoughTiles, kernel.tiles(batch, m, n)), k/minPart, fit)
	return matMulChoice{kernel, max(parts, 1)}
}

// matMul gives the dispatches of a choice.
func (d *deviceCaps) matMul(n *graph.Node, c matMulChoice) []dispatch {
	if c.kernel.subgroupSize > 0 {
		return []dispatch{d.matMulSubgroup(n, c.kernel)}
	}
	batch, m, cols, inner := graph.MatMulDims(n)
	part := ceilDiv(ceilDiv(inner, c.parts), c.kernel.step) * c.kernel.step
	parts := ceilDiv(inner, part)
	addend, out := n.In[2], n.Out[0]
	tile := d.matMulTile
	if c.kernel.matrix.width > 0 {
		tile = d.matMulMatrix
	}
	// A word of two elements must not be of two rows: two workgroups would write it.
	if parts == 1 && (out.DType() == graph.F32 || cols%2 == 0) {
		return []dispatch{tile(n, c.kernel, addend, out, 1, part)}
	}
	count := batch * m * cols
	sums := graph.NewBuilder().Temp("parts", graph.F32, parts, count)
	sum := dispatch{
		kernel: "matmul_sum", spec: []uint32{formatOf(addend), formatOf(out)}, push: matMulSumPush{uint32(count), uint32(parts)},
		bind: []*graph.Value{sums, addend, out}, groups: d.grid(ceilDiv(count, 128)), barrier: true,
	}
	return []dispatch{tile(n, c.kernel, nil, sums, parts, part), sum}
}

func (d *deviceCaps) matMulTile(n *graph.Node, k matMulKernel, addend, out *graph.Value, parts, part int) dispatch {
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, m, cols, inner := graph.MatMulDims(n)
	tilesM, tilesN := ceilDiv(m, k.rows), ceilDiv(cols, k.cols)
	groups := d.grid(tilesM * tilesN)
	groups[2] = min(uint32(batch*parts), d.maxGroups[2]) // a workgroup goes over the batch and the parts in steps of that
	// A tensor whose rows are whole vec4s (uvec2s, if its elements are of 16 bits) is bound as such, and another as words.
	bind := make([]*graph.Value, 8)
	narrow := graph.HasNarrow(n)
	if narrow {
		bind = make([]*graph.Value, 12)
	}
	as := func(i int, v *graph.Value, row int) uint32 {
		vec := row%4 == 0
		switch {
		case vec && v != nil && v.DType() != graph.F32:
			i += 8
		case vec:
			i += 4
		}
		bind[i] = v
		return flag(vec)
	}
	rowA, rowB := inner, cols
	if at.TransA {
		rowA = m
	}
	if at.TransB {
		rowB = inner
	}
	vecA, vecB, vecC := as(0, n.In[0], rowA), as(1, n.In[1], rowB), as(3, out, cols)
	as(2, addend, cols)
	name, spec := k.name, []uint32{flag(at.TransA), flag(at.TransB), flag(addend != nil), vecA, vecB, vecC, uint32(k.unroll)}
	if narrow {
		name += "_narrow"
		spec[2] = formatOf(addend)
		spec = append(spec, formatOf(n.In[0]), formatOf(n.In[1]), formatOf(out))
	}
	return dispatch{
		kernel: name, spec: spec,
		push: matMulTilePush{
			uint32(m), uint32(cols), uint32(inner), uint32(batch), uint32(tilesM), uint32(tilesN), uint32(parts), uint32(part),
		},
		bind: bind, groups: groups,
	}
}

func (d *deviceCaps) matMulSubgroup(n *graph.Node, k matMulKernel) dispatch {
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, m, cols, inner := graph.MatMulDims(n)
	tilesM, tilesN := ceilDiv(m, k.rows), ceilDiv(cols, k.cols)
	groups := d.grid(tilesM * tilesN)
	groups[2] = min(uint32(batch), d.maxGroups[2]) // a workgroup goes over the batch in steps of that
	dis := dispatch{
		kernel: k.name, spec: []uint32{flag(at.TransA), flag(at.TransB), flag(n.In[2] != nil)},
		push: matMulPush{uint32(m), uint32(cols), uint32(inner), uint32(batch), uint32(tilesM), uint32(tilesN)},
		bind: []*graph.Value{n.In[0], n.In[1], n.In[2], n.Out[0]}, groups: groups,
	}
	if d.subgroupSizeControl {
		dis.subgroupSize = k.subgroupSize
	}
	return dis
}
