package vulkan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
)

func machine(kinds ...backend.Kind) []DeviceInfo {
	devices := make([]DeviceInfo, len(kinds))
	for i, k := range kinds {
		devices[i] = DeviceInfo{
			Index: i, Name: k.String(), Kind: k, UUID: "0000000" + string(rune('0'+i)) + "-0000-0000-0000-0000000000ab",
			Heaps: []Heap{{Bytes: 1 << 40}, {Bytes: 8 << 30, DeviceLocal: true}},
		}
	}
	return devices
}

func TestAutoTakesTheBestGPU(t *testing.T) {
	for _, c := range []struct {
		kinds []backend.Kind
		opts  Options
		want  int
	}{
		{[]backend.Kind{backend.Software, backend.Integrated, backend.Discrete}, Options{}, 2},
		{[]backend.Kind{backend.Integrated, backend.Virtual}, Options{}, 1},
		{[]backend.Kind{backend.Software, backend.Integrated}, Options{Software: true}, 1},
		{[]backend.Kind{backend.Software}, Options{Software: true}, 0},
		{[]backend.Kind{backend.Software, backend.Software}, Options{Device: "1"}, 1},
		{[]backend.Kind{backend.Discrete, backend.Software}, Options{Device: "00000001-0000-0000-0000-0000000000AB"}, 1},
		{[]backend.Kind{backend.Discrete, backend.Software}, Options{Device: "000000010000000000000000000000ab"}, 1},
		{[]backend.Kind{backend.Discrete, backend.Integrated, backend.Integrated}, Options{Device: "DISC"}, 0},
	} {
		d, err := Choose(machine(c.kinds...), c.opts)
		require.NoError(t, err)
		require.Equal(t, c.want, d.Index, "%v %+v", c.kinds, c.opts)
	}
	two := machine(backend.Discrete, backend.Discrete)
	two[1].Heaps[1].Bytes *= 2
	d, err := Choose(two, Options{})
	require.NoError(t, err)
	require.Equal(t, 1, d.Index, "more memory, though the host's does not count")
	two[1].Unusable = "it is broken"
	d, err = Choose(two, Options{})
	require.NoError(t, err)
	require.Zero(t, d.Index)
}

func TestNoSuchDevice(t *testing.T) {
	broken := machine(backend.Discrete)
	broken[0].Unusable = "its driver has Vulkan 1.0.3, 1.1 is needed"
	for _, c := range []struct {
		devices []DeviceInfo
		opts    Options
		want    string
	}{
		{nil, Options{}, "lists no device"},
		{machine(backend.Software), Options{}, "no GPU (only software drivers, which are slower than the CPU backend and are used only when asked for): vulkan:0 is software (software)"},
		{machine(backend.Discrete), Options{Device: "1"}, `"1": vulkan:0 is discrete (discrete); take an index, a UUID or a part of a name`},
		{machine(backend.Discrete), Options{Device: "-1"}, `as "-1"`},
		{machine(backend.Discrete), Options{Device: "fast"}, `as "fast"`},
		{broken, Options{}, "unusable: its driver has Vulkan 1.0.3"},
	} {
		_, err := Choose(c.devices, c.opts)
		require.ErrorIs(t, err, ErrNoDevice)
		require.ErrorContains(t, err, c.want)
	}
	_, err := Choose(broken, Options{Device: "0"})
	require.ErrorContains(t, err, "device 0 (discrete) cannot be used: its driver has Vulkan 1.0.3, 1.1 is needed")
}

func TestDevicesAreInAStableOrder(t *testing.T) {
	d := machine(backend.Software, backend.Integrated, backend.Discrete, backend.Virtual, backend.Discrete)
	d[2].UUID, d[4].UUID = d[4].UUID, d[2].UUID
	slices.SortStableFunc(d, func(a, b DeviceInfo) int { return order(&a, &b) })
	var was []int
	for _, x := range d {
		was = append(was, x.Index)
	}
	require.Equal(t, []int{4, 2, 3, 1, 0}, was)
	_, err := Choose(d, Options{Device: "discrete"})
	require.ErrorContains(t, err, `more than one device has "discrete" in its name: vulkan:`)
	require.NotErrorIs(t, err, ErrNoDevice)
}

func TestFloorOnlyHidesWhatIsOptional(t *testing.T) {
	d := DeviceInfo{Name: "big", Kind: backend.Discrete}
	d.Limits = Limits{Invocations: 1024, Shared: 64 << 10, GroupCount: [3]uint32{1 << 31, 65535, 65535}, BindBytes: 1 << 32}
	d.Features = Features{
		Storage16: true, Float16: true, Int16: true, SubgroupSize: 32, MinSubgroupSize: 8, MaxSubgroupSize: 64, SubgroupSizeControl: true,
		SubgroupOps: []string{"basic", "arithmetic", "ballot"},
	}
	full := d.caps(false)
	require.True(t, full.storage16 && full.float16 && full.subgroupArith && full.subgroupBallot && full.subgroupSizeControl)
	require.False(t, full.subgroupShuffle || full.int8)
	require.EqualValues(t, 8, full.minSubgroupSize)
	floor := d.caps(true)
	require.Equal(t, &deviceCaps{
		name: "big", kind: backend.Discrete, maxInvocations: 128, sharedBytes: 16 << 10, maxGroups: [3]uint32{65535, 65535, 65535},
		maxBindBytes: 1 << 32, subgroupSize: 32, minSubgroupSize: 32, maxSubgroupSize: 32,
	}, floor)
}
