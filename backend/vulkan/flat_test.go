//go:build cgo

package vulkan

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// stepsVariable says how many steps TestMemoryIsFlatOverSteps takes: 10000 for the figures in docs/experiments.md.
const stepsVariable = "VKTRAIN_FLAT_STEPS"

// held is what a process and its device hold at a moment.
type held struct {
	bytes   int   // of Go and C code
	files   int   // open handles; 0 where they are not told
	objects int64 // of Vulkan that were ever made: memory, buffers, fences, command buffers, layouts, pools, descriptor sets, pipelines
	device  int64 // bytes allocated of it
}

func holds(b *Backend) held {
	h := held{bytes: heldBytes(), objects: b.dev.Made.Load()}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.files = len(list)
	}
	for _, m := range b.MemoryUse() {
		h.device += m.Bytes
	}
	return h
}

// driverPool is what SwiftShader takes at once for the stacks of its fibers: one more such piece whenever more of them wait at a time than ever before, which is
// chance. What leaks has another size.
const driverPool = 64 << 20

// Training steps, once they run, take no more memory, handles or objects of the device however many there are.
func TestMemoryIsFlatOverSteps(t *testing.T) {
	steps, err := strconv.Atoi(os.Getenv(stepsVariable))
	if err != nil {
		steps = 400
	}
	b := openTest(t, Options{})
	cfg, o := tinyModel()
	withStepper(t, b, cfg, o, func(stepper *train.Stepper, batch train.Batch) {
		const looks = 8
		warm := max(steps/10, 20)
		every := (steps - warm) / looks
		var seen []held
		takeSteps(t, stepper, batch, steps, func(step int) {
			if step >= warm && (step-warm)%every == 0 {
				seen = append(seen, holds(b))
			}
		})
		grown := 0 // how often there was more than at the look before
		for i, h := range seen {
			t.Logf("step %d: %+v", warm+i*every, h)
			require.Equal(t, []int64{seen[0].objects, seen[0].device, int64(seen[0].files)}, []int64{h.objects, h.device, int64(h.files)})
			if i > 0 && (h.bytes-seen[i-1].bytes+driverPool/2)%driverPool-driverPool/2 > 4096 {
				grown++
			}
		}
		require.Less(t, grown, len(seen)-2, "a leak grows at nearly every look; what drivers keep goes up and down")
	})
}

// A step's memory is a line in the length of the sequence.
func TestMemoryIsLinearInTheSequence(t *testing.T) {
	b := openTest(t, Options{})
	cfg := model.Default()
	cfg.VocabSize, cfg.DModel, cfg.NLayers, cfg.NHeads, cfg.NKVHeads = 257, 32, 2, 2, 2
	var bytes []int64
	lengths := []int{256, 512, 1024, 2048, 4096, 8192}
	for _, cfg.SeqLen = range lengths {
		p, err := train.StepProgram(cfg.Normalize(), train.ProgramOptions{Batch: 1, MaxNorm: 1})
		require.NoError(t, err)
		s := newStore(t, b, p)
		e, err := b.Compile(p, s)
		require.NoError(t, err)
		held := e.(*Executable).DeviceBytes()
		t.Logf("T %d: %d bytes, %d of them the arena; %d a token", cfg.SeqLen, held, e.(*Executable).plan.ArenaBytes(), held/int64(cfg.SeqLen))
		bytes = append(bytes, held)
		require.NoError(t, e.Close())
		require.NoError(t, s.Close())
	}
	// Twice as long takes twice the memory, but for what does not depend on the length: parameters' gradients, and alignment.
	for i := range bytes[1:] {
		require.InEpsilon(t, 2*bytes[i], bytes[i+1], 0.05, "T %d", lengths[i+1])
	}
}
