package vulkan

import (
	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

type matMulPush struct{ M, N, K, Batch, TilesM, TilesN uint32 }

// matMulKernel is a compiled variant: the tile of the output that a workgroup computes.
type matMulKernel struct {
	name         string
	rows, cols   int
	subgroupSize uint32 // the workgroup is one subgroup of this size; 0: any
}

var (
	matMulTiles = []matMulKernel{ // largest first
		{name: "matmul_tile_128", rows: 128, cols: 128},
		{name: "matmul_tile_64", rows: 64, cols: 64},
		{name: "matmul_tile_32", rows: 32, cols: 32},
	}
	matMulSubgroups = []matMulKernel{
		{name: "matmul_subgroup_4", rows: 8, cols: 32, subgroupSize: 4},
		{name: "matmul_subgroup_8", rows: 16, cols: 64, subgroupSize: 8},
	}
)

func lowerMatMul(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	batch, m, cols, inner := graph.MatMulDims(n)
	k := d.chooseMatMul(batch, m, cols)
	rounds := 2 * inner // of tiles
	if k.subgroupSize > 0 {
		rounds = inner / int(k.subgroupSize)
	}
	if err := d.checkLoops(n, (rounds+200)*ceilDiv(batch, int(d.maxGroups[2]))); err != nil {
		return nil, err
	}
	return []dispatch{d.matMul(n, k)}, nil
}

// enoughTiles is the number of workgroups from which on a larger tile pays: it loads less, but few tiles leave a GPU idle.
const enoughTiles = 64

// chooseMatMul takes the broadcasting kernel on devices that are a CPU, where shared memory is as slow as any; else the largest tile that gives enough
// workgroups.
func (d *deviceCaps) chooseMatMul(batch, m, n int) matMulKernel {
	if d.kind == backend.Software {
		for _, k := range matMulSubgroups {
			if k.subgroupSize == d.subgroupSize && d.has(k.name) {
				return k
			}
		}
	}
	for _, k := range matMulTiles {
		if d.has(k.name) && ceilDiv(m, k.rows)*ceilDiv(n, k.cols)*batch >= enoughTiles {
			return k
		}
	}
	return matMulTiles[len(matMulTiles)-1]
}

func (d *deviceCaps) matMul(n *graph.Node, k matMulKernel) dispatch {
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
