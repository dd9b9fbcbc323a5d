package vulkan

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/vktrain/vktrain/graph"
)

// Drivers have listed subgroup operations that gave wrong results (llama.cpp#15846, llama.cpp#20029): each is run by a kernel of its own on a device
// not seen before, and compared with what it must give.

// subgroupTestOps are the operations that kernels may use, as Features.SubgroupOps names them.
var subgroupTestOps = []struct {
	name string
	caps func(d *deviceCaps) *bool
	want func(s []uint32, lane int) []uint32 // what lane must get, of a subgroup with these values
}{
	{"vote", func(d *deviceCaps) *bool { return &d.subgroupVote }, wantVote},
	{"arithmetic", func(d *deviceCaps) *bool { return &d.subgroupArith }, wantArithmetic},
	{"ballot", func(d *deviceCaps) *bool { return &d.subgroupBallot }, wantBallot},
	{"shuffle", func(d *deviceCaps) *bool { return &d.subgroupShuffle }, wantShuffle},
	{"clustered", func(d *deviceCaps) *bool { return &d.subgroupClustered }, wantClustered},
}

// The numbers of subgroup_test.comp.
const (
	subgroupTestThreads = 128
	subgroupTestGroups  = 3
	subgroupTestSlots   = 16
	subgroupTestOffset  = 1e6 // of the pattern
)

func subgroupTestValue(thread int) uint32 {
	return (uint32(thread) + subgroupTestOffset) * 2654435761 >> 20
}

// subgroupTestProgram has a node that lowerSubgroupTest can lower.
func subgroupTestProgram() *graph.Program {
	g := graph.NewBuilder()
	g.Fill(g.Var("result", graph.F32, subgroupTestThreads*subgroupTestGroups*subgroupTestSlots), 0)
	return g.Build("subgroup_test")
}

// lowerSubgroupTest runs an operation's kernel with subgroups of a size, or of the driver's choice for 0.
func lowerSubgroupTest(op string, size uint32) lowerFunc {
	return func(d *deviceCaps, n *graph.Node) ([]dispatch, error) {
		return []dispatch{{
			kernel: "subgroup_test_" + op, push: struct{ Seed uint32 }{subgroupTestOffset}, bind: n.Out, groups: [3]uint32{subgroupTestGroups, 1, 1},
			subgroupSize: size,
		}}, nil
	}
}

// checkSubgroups says what is wrong with the words that an operation's kernel wrote; "" if nothing is.
func checkSubgroups(want func([]uint32, int) []uint32, size uint32, result []byte) string {
	word := func(thread, slot int) uint32 {
		return binary.NativeEndian.Uint32(result[4*(thread*subgroupTestSlots+slot):])
	}
	for g := range subgroupTestGroups {
		members := map[uint32][]int{} // by subgroup, the threads by lane
		for i := range subgroupTestThreads {
			t := g*subgroupTestThreads + i
			id, lane, of := word(t, 0), word(t, 1), word(t, 2)
			switch {
			case of == 0 || of > 128 || of&(of-1) != 0 || size > 0 && of != size:
				return fmt.Sprintf("a subgroup has %d threads, want %d", of, size)
			case lane >= of || id >= subgroupTestThreads:
				return fmt.Sprintf("thread %d is number %d of %d in subgroup %d", i, lane, of, id)
			case members[id] == nil:
				members[id] = make([]int, of)
				for k := range members[id] {
					members[id][k] = -1
				}
			case len(members[id]) != int(of) || members[id][lane] >= 0:
				return fmt.Sprintf("two threads are number %d of subgroup %d", lane, id)
			}
			members[id][lane] = t
		}
		for id, threads := range members {
			values := make([]uint32, len(threads))
			for lane, t := range threads {
				if t < 0 {
					return fmt.Sprintf("subgroup %d of a full workgroup has no thread %d of %d", id, lane, len(threads))
				}
				values[lane] = subgroupTestValue(t)
			}
			for lane, t := range threads {
				for k, w := range want(values, lane) {
					if got := word(t, 3+k); got != w {
						return fmt.Sprintf("result %d of thread %d of %d is %d, want %d", k, lane, len(threads), int32(got), int32(w))
					}
				}
			}
		}
	}
	return ""
}

func wantVote(s []uint32, _ int) []uint32 {
	none, equal := true, true
	for _, x := range s {
		none, equal = none && x%8 != 0, equal && x == s[0]
	}
	return []uint32{1, flag(none), flag(!none), 0, flag(equal), 1}
}

func wantArithmetic(s []uint32, lane int) []uint32 {
	var total, most, or, before uint32
	least := s[0]
	for i, x := range s {
		if i == lane {
			before = total
		}
		total, most, least, or = total+x, max(most, x), min(least, x), or|x
	}
	const half = 2048
	return []uint32{total, most, least, total - half*uint32(len(s)), most - half, least - half, or, before + s[lane], before}
}

func wantBallot(s []uint32, _ int) []uint32 {
	w := make([]uint32, 9)
	for i, x := range s {
		w[i/32] |= x & 1 << (i % 32)
	}
	for _, b := range w[:4] {
		w[8] += uint32(bits.OnesCount32(b))
	}
	w[4], w[5], w[6], w[7] = s[0], s[3], s[0], s[2]-2048
	return w
}

func wantShuffle(s []uint32, lane int) []uint32 {
	n := len(s)
	return []uint32{s[(lane+1)%n], s[n-1-lane], s[lane^1], s[lane^2], s[lane^n/2]}
}

func wantClustered(s []uint32, lane int) []uint32 {
	four := s[lane&^3:][:4]
	sum := four[0] + four[1] + four[2] + four[3]
	return []uint32{sum, max(four[0], four[1], four[2], four[3]), sum - 4*2048}
}
