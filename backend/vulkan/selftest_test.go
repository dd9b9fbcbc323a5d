//go:build cgo

package vulkan

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance"
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
	conformance.RunWith(t, b, conformance.Options{Only: []string{"matmul", "step"}, Pick: func(c conformance.Case) bool {
		return c.Group == "step" || strings.HasPrefix(c.Name, "NN 17x31x33") && !strings.Contains(c.Name, "f16")
	}})
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
