//go:build cgo

package vulkan

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/cheap"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// tinyModel has every part of the default model, at the least sizes.
func tinyModel() (model.Config, train.ProgramOptions) {
	cfg := model.Default()
	cfg.VocabSize, cfg.DModel, cfg.NLayers, cfg.NHeads, cfg.NKVHeads, cfg.SeqLen = 17, 16, 1, 2, 1, 8
	return cfg.Normalize(), train.ProgramOptions{Batch: 2, MaxNorm: 1, ZLoss: 1e-4}
}

// trainTiny runs training steps of tinyModel and returns their losses and the last gradient norm.
func trainTiny(t testing.TB, b *Backend, steps int) []float64 {
	t.Helper()
	cfg, o := tinyModel()
	var got []float64
	withStepper(t, b, cfg, o, func(stepper *train.Stepper, batch train.Batch) {
		got = takeSteps(t, stepper, batch, steps, func(int) {})
	})
	return got
}

// withStepper calls use with what trains a model, and a batch for it.
func withStepper(t testing.TB, b backend.Backend, cfg model.Config, o train.ProgramOptions, use func(*train.Stepper, train.Batch)) {
	t.Helper()
	programs, err := train.StepperPrograms(cfg, o, 1)
	require.NoError(t, err)
	s, err := b.NewStore(train.Vars(programs...))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, p := range cfg.Params() {
		require.NoError(t, s.Write(p.Name, floats(cfg.InitParam(1, p)...)))
	}
	stepper, err := train.NewStepper(b, s, programs)
	require.NoError(t, err)
	defer func() { require.NoError(t, stepper.Close()) }()
	batch := train.Batch{}
	for i := range o.Batch * cfg.SeqLen {
		batch.Tokens = append(batch.Tokens, int32(i*i%cfg.VocabSize))
		batch.Targets = append(batch.Targets, int32((i+1)*(i+1)%cfg.VocabSize))
	}
	use(stepper, batch)
}

// takeSteps runs training steps on one batch, and returns their losses and the last gradient norm. see is called before each.
func takeSteps(t testing.TB, stepper *train.Stepper, batch train.Batch, steps int, see func(step int)) []float64 {
	got := make([]float64, 0, steps+1) // so that memory is flat from the start
	for step := range steps {
		see(step)
		hyper := train.Hyper{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: step + 1}
		last, err := stepper.Submit([]train.Batch{batch}, hyper)
		require.NoError(t, err)
		if last != nil {
			got = append(got, last.Loss)
		}
	}
	last, err := stepper.Drain()
	require.NoError(t, err)
	return append(got, last.Loss, last.GradNorm)
}

// A training step learns, and gives the same bits whether it is one submission or one for each node, with the device's optional features
// or without, from shared memory or through staging. The validation layer, where there is one, has nothing to say.
func TestTrainingStepsAreTheSameInEveryMode(t *testing.T) {
	const steps = 5
	b := openTest(t, Options{})
	want := trainTiny(t, b, steps)
	require.Less(t, want[steps-1], want[0], "the loss falls")
	require.Equal(t, want, trainTiny(t, b, steps), "again")
	for name, opts := range map[string]Options{
		"cut":    {SubmitLimit: 1},
		"staged": {tweak: memoryModes["staged"]},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want, trainTiny(t, openTest(t, opts), steps))
		})
	}
	t.Run("floor", func(t *testing.T) { // other kernels may sum in another order
		got := trainTiny(t, openTest(t, Options{FloorOnly: true}), steps)
		require.InDeltaSlice(t, want, got, 1e-4)
	})
	t.Run("validated", func(t *testing.T) {
		needValidation(t)
		b := openTest(t, Options{Validate: true})
		require.Equal(t, want, trainTiny(t, b, steps))
		require.NoError(t, b.Close(), "nothing leaks")
	})
}

// A step is submissions alone: nothing between the first and the last of them waits for the device.
func TestAStepMakesNoRoundTrip(t *testing.T) {
	b := openTest(t, Options{SubmitLimit: 1})
	cfg, o := tinyModel()
	p, err := train.StepProgram(cfg, o)
	require.NoError(t, err)
	e := compile(t, b, p, newStore(t, b, p))
	for _, in := range p.Inputs() {
		require.NoError(t, e.Feed(in.Name(), make([]byte, in.Bytes())))
	}
	submits, waits := 0, 0
	submit := b.submit
	b.submit = func(cb vk.CommandBuffer, f vk.Fence) error { submits++; return submit(cb, f) }
	b.await = func(f []vk.Fence) error { waits++; return b.waitForFences(f) }
	for range 2 {
		_, err = e.Submit()
		require.NoError(t, err)
	}
	require.Equal(t, 2*e.Submissions(), submits)
	require.Greater(t, e.Submissions(), 10)
	require.Zero(t, waits)
}

const pressureVariable = "VKTRAIN_TEST_PRESSURE"

// The binding's own wrappers crash within a few calls under this: the garbage collector runs all the time, freed C memory is overwritten,
// cgo checks every pointer, and the validation layer reads what it is given.
func TestStepsUnderGarbageCollection(t *testing.T) {
	if os.Getenv(pressureVariable) == "1" {
		underPressure(t)
		return
	}
	openTest(t, Options{}) // there is Vulkan, or this skips
	needValidation(t)
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(self, "-test.run=^TestStepsUnderGarbageCollection$", "-test.v")
	child.Env = append(os.Environ(),
		pressureVariable+"=1", "VKTRAIN_VALIDATE=1", "MALLOC_PERTURB_=165", "GOGC=1", "GODEBUG=cgocheck=1,invalidptr=1,clobberfree=1")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestStepsUnderGarbageCollection", "the child really ran it")
}

func underPressure(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				stopped <- n
				return
			default:
				runtime.GC()
				n++
			}
		}
	}()
	var want []float64
	for range 2 {
		b := openTest(t, Options{SubmitLimit: 1, CacheDir: t.TempDir()})
		got := trainTiny(t, b, 4)
		if want == nil {
			want = got
		}
		require.Equal(t, want, got)
		require.False(t, math.IsNaN(got[0]))
		require.NoError(t, b.Close())
	}
	_, err := Devices()
	require.NoError(t, err)
	close(stop)
	t.Logf("%d collections", <-stopped)
}

// Compiling and closing again and again takes no more memory, on the device or in the process: what Go and C code hold stays the same. Caches
// and buffers that grow at times make a round differ, so a leak is what grows in most of several rounds.
func TestNothingLeaksOverManyCompiles(t *testing.T) {
	b := openArith(t, Options{})
	const rounds, cycles = 7, 300
	round := func() {
		for range cycles {
			if err := countUp(b, 1000, 3, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	heaps := append([]uint64(nil), b.memory.heaps...)
	before := heldBytes()
	var grown []float64 // bytes a cycle
	for range rounds {
		round()
		after := heldBytes()
		grown = append(grown, float64(after-before)/cycles)
		before = after
	}
	slices.Sort(grown)
	require.Equal(t, heaps, b.memory.heaps)
	require.Empty(t, b.open)
	for _, list := range b.memory.blocks {
		for _, block := range list {
			require.True(t, block.spans.empty() || block == b.dummy.block)
		}
	}
	t.Logf("bytes a cycle: %.1f", grown)
	require.Less(t, grown[rounds/2], 100.0)
}

// heldBytes is what Go and C code have allocated and not freed; C code alone where the C library tells.
func heldBytes() int {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c, _ := cheap.InUse()
	return int(m.HeapAlloc) + c
}
