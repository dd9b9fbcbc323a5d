//go:build cgo

package vulkan

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/train"
)

// openValidated opens the first device with validation on. Closing it is the test's, for what Close says.
func openValidated(t *testing.T) *Backend {
	t.Helper()
	needValidation(t)
	b := openTest(t, Options{Validate: true})
	b.useArith()
	return b
}

// twice lowers an add to two kernels, the second of which reads what the first wrote.
func twice(barrier bool) lowerFunc {
	return func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		list, err := lowerArith(d, n)
		if err != nil || n.Op != graph.OpAdd {
			return list, err
		}
		again := list[0]
		again.bind = []*graph.Value{n.Out[0], n.In[1], n.In[0]} // a = (a + b) + b
		again.barrier = barrier
		return append(list, again), nil
	}
}

func addOnce(t *testing.T, b *Backend) (err error) {
	g := graph.NewBuilder()
	c := g.Add(g.Var("a", graph.F32, 64), g.Var("b", graph.F32, 64), nil)
	g.Output("c", c)
	p := g.Build("once")
	s := newStore(t, b, p)
	e, err := b.Compile(p, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }() // what is found on the device comes with the wait for it
	_, err = e.Submit()
	return err
}

// Synchronization validation is really on: it finds a missing barrier, and nothing when it is there.
func TestValidationFindsAMissingBarrier(t *testing.T) {
	b := openValidated(t)
	b.lower = twice(true)
	require.NoError(t, addOnce(t, b))
	b.lower = twice(false)
	err := addOnce(t, b)
	var v *ValidationError
	require.ErrorAs(t, err, &v)
	require.Contains(t, v.Error(), "HAZARD-READ-AFTER-WRITE")
	require.NoError(t, b.Close(), "each message is told once")
}

func TestValidationFindsALeak(t *testing.T) {
	b := openValidated(t)
	_, _, err := b.memory.newBuffer(256)
	require.NoError(t, err)
	var v *ValidationError
	require.ErrorAs(t, b.Close(), &v)
	require.Contains(t, v.Error(), "VkBuffer")
}

// A misuse that no result tells of becomes the error of the call that caused it.
func TestValidationMessagesAreErrors(t *testing.T) {
	b := openValidated(t)
	b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		list, err := lowerArith(d, n)
		list[0].spec = []uint32{1 << 20, 0} // threads a workgroup, far over every limit
		return list, err
	}
	var v *ValidationError
	require.ErrorAs(t, addOnce(t, b), &v)
}

// The environment variable does what the option does.
func TestValidationByEnvironment(t *testing.T) {
	needValidation(t)
	t.Setenv("VKTRAIN_VALIDATE", "1")
	b := openArith(t, Options{})
	require.NotNil(t, b.log)
	require.NoError(t, addOnce(t, b))
}

// Whoever asks for validation in a wrong way is told, and does not take silence for a clean run.
func TestValidationIsAskedForInWordsThatAreKnown(t *testing.T) {
	for value, want := range map[string][2]bool{"": {}, "0": {}, "1": {true, false}, "access": {true, true}} {
		t.Setenv("VKTRAIN_VALIDATE", value)
		validate, access, err := validationAsked()
		require.NoError(t, err)
		require.Equal(t, want, [2]bool{validate, access}, value)
	}
	t.Setenv("VKTRAIN_VALIDATE", "true")
	_, err := Open(Options{})
	require.EqualError(t, err, `vulkan: VKTRAIN_VALIDATE: "true" is unknown: use 1 or access, or 0 for no validation`)
}

// Everything that the other tests do stays silent, in both memory modes and over many submissions.
func TestValidationIsSilentOverRuns(t *testing.T) {
	needValidation(t)
	for name, tweak := range memoryModes {
		t.Run(name, func(t *testing.T) {
			b := openArith(t, Options{Validate: true, tweak: tweak, SubmitLimit: 1})
			require.NoError(t, countUp(b, 300, 5, 1))
			p := chain(100, 3)
			e := compile(t, b, p, newStore(t, b, p))
			require.NoError(t, e.Feed("x", repeated(1, 100)))
			_, err := e.Profile()
			require.NoError(t, err)
		})
	}
}

