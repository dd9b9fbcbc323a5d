//go:build cgo

package vkx

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	vk "github.com/vulkan-go/vulkan"
)

// open makes an instance and gives its first device. Without Vulkan the test is skipped, or fails where VKTRAIN_REQUIRE_VULKAN is 1.
func open(t *testing.T) (*Instance, vk.PhysicalDevice) {
	t.Helper()
	need := func(err error) {
		if err != nil && os.Getenv("VKTRAIN_REQUIRE_VULKAN") != "1" {
			t.Skip("no Vulkan: ", err)
		}
		require.NoError(t, err)
	}
	need(Load(LibraryNames()...))
	instance, err := NewInstance(InstanceConfig{App: "vkx test", APIVersion: vk.MakeVersion(1, 1, 0)})
	need(err)
	t.Cleanup(instance.Close)
	var n uint32
	require.Equal(t, vk.Success, vk.EnumeratePhysicalDevices(instance.Handle, &n, nil))
	if n == 0 {
		need(errors.New("no device"))
	}
	devices := make([]vk.PhysicalDevice, n)
	require.Equal(t, vk.Success, vk.EnumeratePhysicalDevices(instance.Handle, &n, devices))
	return instance, devices[0]
}

// Each library that was tried is named with why it failed, and a later call may succeed. Only in a process of its own is nothing loaded before: so
// this looks at the state that all tests share.
func TestLoadNamesWhatItTried(t *testing.T) {
	loaded.Lock()
	before := loaded.done
	loaded.done = false
	loaded.Unlock()
	defer func() {
		loaded.Lock()
		loaded.done = loaded.done || before
		loaded.Unlock()
	}()
	err := Load("libnothing.so.7", "libabsent.so")
	require.ErrorContains(t, err, "libnothing.so.7: ")
	require.ErrorContains(t, err, "libabsent.so: ")
	require.NotEmpty(t, LibraryNames())
}

func TestResults(t *testing.T) {
	require.NoError(t, Check("vkX", vk.Success))
	err := fmt.Errorf("while: %w", Check("vkX", vk.ErrorDeviceLost))
	require.EqualError(t, err, "while: vkX: device lost")
	require.Equal(t, vk.ErrorDeviceLost, Code(err))
	require.Equal(t, vk.Success, Code(errors.New("other")))
	require.EqualError(t, Check("vkX", -1234), "vkX: VkResult -1234")
}

func TestHandlesKeepTheirBits(t *testing.T) {
	const bits = uint64(0xfedc_ba98_7654_3210)
	require.EqualValues(t, bits, u64(handle[vk.Pipeline](cHandle(bits))))
	require.Equal(t, uintptr(4*4+5*8), unsafe.Sizeof(Command{}), "a command is plain memory")
}

// enumerate asks again when the list grew between the two calls, and gives up on errors.
func TestEnumerate(t *testing.T) {
	sizes := []int{2, 3, 3}
	calls := 0
	list, err := enumerate("vkX", func(n *cCount, out *int) cResult {
		size := sizes[min(calls/2, 2)]
		calls++
		if out == nil {
			*n = cCount(size)
			return 0
		}
		size = sizes[min(calls/2, 2)] // it has grown since
		if int(*n) < size {
			return 5 // VK_INCOMPLETE
		}
		*n = cCount(size)
		for i := range unsafe.Slice(out, size) {
			unsafe.Slice(out, size)[i] = i + 1
		}
		return 0
	})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, list)
	_, err = enumerate("vkX", func(*cCount, *int) cResult { return -1 })
	require.EqualError(t, err, "vkX: out of host memory")
	list, err = enumerate("vkX", func(n *cCount, _ *int) cResult { *n = 0; return 0 })
	require.NoError(t, err)
	require.Empty(t, list)
}

// What the calls newer than 1.0 tell agrees with what the 1.0 calls tell where both know it.
func TestQueriesAgreeWithTheBinding(t *testing.T) {
	instance, pd := open(t)
	types, heaps := instance.Memory(pd, false)
	var m vk.PhysicalDeviceMemoryProperties
	vk.GetPhysicalDeviceMemoryProperties(pd, &m)
	m.Deref()
	defer m.Free()
	require.Len(t, types, int(m.MemoryTypeCount))
	require.Len(t, heaps, int(m.MemoryHeapCount))
	for i := range types {
		m.MemoryTypes[i].Deref()
		require.Equal(t, MemoryType{m.MemoryTypes[i].PropertyFlags, int(m.MemoryTypes[i].HeapIndex)}, types[i])
	}
	for i := range heaps {
		m.MemoryHeaps[i].Deref()
		require.EqualValues(t, m.MemoryHeaps[i].Size, heaps[i].Size)
		require.Equal(t, m.MemoryHeaps[i].Flags&1 != 0, heaps[i].DeviceLocal)
	}
	var f vk.PhysicalDeviceFeatures
	vk.GetPhysicalDeviceFeatures(pd, &f)
	f.Deref()
	defer f.Free()
	got := instance.Features(pd, Known{})
	require.Equal(t, f.ShaderInt16.B(), got.Int16)
	require.Equal(t, f.ShaderInt64.B(), got.Int64)
	require.Equal(t, f.ShaderFloat64.B(), got.Float64)

	p := instance.Properties(pd, Known{})
	require.NotZero(t, p.SubgroupSize)
	require.GreaterOrEqual(t, p.MaxMemoryAllocationSize, uint64(1<<30), "the least that Vulkan 1.1 allows")
	require.NotEqual(t, [16]byte{}, p.DriverUUID)

	families := instance.QueueFamilies(pd)
	require.NotEmpty(t, families)
	extensions, err := instance.DeviceExtensions(pd)
	require.NoError(t, err)
	require.NotContains(t, extensions, "")
}

// A device with everything that it offers turned on can be made, and each function was found.
func TestNewDevice(t *testing.T) {
	instance, pd := open(t)
	features := instance.Features(pd, Known{})
	family := -1
	for i, f := range instance.QueueFamilies(pd) {
		if f.Flags&vk.QueueFlags(vk.QueueComputeBit) != 0 {
			family = i
		}
	}
	require.GreaterOrEqual(t, family, 0)
	d, err := instance.NewDevice(pd, DeviceConfig{QueueFamily: uint32(family), Features: features})
	require.NoError(t, err)
	for name, f := range map[string]any{
		"submit": d.c.queue_submit, "pipelines": d.c.create_compute_pipelines, "sets": d.c.update_sets, "dispatch": d.c.cmd_dispatch,
		"barrier": d.c.cmd_barrier, "copy": d.c.cmd_copy, "fill": d.c.cmd_fill, "timestamp": d.c.cmd_timestamp, "begin": d.c.begin,
	} {
		require.NotNil(t, f, name)
	}
	d.Close()
	d.Close()
	_, err = instance.NewDevice(pd, DeviceConfig{QueueFamily: uint32(family), Extensions: []string{"VK_KHR_no_such_thing"}})
	require.Equal(t, vk.ErrorExtensionNotPresent, Code(err))
}

func TestSurfaceAt(t *testing.T) {
	surface := handle[vk.Surface](0xfedc_ba98_7654_3210)
	require.EqualValues(t, uint64(0xfedc_ba98_7654_3210), u64(SurfaceAt(uintptr(unsafe.Pointer(&surface)))))
}
