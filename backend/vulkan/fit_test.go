//go:build cgo

package vulkan

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/train"
)

// smallHeap makes every heap one of so many bytes, of which some are free.
func smallHeap(bytes, free int64) func(*DeviceInfo) {
	return func(d *DeviceInfo) {
		for i := range d.Heaps {
			d.Heaps[i].Bytes, d.Heaps[i].Free = bytes, free
		}
		d.Features.MemoryBudget = false
	}
}

// A run that does not fit is refused before anything is allocated, diagnosed steps, evaluation and generation included, and one that fits is not.
func TestARunThatDoesNotFitAllocatesNothing(t *testing.T) {
	cfg, err := train.Load([]train.Assignment{
		{Key: "model.preset", Value: "nano"}, {Key: "model.d_model", Value: "32"}, {Key: "model.n_heads", Value: "2"}, {Key: "model.n_kv_heads", Value: "2"},
		{Key: "batch", Value: "2"}, {Key: "seq_len", Value: "16"}, {Key: "accumulation", Value: "2"}, {Key: "model.vocab_size", Value: "1024"},
	})
	require.NoError(t, err)
	cfg = cfg.Resolve()
	b := openTest(t, Options{})
	o := train.ProgramOptions{Batch: 2, SeqLen: 16, MaxNorm: float32(cfg.Clip), ZLoss: float32(cfg.ZLoss), Decay: cfg.Decay}
	programs, err := train.StepperPrograms(cfg.Model.Config, o, 2)
	require.NoError(t, err)
	eval, err := train.EvalProgram(cfg.Model.Config, o)
	require.NoError(t, err)
	logits, err := train.LogitsProgram(cfg.Model.Config, train.ProgramOptions{Batch: 1})
	require.NoError(t, err)
	o.Diagnostics = &train.Diagnostics{}
	all, err := train.StepperPrograms(cfg.Model.Config, o, 2)
	require.NoError(t, err)
	need := train.MemoryOn(b, append(append(all, programs...), eval, logits)...) // and the kernels are tested, which takes memory for a while
	total := need.Total()
	for name, heap := range map[string]func(*DeviceInfo){
		"one byte too few":                      smallHeap(total-1, total-1),
		"room for parameters and moments alone": smallHeap(need.Fixed()+1, need.Fixed()+1),
		"others hold most of it":                smallHeap(4*total, total/2),
	} {
		t.Run(name, func(t *testing.T) {
			b := openTest(t, Options{tweak: heap})
			_, err := train.New(context.Background(), cfg, b)
			require.ErrorAs(t, err, new(*train.MemoryError))
			require.Empty(t, b.MemoryUse(), "nothing was allocated")
		})
	}
	t.Run("it fits", func(t *testing.T) {
		const rounding = 1 << 20 // to 256 bytes a tensor, and inputs and outputs that the host sees
		b := openTest(t, Options{tweak: smallHeap(total+rounding, total+rounding)})
		trainer, err := train.New(context.Background(), cfg, b)
		require.NoError(t, err)
		require.NotEmpty(t, b.MemoryUse())
		require.NoError(t, trainer.Close())
	})
}

// What is reported is what was allocated, and tensors are in memory of the device.
func TestMemoryUse(t *testing.T) {
	for name, tweak := range memoryModes {
		t.Run(name, func(t *testing.T) {
			b := openArith(t, Options{tweak: tweak})
			require.Empty(t, b.MemoryUse())
			p := chain(1000, 3)
			compile(t, b, p, newStore(t, b, p))
			byPurpose := map[string]backend.MemoryUse{}
			byHeap := make([]uint64, len(b.physical.Heaps))
			for _, use := range b.MemoryUse() {
				byPurpose[use.Purpose] = use
				byHeap[use.Heap] += uint64(use.Bytes)
				require.Equal(t, b.physical.types[use.Type].Heap, use.Heap)
			}
			require.Equal(t, b.memory.heaps, byHeap)
			require.Len(t, byPurpose, int(numClasses)-1, "host memory is for who asks for it")
			require.Contains(t, byPurpose[onDevice.String()].Flags, "device_local")
			require.Contains(t, byPurpose[upload.String()].Flags, "host_visible")
			require.Contains(t, byPurpose[readback.String()].Flags, "host_visible")
			require.Equal(t, b.memory.types[onDevice][0], byPurpose[onDevice.String()].Type, "the first choice")
		})
	}
}
