//go:build cgo

package vulkan

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/graph"
)

// mutate changes the instructions of a SPIR-V module.
func mutate(code []byte, change func(op uint32, args []uint32) uint32) []byte {
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	for i := 5; i < len(words); i += int(words[i] >> 16) {
		n := words[i] >> 16
		words[i] = n<<16 | change(words[i]&0xffff, words[i+1:i+int(n)])
	}
	var out []byte
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

const (
	opGroupNonUniformBroadcast  = 337
	opGroupNonUniformShuffleXor = 346 // has the same operands
)

// brokenBroadcast gives every broadcast the value of another lane.
func brokenBroadcast(_ string, code []byte) []byte {
	return mutate(code, func(op uint32, _ []uint32) uint32 {
		if op == opGroupNonUniformBroadcast {
			return opGroupNonUniformShuffleXor
		}
		return op
	})
}

// A driver whose broadcasts are wrong is found out, and computes right without them.
func TestBrokenSubgroupOperationIsNotUsed(t *testing.T) {
	if !openTest(t, Options{}).caps.subgroupBallot {
		t.Skip("the device has no broadcasts")
	}
	var warnings []string
	b := openTest(t, Options{breaks: brokenBroadcast, Warn: func(s string) { warnings = append(warnings, s) }})
	require.False(t, b.caps.subgroupBallot)
	require.NotContains(t, b.Device().Features.SubgroupOps, "ballot")
	require.Contains(t, b.Device().Features.SubgroupOps, "vote")
	require.Len(t, b.Device().Failed, 1)
	require.Contains(t, b.Device().Failed[0], "subgroup ballot: result 4 of thread ")
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "computes wrongly, and does without: subgroup ballot")
	steps := 0
	conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul", "step"}, Pick: func(c conformance.Case) bool {
		if steps == 0 && c.Group == "step" {
			steps++
			return true
		}
		return strings.HasPrefix(c.Name, "NN 17x31x33") && !strings.Contains(c.Name, "f16")
	}})
	require.Equal(t, 1, steps)
}

const (
	opExtInst               = 12
	glslFma                 = 50
	glslMix                 = 46 // has as many operands
	opCooperativeMatrixLoad = 4457
)

// brokenKernels puts a mistake into the kernels whose names begin so: tiles mix instead of multiplying and adding, and matrices are
// all read in the first one's order.
func brokenKernels(prefixes ...string) func(string, []byte) []byte {
	return func(kernel string, code []byte) []byte {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(kernel, p) }) {
			return code
		}
		var first uint32
		return mutate(code, func(op uint32, args []uint32) uint32 {
			switch {
			case op == opExtInst && args[3] == glslFma:
				args[3] = glslMix
			case op == opCooperativeMatrixLoad && first == 0:
				first = args[3]
			case op == opCooperativeMatrixLoad:
				args[3] = first
			}
			return op
		})
	}
}

// A kernel that computes wrongly on a device is found out when it is first chosen, and another one takes its place.
func TestBrokenKernelsAreNotUsed(t *testing.T) {
	plain := openTest(t, Options{tweak: asGPU})
	want := plain.caps.chooseMatMul(1, 64, 64, 64).kernel.name
	require.Equal(t, "matmul_tile_32", want)
	var warnings []string
	b := openTest(t, Options{tweak: asGPU, breaks: brokenKernels("matmul_tile_32"), Warn: func(s string) { warnings = append(warnings, s) }})
	conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul"}, Pick: func(c conformance.Case) bool {
		// in float32: the kernels of 16 bits go by the same name, and take software drivers long to compile
		return (strings.HasPrefix(c.Name, "NN 17x31x33") || strings.HasPrefix(c.Name, "TN 33x65x31")) && !strings.Contains(c.Name, "f16")
	}})
	require.Equal(t, map[string]bool{"matmul_tile_32": true}, b.broken)
	require.Equal(t, "matmul_tile_64", b.capsNow().chooseMatMul(1, 64, 64, 64).kernel.name)
	require.NotEmpty(t, warnings)
	require.Contains(t, warnings[0], "kernel matmul_tile_32 [")
	require.Contains(t, b.Device().Failed[0], "element ")

	none := openTest(t, Options{tweak: asGPU, breaks: brokenKernels("matmul_tile")})
	p := layers()
	_, err := none.Compile(p, newStore(t, none, p))
	require.ErrorContains(t, err, "no kernel of matmul is left that gives right results")
}

