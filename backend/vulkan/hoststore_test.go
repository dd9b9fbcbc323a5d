//go:build cgo

package vulkan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
)

// hostMoments is a device whose stores keep AdamW's moments in the host's memory.
type hostMoments struct{ *Backend }

func (h hostMoments) NewStore(vars []graph.Var) (backend.Store, error) {
	return h.NewHostStore(vars, func(v graph.Var) bool {
		return strings.HasPrefix(v.Name, train.PrefixM) || strings.HasPrefix(v.Name, train.PrefixV)
	})
}

// Moments in the host's memory give the same bits, and are in a block of their own. A software driver has one memory, of which a part plays the host's.
func TestMomentsInHostMemory(t *testing.T) {
	b := openTest(t, Options{})
	want := trainTiny(t, b, 3)
	if len(b.memory.types[onHost]) == 0 {
		_, err := b.HostMemory()
		require.ErrorContains(t, err, "lists no memory beside its own")
		_, err = hostMoments{b}.NewStore([]graph.Var{{Name: train.PrefixM + "w", Shape: graph.Shape{1}}})
		require.ErrorContains(t, err, "no memory type for host memory")
		b.memory.types[onHost] = b.memory.types[readback]
	}
	free, err := b.HostMemory()
	require.NoError(t, err)
	require.Positive(t, free)
	cfg, o := tinyModel()
	withStepper(t, hostMoments{b}, cfg, o, func(stepper *train.Stepper, batch train.Batch) {
		require.Equal(t, want, takeSteps(t, stepper, batch, 3, func(int) {}))
		held := 0
		for _, block := range b.memory.blocks[onHost] {
			for _, free := range block.spans.free {
				held -= int(free.size)
			}
			held += int(block.spans.size)
		}
		require.GreaterOrEqual(t, held, 2*4*cfg.NumParams())
	})
}
