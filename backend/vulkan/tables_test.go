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

// A launch over many tensors leaves in each what its own launch would: AdamW to the bit, the sums of squares to the rounding of another order.
func TestMergedLaunchesComputeTheSame(t *testing.T) {
	sizes := []int{1, 63, 64, 65, 127, 1023, 1024, 1025, 5000, 2, 15011, 3}
	p := manyTensors(sizes...)
	for limits, launches := range map[string]int{"": 2, "range=64K": 4, "invocations=128,group=128": 2} {
		b := openTest(t, Options{Limits: limits, NoCache: true})
		stores := []backend.Store{newStore(t, b, p), newStore(t, b, p)}
		r := rand.New(rand.NewPCG(1, 2))
		for _, v := range p.Vars() {
			data := make([]byte, v.Bytes())
			for i := 0; i < len(data); i += 4 {
				binary.LittleEndian.PutUint32(data[i:], math.Float32bits(r.Float32()))
			}
			for _, s := range stores {
				require.NoError(t, s.Write(v.Name, data))
			}
		}
		for i, s := range stores {
			e := compile(t, b, p, s)
			merged := 0
			for _, l := range e.launches {
				if l.covers > 0 {
					merged++
				}
			}
			require.GreaterOrEqual(t, merged, launches, "%q", limits)
			require.NoError(t, e.Feed("hyper", floats(0.1, 0.9, 0.99, 1e-8, 0.5, 0.1, 0.01)))
			require.NoError(t, e.Feed("clip", floats(0.7)))
			if i == 0 {
				_, err := e.Submit()
				require.NoError(t, err)
			} else {
				_, err := e.Trace() // node by node
				require.NoError(t, err)
			}
		}
		for _, v := range p.Vars() {
			var got [2][]byte
			for i, s := range stores {
				got[i] = make([]byte, v.Bytes())
				require.NoError(t, s.Read(v.Name, got[i]))
			}
			if v.Name != "partials" {
				require.Equal(t, got[1], got[0], "%q: %s", limits, v.Name)
				continue
			}
			for i := 0; i < len(got[0]); i += graph.F32.Size() {
				one, many := math.Float32frombits(binary.LittleEndian.Uint32(got[1][i:])), math.Float32frombits(binary.LittleEndian.Uint32(got[0][i:]))
				require.InEpsilon(t, one+1, many+1, 1e-5, "%q: sum %d", limits, i/4)
			}
		}
	}
}
