//go:build cgo

package vulkan

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"testing"

	_ "embed"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

// arithSPIRV is testdata/arith.comp by glslangValidator -V --target-env vulkan1.1: one kernel that is enough to prove memory,
// recording and order, whatever the state of the real ones.
//
//go:embed testdata/arith.spv
var arithSPIRV []byte

type arithPush struct {
	N     uint32
	Value float32
	Spin  uint32
}

// arithSpin makes each kernel of the arithmetic backend busy for so many rounds.
var arithSpin uint32

func lookupArith(name string) (shader, bool) {
	return shader{spirv: arithSPIRV, bindings: 3, pushBytes: 12, specs: 2}, name == "arith"
}

// lowerArith serves add and fill alone.
func lowerArith(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
	out := n.Out[0]
	elems := uint32(out.Elems())
	dis := dispatch{
		kernel: "arith", spec: []uint32{64, 0}, push: arithPush{N: elems, Spin: arithSpin}, groups: [3]uint32{(elems + 63) / 64, 1, 1},
	}
	switch n.Op {
	case graph.OpAdd:
		dis.bind = []*graph.Value{n.In[0], n.In[1], out}
	case graph.OpFill:
		dis.bind = []*graph.Value{nil, nil, out}
		dis.spec = []uint32{64, 1}
		dis.push = arithPush{N: elems, Value: graph.AttrOf[graph.FillAttr](n).Value, Spin: arithSpin}
	default:
		return nil, d.unsupported(n, "the test knows add and fill")
	}
	return []dispatch{dis}, nil
}

// openTest opens the first device, software or not. Without any the test is skipped, or fails where VKTRAIN_REQUIRE_VULKAN is 1.
func openTest(t testing.TB, opts Options) *Backend {
	t.Helper()
	opts.Software = true
	if opts.CacheDir == "" {
		opts.NoCache = true
	}
	b, err := Open(opts)
	if errors.Is(err, ErrNoDevice) && os.Getenv("VKTRAIN_REQUIRE_VULKAN") != "1" {
		t.Skip("no Vulkan device: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// needValidation skips where the validation layer is not installed, with the same exception as openTest.
func needValidation(t testing.TB) {
	t.Helper()
	layers := []string{}
	if vkx.Load(vkx.LibraryNames()...) == nil {
		layers, _ = vkx.InstanceLayers()
	}
	for _, l := range layers {
		if l == vkx.LayerValidation {
			return
		}
	}
	require.NotEqual(t, "1", os.Getenv("VKTRAIN_REQUIRE_VULKAN"), "the validation layer is not installed")
	t.Skip("the validation layer is not installed")
}

// openArith is openTest for programs of add and fill.
func openArith(t testing.TB, opts Options) *Backend {
	t.Helper()
	b := openTest(t, opts)
	b.useArith()
	return b
}

func (b *Backend) useArith() {
	b.lower, b.lookup, b.pipelines.lookup = lowerArith, lookupArith, lookupArith
}

// chain builds a program of n elements with every kind of value: acc (a variable) += x (an input) + 1, in steps dependent kernels;
// the outputs are sum, the new acc, and echo, x itself.
func chain(n, steps int) *graph.Program {
	b := graph.NewBuilder()
	x := b.Input("x", graph.F32, n)
	acc := b.Var("acc", graph.F32, n)
	one := b.Fill(b.Temp("one", graph.F32, n), 1)
	y := b.Add(x, one, nil)
	zero := b.Fill(b.Temp("zero", graph.F32, n), 0)
	for range steps {
		y = b.Add(y, zero, nil)
	}
	b.Add(acc, y, acc)
	b.Output("sum", acc)
	b.Output("echo", x)
	return b.Build("chain")
}

func floats(f ...float32) []byte {
	out := make([]byte, 0, 4*len(f))
	for _, v := range f {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func repeated(v float32, n int) []byte {
	f := make([]float32, n)
	for i := range f {
		f[i] = v
	}
	return floats(f...)
}

func newStore(t testing.TB, b *Backend, p *graph.Program) backend.Store {
	t.Helper()
	s, err := b.NewStore(p.Vars())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func compile(t testing.TB, b *Backend, p *graph.Program, s backend.Store) *Executable {
	t.Helper()
	e, err := b.Compile(p, s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e.(*Executable)
}

func fetch(t testing.TB, e backend.Executable, ticket backend.Ticket, output string, bytes int) []byte {
	t.Helper()
	dst := make([]byte, bytes)
	require.NoError(t, e.Fetch(ticket, output, dst))
	return dst
}
