package vulkan

import (
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// matrixLayout says how a workgroup's tile is spread over the cooperative matrices of its subgroups.
type matrixLayout struct {
	shape  matrixShape
	width  uint32 // threads of a subgroup
	sm, sn int    // matrices of c that a subgroup has, down and across
}

// matMulMatrixTiles are the kernels of cooperative matrices by format of a and b, largest first. threads are their workgroups'.
var matMulMatrixTiles = []struct {
	matMulKernel
	in      graph.DType
	threads int
}{
	{matMulKernel{name: "matmul_matrix_f16_128", rows: 128, cols: 128, step: 32}, graph.F16, 256},
	{matMulKernel{name: "matmul_matrix_f16_64", rows: 64, cols: 64, step: 32}, graph.F16, 128},
	{matMulKernel{name: "matmul_matrix_bf16_128", rows: 128, cols: 128, step: 32}, graph.BF16, 256},
	{matMulKernel{name: "matmul_matrix_bf16_64", rows: 64, cols: 64, step: 32}, graph.BF16, 128},
}

// narrowMatMul tells whether there are kernels for the formats of a matmul: a CPU has those with float32 operands, which it does not need to share.
func (d *deviceCaps) narrowMatMul(n *graph.Node) bool {
	return d.kind != backend.Software
}

// chooseMatrices takes cooperative matrices where a and b are of a format that the device has them for, and enough rows would use them.
func (d *deviceCaps) chooseMatrices(n *graph.Node) (matMulChoice, bool) {
	batch, m, cols, inner := graph.MatMulDims(n)
	if d.kind == backend.Software || m <= matMulSkinny.rows {
		return matMulChoice{}, false
	}
	var choice matMulChoice
	for _, k := range d.matrixKernels(n) {
		if choice.kernel.name == k.name || choice.kernel.name != "" && (2*m <= k.rows || 2*cols <= k.cols) {
			continue
		}
		if choice = d.split(k, batch, m, cols, inner); k.tiles(batch, m, cols)*choice.parts >= enoughTiles {
			break
		}
	}
	return choice, choice.kernel.name != ""
}

// matrixKernels are those that the device runs for the formats of a matmul, largest first, and each by its sizes of subgroups, best first.
func (d *deviceCaps) matrixKernels(n *graph.Node) []matMulKernel {
	var list []matMulKernel
	for _, k := range matMulMatrixTiles {
		if n.In[0].DType() != k.in || n.In[1].DType() != k.in || !d.has(k.name) {
			continue
		}
		for _, width := range d.matrixWidths() {
			if k.matrix = d.layMatrices(k.rows, k.cols, k.threads, width, k.in); k.matrix.width > 0 && !d.broken[k.String()] {
				list = append(list, k.matMulKernel)
			}
		}
	}
	return list
}

// matrixWidths are the sizes of subgroups that a kernel can be sure of: matrices are spread over whole ones.
func (d *deviceCaps) matrixWidths() []int {
	if !d.subgroupSizeControl || !d.fullSubgroups {
		if d.minSubgroupSize == d.maxSubgroupSize && d.subgroupSize > 0 {
			return []int{int(d.subgroupSize)}
		}
		return nil
	}
	widths := []int{int(min(max(d.subgroupSize, d.minSubgroupSize), d.maxSubgroupSize))}
	for w := int(d.minSubgroupSize); w <= int(d.maxSubgroupSize); w *= 2 {
		if w != widths[0] {
			widths = append(widths, w)
		}
	}
	return widths
}

// layMatrices finds the largest matrices that a tile can be made of; the layout is zero if there are none.
func (d *deviceCaps) layMatrices(rows, cols, threads, width int, in graph.DType) matrixLayout {
	shapes := slices.Clone(d.matrices)
	slices.SortStableFunc(shapes, func(s, t matrixShape) int { return t.M*t.N*t.K - s.M*s.N*s.K })
	for _, s := range shapes {
		const step = 32 // of the kernels
		if s.In != in || step%s.K != 0 || s.K%8 != 0 || s.N%4 != 0 || threads%width != 0 {
			continue
		}
		if threads/width*s.M*s.N > (rows+cols)*(step/8+1)*4 { // matrices of c go through the tile in shared memory
			continue
		}
		var best matrixLayout
		for across := 1; across <= threads/width; across *= 2 {
			down := threads / width / across
			if rows%(s.M*down) != 0 || cols%(s.N*across) != 0 {
				continue
			}
			l := matrixLayout{shape: s, width: uint32(width), sm: rows / s.M / down, sn: cols / s.N / across}
			if best.width == 0 || l.loads() < best.loads() {
				best = l
			}
		}
		if best.width > 0 {
			return best
		}
	}
	return matrixLayout{}
}

// loads is what a subgroup loads of a and b for a step.
func (l matrixLayout) loads() int { return l.sm*l.shape.M + l.sn*l.shape.N }

// formatOf is a specialization constant of formats.glsl.
func formatOf(v *graph.Value) uint32 {
	if v == nil {
		return 3
	}
	return castFormats[v.DType()]
}

func (d *deviceCaps) matMulMatrix(n *graph.Node, k matMulKernel, addend, out *graph.Value, parts, part int) dispatch {
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, m, cols, inner := graph.MatMulDims(n)
	tilesM, tilesN := ceilDiv(m, k.rows), ceilDiv(cols, k.cols)
	groups := d.grid(tilesM * tilesN)
	groups[2] = min(uint32(batch*parts), d.maxGroups[2])
	// A tensor whose rows are whole uvec4s is bound as such, and another as words.
	bind := []*graph.Value{nil, nil, addend, out, nil, nil}
	rows := [2]int{inner, cols}
	if at.TransA {
		rows[0] = m
	}
	if at.TransB {
		rows[1] = inner
	}
	var vec [2]uint32
	for i, row := range rows {
		vec[i] = flag(row%8 == 0)
		bind[i+4*int(vec[i])] = n.In[i]
	}
	l := k.matrix
	dis := dispatch{
		kernel: k.name,
		spec: []uint32{
			flag(at.TransA), flag(at.TransB), formatOf(addend), formatOf(out), vec[0], vec[1],
			uint32(l.shape.M), uint32(l.shape.N), uint32(l.shape.K), uint32(l.sm), uint32(l.sn),
		},
		push: matMulTilePush{
			uint32(m), uint32(cols), uint32(inner), uint32(batch), uint32(tilesM), uint32(tilesN), uint32(parts), uint32(part),
		},
		bind: bind, groups: groups,
	}
	if d.subgroupSizeControl {
		dis.subgroupSize, dis.fullSubgroups = l.width, d.fullSubgroups
	}
	return dis
}