// So are those of cooperative matrices: the next smaller, and then the tiles without.
func TestBrokenMatrixKernelsAreNotUsed(t *testing.T) {
	openMatrices(t, Options{})
	for prefix, want := range map[string]string{"matmul_matrix_f16_128": "matmul_matrix_f16_64", "matmul_matrix": "matmul_tile_128_narrow"} {
		b := openTest(t, Options{tweak: asGPU, breaks: brokenKernels(prefix)})
		p := graph.NewBuilder()
		p.Output("c", p.MatMul(p.Input("a", graph.F16, 300, 200), p.Input("b", graph.F16, 200, 3000), nil, nil, graph.MatMulAttr{}))
		program := p.Build("product")
		e := compile(t, b, program, newStore(t, b, program))
		require.Equal(t, want, e.launches[0].kernel, "%v", b.Device().Failed)
	}
}

// Each operation's kernel is right on this device, at every size of subgroups.
func TestSubgroupOperations(t *testing.T) {
	b := openTest(t, Options{CheckAgain: true})
	require.True(t, b.Device().Tested)
	require.Empty(t, b.Device().Failed)
	require.NotEmpty(t, b.tests.known.Tests)
	tested := map[string]bool{}
	for name := range b.tests.known.Tests {
		if op, ok := strings.CutPrefix(name, "subgroup "); ok {
			tested[strings.Fields(op)[0]] = true
		}
	}
	for _, op := range subgroupTestOps {
		require.Equal(t, *op.caps(b.caps), tested[op.name], op.name)
	}
}

// The host finds a wrong word, a missing thread and a size that was not asked for.
func TestSubgroupCheckFindsMistakes(t *testing.T) {
	for _, op := range subgroupTestOps {
		for _, size := range []int{4, 8, 32, 64, 128} {
			good := make([]byte, 4*subgroupTestThreads*subgroupTestGroups*subgroupTestSlots)
			put := func(thread, slot int, v uint32) {
				binary.NativeEndian.PutUint32(good[4*(thread*subgroupTestSlots+slot):], v)
			}
			values := func(thread int) (s []uint32) {
				for k := range size {
					s = append(s, subgroupTestValue(thread/size*size+k))
				}
				return s
			}
			words := len(op.want(values(0), 0))
			for i := range subgroupTestThreads * subgroupTestGroups {
				put(i, 0, uint32(i%subgroupTestThreads/size))
				put(i, 1, uint32(i%size))
				put(i, 2, uint32(size))
				for k, w := range op.want(values(i), i%size) {
					put(i, 3+k, w)
				}
			}
			require.Empty(t, checkSubgroups(op.want, uint32(size), good))
			require.Empty(t, checkSubgroups(op.want, 0, good))
			require.NotEmpty(t, checkSubgroups(op.want, uint32(size/2), good))
			for k := range 3 + words {
				at := 4 * (200*subgroupTestSlots + k)
				old := binary.NativeEndian.Uint32(good[at:])
				binary.NativeEndian.PutUint32(good[at:], old^1)
				require.NotEmpty(t, checkSubgroups(op.want, uint32(size), good), "%s of %d, word %d", op.name, size, k)
				binary.NativeEndian.PutUint32(good[at:], old)
			}
			require.Empty(t, checkSubgroups(op.want, uint32(size), good))
		}
	}
}

// A test for which there was no memory says nothing about the device.
func TestSelfTestWithoutMemoryIsNotRemembered(t *testing.T) {
	opts := Options{CacheDir: t.TempDir()}
	if len(openTest(t, opts).tests.known.Tests) == 0 {
		t.Skip("the device has no subgroup operations")
	}
	opts.CacheDir, opts.Software, opts.Limits = t.TempDir(), true, "memory=1K"
	_, err := Open(opts)
	var memory *MemoryError
	require.ErrorAs(t, err, &memory)
	opts.Limits = ""
	require.Empty(t, openTest(t, opts).Device().Failed)
}

