//go:build cgo

package vulkan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

// Memory types as real devices list them: which each class takes first, and what it falls back on.
func TestMemoryTypesByClass(t *testing.T) {
	const (
		dl = deviceLocal
		v  = hostVisible
		c  = hostCoherent
		k  = hostCached
	)
	for _, d := range []struct {
		name    string
		unified bool
		types   []vkx.MemoryType
		want    [numClasses][]int
	}{
		{"AMD card with resizable BAR", false, []vkx.MemoryType{
			{Flags: dl}, {Flags: v | c}, {Flags: dl | v | c}, {Flags: v | c | k}, {Flags: dl | 0x40}, {Flags: v | c | 0xC0},
		}, [numClasses][]int{onDevice: {0, 2}, upload: {1, 2, 3}, readback: {3, 1, 2}, onHost: {3, 1}}},
		{"NVIDIA card", false, []vkx.MemoryType{
			{Flags: 0}, {Flags: dl}, {Flags: v | c}, {Flags: v | c | k}, {Flags: dl | v | c},
		}, [numClasses][]int{onDevice: {1, 4}, upload: {2, 4, 3}, readback: {3, 2, 4}, onHost: {3, 2}}},
		{"Intel, shared", true, []vkx.MemoryType{
			{Flags: dl}, {Flags: dl | v | c}, {Flags: dl | v | c | k},
		}, [numClasses][]int{onDevice: {2, 1, 0}, upload: {1, 2}, readback: {2, 1}}},
		{"not coherent", true, []vkx.MemoryType{
			{Flags: dl | v | k},
		}, [numClasses][]int{onDevice: {0}, upload: {0}, readback: {0}}},
		{"no hardware", false, nil, [numClasses][]int{}},
	} {
		for class := range numClasses {
			require.Equal(t, d.want[class], orderTypes(d.types, 1<<len(d.types)-1, class, d.unified), "%s: %s", d.name, class)
		}
	}
	require.Equal(t, []int{1}, orderTypes([]vkx.MemoryType{{Flags: dl}, {Flags: dl}}, 0b10, onDevice, false), "a type that a buffer does not allow")
}

// Memory that is not coherent is flushed and invalidated, at offsets and sizes that the validation layer accepts.
func TestMemoryThatIsNotCoherent(t *testing.T) {
	needValidation(t)
	for name, tweak := range memoryModes {
		t.Run(name, func(t *testing.T) {
			b := openArith(t, Options{Validate: true, tweak: tweak})
			for i := range b.physical.types {
				b.physical.types[i].Flags &^= hostCoherent
			}
			for _, n := range []int{1, 63, 1000} {
				require.NoError(t, countUp(b, n, 3, 2))
			}
			for _, list := range b.memory.blocks {
				for _, block := range list {
					require.False(t, block.coherent)
				}
			}
		})
	}
}

// Where one allocation may be small, a store is spread over many; a program finds its variables all the same.
func TestStoreOverManyBlocks(t *testing.T) {
	const largest, vars = 64 << 10, 20
	b := openArith(t, Options{tweak: func(d *DeviceInfo) { d.Limits.AllocBytes = largest }})
	g := graph.NewBuilder()
	const n = largest / 4 / 2 // two to a block
	sum := g.Fill(g.Temp("sum", graph.F32, n), 0)
	for i := range vars {
		sum = g.Add(sum, g.Var(fmt.Sprintf("v%d", i), graph.F32, n), sum)
	}
	g.Output("sum", sum)
	p := g.Build("spread")
	s := newStore(t, b, p)
	want := float32(0)
	for i := range vars {
		require.NoError(t, s.Write(fmt.Sprintf("v%d", i), repeated(float32(i), n)))
		want += float32(i)
	}
	e := compile(t, b, p, s)
	require.GreaterOrEqual(t, len(b.memory.blocks[onDevice]), vars/2)
	ticket, err := e.Submit()
	require.NoError(t, err)
	require.Equal(t, repeated(want, n), fetch(t, e, ticket, "sum", 4*n))
	require.EqualValues(t, vars*4*n, s.(*Store).DeviceBytes())
	require.EqualValues(t, 4*n, e.DeviceBytes())
}