// needAccessValidation skips where the layer is one that could not be told from here to look at what kernels access; it fails there if
// VKTRAIN_REQUIRE_ACCESS is 1.
func needAccessValidation(t *testing.T) {
	needValidation(t)
	own, err := vkx.InstanceExtensions(vkx.LayerValidation)
	require.NoError(t, err)
	if !slices.Contains(own, vkx.ExtLayerSettings) {
		skipAccess(t, "the validation layer is of before "+vkx.ExtLayerSettings)
	}
}

func skipAccess(t *testing.T, why string) {
	t.Helper()
	require.NotEqual(t, "1", os.Getenv("VKTRAIN_REQUIRE_ACCESS"), why)
	t.Skip(why)
}

// GPU-assisted validation is really on: it finds a kernel that writes behind its buffer.
func TestValidationFindsAnAccessOutside(t *testing.T) {
	needAccessValidation(t)
	b := openArith(t, Options{ValidateAccess: true})
	require.NoError(t, addOnce(t, b))
	b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		list, err := lowerArith(d, n)
		list[0].push, list[0].groups = arithPush{N: 1 << 10}, [3]uint32{1 << 4, 1, 1}
		return list, err
	}
	err := addOnce(t, b)
	var v *ValidationError
	require.ErrorAs(t, err, &v)
	require.Contains(t, v.Error(), "out of bounds")
}

// validatedSteps trains in a precision; whatever the layer says fails the test.
func validatedSteps(t *testing.T, precision graph.DType, opts Options) {
	t.Helper()
	b := openTest(t, opts)
	cfg, o := tinyModel()
	cfg.SeqLen, cfg.DModel, cfg.VocabSize, o.Storage = 64, 80, 256, precision
	cfg = cfg.Normalize()
	withStepper(t, b, cfg, o, func(stepper *train.Stepper, batch train.Batch) {
		got := takeSteps(t, stepper, batch, 3, func(int) {})
		require.Less(t, got[2], got[0], "the loss falls")
	})
	require.NoError(t, b.Close())
}

// Steps of every precision are silent, with the kernels of a CPU, with those of a GPU, with cooperative matrices where there are some, and with tensors that go
// over parts of themselves. The floor and parts bind bf16 and f16 alike, by the same kernels.
func TestValidationIsSilentOverSteps(t *testing.T) {
	needValidation(t)
	devices := map[string]Options{"cpu": {}, "gpu": {tweak: asGPU}, "floor": {FloorOnly: true}, "parts": {tweak: asGPU, Limits: "range=64K"}}
	for precision, names := range map[graph.DType][]string{
		graph.F32: {"cpu", "gpu", "floor", "parts"}, graph.BF16: {"cpu", "floor", "parts"}, graph.F16: {"cpu", "gpu"},
	} {
		for _, name := range names {
			t.Run(precision.String()+" "+name, func(t *testing.T) {
				opts := devices[name]
				opts.Validate = true
				validatedSteps(t, precision, opts)
			})
		}
	}
}

// No kernel of a step looks outside of its buffers.
func TestStepsAccessWhatIsTheirs(t *testing.T) {
	needAccessValidation(t)
	if b := openTest(t, Options{}); strings.Contains(b.Info().Name, "llvmpipe") {
		skipAccess(t, "lavapipe (Mesa 26.2) crashes in kernels with barriers that the layer has changed: no driver of ours but SwiftShader, with a newer layer")
	}
	for _, precision := range []graph.DType{graph.F32, graph.BF16, graph.F16} {
		t.Run(precision.String(), func(t *testing.T) { validatedSteps(t, precision, Options{tweak: asGPU, ValidateAccess: true}) })
	}
}

func TestMessagesAreKeptOnce(t *testing.T) {
	var l messageLog
	require.NoError(t, l.take())
	for range 3 {
		l.add(vkx.Message{ID: "VUID-x", Text: "wrong"})
	}
	l.add(vkx.Message{Text: "odd"})
	require.EqualError(t, l.take(), "vulkan: validation: 2 messages:\nVUID-x: wrong\nodd")
	require.NoError(t, l.take())
}
