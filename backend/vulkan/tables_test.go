//go:build cgo

package vulkan

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// randomStores gives each of two stores the same random variables from 0 to 1.
func randomStores(t *testing.T, b *Backend, p *graph.Program) (stores [2]backend.Store) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range stores {
		stores[i] = newStore(t, b, p)
	}
	for _, v := range p.Vars() {
		var data []byte
		for range v.Shape.Elems() {
			bits := math.Float32bits(r.Float32())
			if v.DType == graph.BF16 {
				data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
			} else {
				data = binary.LittleEndian.AppendUint32(data, bits)
			}
		}
		for _, s := range stores {
			require.NoError(t, s.Write(v.Name, data))
		}
	}
	return stores
}

// The norm after a norm gives the same bits in its launch as in its own: a profile runs each node by itself.
func TestFusedNormsComputeTheSame(t *testing.T) {
	for _, limits := range []string{"", "invocations=128,group=128"} {
		b := openTest(t, Options{Limits: limits, NoCache: true})
		for _, ops := range [][2]graph.Op{{graph.OpRMSNorm, graph.OpRMSNorm}, {graph.OpRMSNorm, graph.OpLayerNorm}, {graph.OpLayerNorm, graph.OpRMSNorm}} {
			for _, format := range []graph.DType{graph.F32, graph.BF16, graph.F16} {
				for _, shape := range [][]int{{1, 2}, {3, 34}, {129, 64}, {7, 2050}} {
					p := normChain(ops[0], ops[1], format, shape[0] > 1, shape...)
					var sums [2][]byte
					for i, s := range randomStores(t, b, p) {
						e := compile(t, b, p, s)
						fused := 0
						for _, l := range e.launches {
							fused += l.covers
						}
						require.Equal(t, 2, fused)
						var err error
						if i == 0 {
							_, err = e.Submit()
						} else {
							_, err = e.Trace()
						}
						require.NoError(t, err)
						for _, name := range []string{"y + z", "z + z"} {
							data := make([]byte, 4*shape[0]*shape[1])
							require.NoError(t, s.Read(name, data))
							sums[i] = append(sums[i], data...)
						}
					}
					require.Equal(t, sums[1], sums[0], "%v %s %v", ops, format, shape)
				}
			}
		}
	}
}

// A launch over many tensors leaves in each what its own launch would: AdamW to the bit, the sums of squares to the rounding of another order.
func TestMergedLaunchesComputeTheSame(t *testing.T) {
	sizes := []int{1, 63, 64, 65, 127, 1023, 1024, 1025, 5000, 2, 15011, 3}
	for limits, launches := range map[string]int{"": 2, "range=64K": 4, "invocations=128,group=128": 2} {
		for _, tweak := range []func(*DeviceInfo){nil, asGPU} { // a GPU's rows are spread over lanes
			b := openTest(t, Options{Limits: limits, NoCache: true, tweak: tweak})
			sameMerged(t, b, manyTensors(graph.F32, false, sizes...), launches)
			sameMerged(t, b, manyTensors(graph.BF16, false, sizes...), launches)
			sameMerged(t, b, manyTensors(graph.BF16, true, sizes...), launches)
		}
	}
}

// The tables are part of what a program is said to need, and to have.
func TestTablesCountAsMemory(t *testing.T) {
	b := openTest(t, Options{})
	p := manyTensors(graph.F32, false, 5, 7, 100)
	e := compile(t, b, p, newStore(t, b, p))
	tables := 2 * int64(b.memory.round(1))
	require.Equal(t, tables, b.ScratchBytes(p))
	require.Equal(t, tables+int64(e.plan.ArenaBytes())+int64(e.inputs.size), e.DeviceBytes())
}

// sameMerged runs manyTensors by launches over many, at least so many of them, and node by node: the bits are the same.
func sameMerged(t *testing.T, b *Backend, p *graph.Program, launches int) {
	t.Helper()
	stores := randomStores(t, b, p)
	for i, s := range stores {
		e := compile(t, b, p, s)
		merged := 0
		for _, l := range e.launches {
			if l.covers > 0 {
				merged++
			}
		}
		require.GreaterOrEqual(t, merged, launches)
		require.NoError(t, e.Feed("hyper", floats(0.1, 0.9, 0.99, 1e-8, 0.5, 0.1, 0.01)))
		require.NoError(t, e.Feed("clip", floats(0.7)))
		if p.Input("key") != nil {
			require.NoError(t, e.Feed("key", floats(1, 2, 3, 4)))
		}
		var err error
		if i == 0 {
			_, err = e.Submit()
		} else {
			_, err = e.Trace() // node by node
		}
		require.NoError(t, err)
	}
	for _, v := range p.Vars() {
		var got [2][]byte
		for i, s := range stores {
			got[i] = make([]byte, v.Bytes())
			require.NoError(t, s.Read(v.Name, got[i]))
		}
		require.Equal(t, got[1], got[0], v.Name)
	}
}