func TestSelfTestIsRememberedInTheCache(t *testing.T) {
	opts := Options{CacheDir: t.TempDir()}
	b := openTest(t, opts)
	if len(b.tests.known.Tests) == 0 {
		t.Skip("the device has no subgroup operations")
	}
	file := newChecksFile(opts, &b.physical.DeviceInfo)
	c := file.read()
	require.Equal(t, b.tests.known.Tests, c.Tests)
	c.Tests["subgroup ballot"] = "a wrong result"
	file.write(c, "")
	again := openTest(t, opts)
	require.False(t, again.caps.subgroupBallot)
	require.Equal(t, []string{"subgroup ballot: a wrong result"}, again.Device().Failed)
	opts.CheckAgain = true
	require.Empty(t, openTest(t, opts).Device().Failed)
}

// Programs may be compiled at the same time, some of which find the kernels broken that they would use: for the race detector.
func TestBrokenKernelsAreFoundByManyAtOnce(t *testing.T) {
	b := openTest(t, Options{tweak: asGPU, breaks: brokenKernels("matmul_tile_32", "matmul_tile_64")})
	var group sync.WaitGroup
	for i := range 4 {
		p, rows := graph.NewBuilder(), 3 // for which there is a kernel that is right
		if i%2 == 1 {
			rows = 17
		}
		p.Output("z", p.MatMul(p.Input("x", graph.F32, rows, 33+i), p.Input("y", graph.F32, 33+i, 20), nil, nil, graph.MatMulAttr{}))
		program := p.Build(fmt.Sprint("product ", i))
		s := newStore(t, b, program)
		compile := func() {
			e, err := b.Compile(program, s)
			if !assert.NoError(t, err) {
				return
			}
			for _, l := range e.(*Executable).launches {
				assert.NotContains(t, []string{"matmul_tile_32", "matmul_tile_64"}, l.kernel)
			}
			assert.NoError(t, e.Close())
			_ = b.Device().Failed
		}
		if i == 0 {
			compile() // so that what is right is lowered while the others are tested
		}
		group.Go(func() {
			for range 4 {
				compile()
			}
		})
	}
	group.Wait()
	require.Equal(t, map[string]bool{"matmul_tile_32": true, "matmul_tile_64": true}, b.broken)
}

// A program that is being compiled keeps the kernels that it was proved with when another one finds one of them broken.
func TestKernelsStayWhileAProgramIsCompiled(t *testing.T) {
	b := openTest(t, Options{tweak: asGPU, breaks: brokenKernels("matmul_tile_32")})
	product := func(rows int) (*graph.Program, backend.Store) {
		p := graph.NewBuilder()
		p.Output("z", p.MatMul(p.Input("x", graph.F32, rows, 33), p.Input("y", graph.F32, 33, 20), nil, nil, graph.MatMulAttr{}))
		program := p.Build("product")
		return program, newStore(t, b, program)
	}
	first, store := product(3) // it has a kernel that is right
	second, other := product(17)
	found := make(chan error)
	lowered := 0
	b.lower = func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		if n == first.Nodes()[0] {
			if lowered++; lowered == 2 { // the first time it was for the proof
				assert.True(t, d.has("matmul_tile_32"))
				assert.NoError(t, <-found)
				assert.True(t, d.has("matmul_tile_32"))
			}
		}
		return lowerNode(d, n)
	}
	go func() {
		time.Sleep(time.Second) // and not a channel, which the race detector would take for order
		e, err := b.Compile(second, other)
		if err == nil {
			err = e.Close()
		}
		found <- err
	}()
	compile(t, b, first, store)
	require.Equal(t, 2, lowered)
	require.Equal(t, map[string]bool{"matmul_tile_32": true}, b.broken)
}
