package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// large is a device of which every limit can be narrowed.
func large() DeviceInfo {
	return DeviceInfo{
		Name: "large", Kind: backend.Discrete, Heaps: []Heap{{Bytes: 8 << 30, Free: 7 << 30, DeviceLocal: true}},
		Limits: Limits{
			Invocations: 1024, GroupSize: [3]uint32{1024, 1024, 64}, GroupCount: [3]uint32{1 << 31, 65535, 65535}, Shared: 64 << 10, Bindings: 32,
			BindBytes: 4 << 30, AllocBytes: 4 << 30, PushBytes: 256, TimestampNanos: 1,
		},
		Features: Features{
			Storage16: true, Int16: true, Float16: true, Int8: true, SubgroupSize: 32, SubgroupOps: []string{"basic", "ballot"},
			SubgroupSizeControl: true, FullSubgroups: true, CooperativeMatrix: []string{"16x16x16 f16*f16+f32"},
		},
	}
}

func narrowed(t *testing.T, limits string) DeviceInfo {
	t.Helper()
	change, err := narrower(limits)
	require.NoError(t, err)
	d := large()
	change(&d)
	return d
}

func TestLimitsNarrowADevice(t *testing.T) {
	t.Setenv(limitsVariable, "")
	require.Equal(t, large(), narrowed(t, ""))
	d := narrowed(t, "shared=16K,invocations=128, group=128,groups=70000,buffers=16,range=64M,alloc=1G,memory=2G")
	want := large()
	want.Heaps = []Heap{{Bytes: 2 << 30, Free: 2 << 30, DeviceLocal: true}}
	want.Limits = Limits{
		Invocations: 128, GroupSize: [3]uint32{128, 128, 64}, GroupCount: [3]uint32{70000, 65535, 65535}, Shared: 16 << 10, Bindings: 16,
		BindBytes: 64 << 20, AllocBytes: 1 << 30, PushBytes: 256, TimestampNanos: 1,
	}
	require.Equal(t, want, d)
	require.Equal(t, large(), narrowed(t, "shared=1G,range=16G"), "nothing grows")
	d = narrowed(t, "subgroup=off,16bit=off,8bit=off,matrix=off,timestamps=off")
	require.Equal(t, Features{SubgroupSize: 32}, d.Features)
	require.Zero(t, d.Limits.TimestampNanos)

	t.Setenv(limitsVariable, "shared=32768")
	require.EqualValues(t, 32768, narrowed(t, "").Limits.Shared)
	require.EqualValues(t, 64<<10, narrowed(t, "range=1M").Limits.Shared, "the option goes before the environment")
}

func TestLimitsBelowTheFloorAreNamed(t *testing.T) {
	for limits, want := range map[string]string{
		"invocations=127": "127 threads (maxComputeWorkGroupInvocations), 128 are needed",
		"group=64":        "64 threads in a row (maxComputeWorkGroupSize)",
		"shared=8K":       "8192 bytes (maxComputeSharedMemorySize), 16384 are needed",
		"buffers=4":       "4 buffers (maxPerStageDescriptorStorageBuffers)",
	} {
		require.Contains(t, narrowed(t, limits).Unusable, want)
	}
}

func TestBadLimits(t *testing.T) {
	for limits, want := range map[string]string{
		"sharde=1":           `no limit is named "sharde": use 16bit=off, 8bit=off, alloc=N`,
		"shared":             `Options.Limits: shared is "", not a number above 0`,
		"shared=0":           `shared is "0"`,
		"shared=-1":          `shared is "-1"`,
		"range=64MB":         `range is "64MB"`,
		"range=99999999999G": `range is "99999999999G"`,
		"subgroup=on":        `subgroup can only be off, not "on"`,
	} {
		_, err := narrower(limits)
		require.ErrorContains(t, err, want)
	}
	t.Setenv(limitsVariable, "nonsense")
	_, err := narrower("")
	require.ErrorContains(t, err, `VKTRAIN_LIMITS: no limit is named "nonsense"`)
}

// What a device lacks for a kernel is told with the limit's name and the operator.
func TestKernelsBeyondADevice(t *testing.T) {
	kernel := shader{bindings: 2, pushBytes: 8, specs: 1, group: [3]uint32{256, 1, 1}, sharedBytes: 20000, capabilities: []string{"Shader", "GroupNonUniformArithmetic", "Float16"}}
	lookup := func(name string) (shader, bool) { return kernel, name == "two" }
	low := func(*deviceCaps, *graph.Node) ([]dispatch, error) {
		return []dispatch{{
			kernel: "two", spec: []uint32{7}, push: struct{ A, B uint32 }{1, 2}, bind: make([]*graph.Value, 2), groups: [3]uint32{1, 1, 1},
		}}, nil
	}
	d := roomyCaps(backend.Discrete)
	d.subgroupArith, d.float16 = true, true
	_, err := lowerProgram(d, addProgram(), low, lookup)
	require.NoError(t, err)
	for want, change := range map[string]func(*deviceCaps){
		"[256 1 1] threads, the device allows [256 256 64] and 255 in all":                   func(d *deviceCaps) { d.maxInvocations = 255 },
		"the device allows [200 256 64]":                                                     func(d *deviceCaps) { d.maxGroupSize[0] = 200 },
		"20000 bytes of shared memory, the device allows 19999 (maxComputeSharedMemorySize)": func(d *deviceCaps) { d.sharedBytes = 19999 },
		"it needs GroupNonUniformArithmetic":                                                 func(d *deviceCaps) { d.subgroupArith = false },
		"it needs Float16":                                                                   func(d *deviceCaps) { d.float16 = false },
	} {
		less := *d
		change(&less)
		_, err := lowerProgram(&less, addProgram(), low, lookup)
		var unsupported *backend.UnsupportedError
		require.ErrorAs(t, err, &unsupported)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "%add = add(%x, %x)")
	}
}
