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
		"groups=1":        "1 workgroups in a row (maxComputeWorkGroupCount), 65535 are needed",
		"groups=65534":    "65534 workgroups in a row",
		"shared=8K":       "8192 bytes (maxComputeSharedMemorySize), 16384 are needed",
		"buffers=4":       "4 buffers (maxPerStageDescriptorStorageBuffers)",
		"range=10":        "10 bytes of a buffer (maxStorageBufferRange), 65536 are needed",
		"alloc=1M":        "1048576 bytes (maxMemoryAllocationSize), 4194304 are needed",
	} {
		unusable := narrowed(t, limits).Unusable
		require.Contains(t, unusable, want)
		require.Contains(t, unusable, "Options.Limits makes it so: give more there")
	}
}

// What was measured on a device that options make less of is not what the whole device takes.
func TestLessenedDevicesAreTunedApart(t *testing.T) {
	t.Setenv(limitsVariable, "")
	t.Setenv(noMatricesVariable, "")
	dir, d := t.TempDir(), large()
	file := func(o Options) string {
		o.CacheDir = dir
		return newTuningFile(o, &d).path
	}
	whole := Options{}
	require.Empty(t, whole.lessens())
	files := map[string]bool{file(whole): true}
	for _, o := range []Options{{NoMatrices: true}, {FloorOnly: true}, {Limits: "shared=16K"}, {Limits: "shared=16K", NoMatrices: true}} {
		require.False(t, files[file(o)], "%+v", o)
		files[file(o)] = true
	}
	require.Equal(t, file(Options{Limits: "range=1M,shared=16K"}), file(Options{Limits: "shared=16K, range=1M"}))
	t.Setenv(noMatricesVariable, "1")
	require.Equal(t, file(Options{NoMatrices: true}), file(whole))
	require.Equal(t, file(Options{Limits: "matrix=off"}), file(whole))
	t.Setenv(noMatricesVariable, "")
	t.Setenv(limitsVariable, "shared=16K")
	require.Equal(t, file(Options{Limits: "shared=16K"}), file(whole))
}

func TestBadLimits(t *testing.T) {
	for limits, want := range map[string]string{
		"sharde=1":           `no limit is named "sharde": use 16bit=off, 8bit=off, alloc=N`,
		"shared":             `Options.Limits: shared is "", not a number from 1 to 2^62`,
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

// A variable that was set for a test, and left, is told of.
func TestLimitsOfTheEnvironmentAreToldOf(t *testing.T) {
	for said, want := range map[string]string{"": "", " , ": "", "shared=16K": "VKTRAIN_LIMITS=shared=16K: no more than that is used of the device"} {
		t.Setenv(limitsVariable, said)
		require.Equal(t, want, (&Options{}).lessened())
		require.Empty(t, (&Options{Limits: "shared=16K"}).lessened(), "who sets the option knows")
	}
}
