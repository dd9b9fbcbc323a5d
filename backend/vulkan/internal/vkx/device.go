//go:build cgo

package vkx

// #include "vkx.h"
import "C"

import (
	"slices"
	"sync/atomic"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// QueueFamily describes one family of queues.
type QueueFamily struct {
	Flags         vk.QueueFlags
	Count         uint32
	TimestampBits uint32
}

// QueueFamilies lists a device's queue families, by index.
func (i *Instance) QueueFamilies(pd vk.PhysicalDevice) []QueueFamily {
	list, _ := enumerate("", func(n *C.uint32_t, out *C.VkxQueueFamilyProperties) C.VkxResult {
		C.vkx_queue_families(&i.c, dispatchable(pd), n, out)
		return 0
	})
	families := make([]QueueFamily, len(list))
	for k, f := range list {
		families[k] = QueueFamily{vk.QueueFlags(f.queueFlags), uint32(f.queueCount), uint32(f.timestampValidBits)}
	}
	return families
}

// DeviceExtensions lists what a device can do beyond its core version.
func (i *Instance) DeviceExtensions(pd vk.PhysicalDevice) ([]string, error) {
	list, err := enumerate("vkEnumerateDeviceExtensionProperties", func(n *C.uint32_t, out *C.VkxExtensionProperties) C.VkxResult {
		return C.vkx_device_extensions(&i.c, dispatchable(pd), n, out)
	})
	return extensionNames(list), err
}

// Known says which optional structs a device may be asked to fill.
type Known struct {
	Driver              bool // Vulkan 1.2 or VK_KHR_driver_properties
	SubgroupSizeControl bool // Vulkan 1.3 or VK_EXT_subgroup_size_control
	Float16Int8         bool // Vulkan 1.2 or VK_KHR_shader_float16_int8
	Executables         bool // VK_KHR_pipeline_executable_properties
	CooperativeMatrix   bool // VK_KHR_cooperative_matrix
	BFloat16            bool // VK_KHR_shader_bfloat16
	MemoryModel         bool // Vulkan 1.2 or VK_KHR_vulkan_memory_model
}

func (k Known) c() C.vkx_known {
	return C.vkx_known{
		driver: cBool(k.Driver), subgroup_size_control: cBool(k.SubgroupSizeControl),
		float16_int8: cBool(k.Float16Int8), storage16: 1, executables: cBool(k.Executables),
		cooperative_matrix: cBool(k.CooperativeMatrix), bfloat16: cBool(k.BFloat16), memory_model: cBool(k.MemoryModel),
	}
}

// Properties are what vkGetPhysicalDeviceProperties2 adds to Vulkan 1.0. Fields that the device does not know are zero.
type Properties struct {
	DeviceUUID, DriverUUID  [16]byte
	DriverID                uint32
	DriverName, DriverInfo  string
	SubgroupSize            uint32
	SubgroupStages          uint32 // VkShaderStageFlags
	SubgroupOps             uint32 // VkSubgroupFeatureFlags
	MinSubgroupSize         uint32
	MaxSubgroupSize         uint32
	RequiredSubgroupStages  uint32
	MaxMemoryAllocationSize uint64
}

// Properties asks a device.
func (i *Instance) Properties(pd vk.PhysicalDevice, known Known) Properties {
	var p C.vkx_properties
	k := known.c()
	C.vkx_get_properties(&i.c, dispatchable(pd), &k, &p)
	return Properties{
		DeviceUUID: *(*[16]byte)(unsafe.Pointer(&p.id.deviceUUID)), DriverUUID: *(*[16]byte)(unsafe.Pointer(&p.id.driverUUID)),
		DriverID: uint32(p.driver.driverID), DriverName: text(p.driver.driverName[:]), DriverInfo: text(p.driver.driverInfo[:]),
		SubgroupSize: uint32(p.subgroup.subgroupSize), SubgroupStages: uint32(p.subgroup.supportedStages),
		SubgroupOps:     uint32(p.subgroup.supportedOperations),
		MinSubgroupSize: uint32(p.subgroup_size.minSubgroupSize), MaxSubgroupSize: uint32(p.subgroup_size.maxSubgroupSize),
		RequiredSubgroupStages:  uint32(p.subgroup_size.requiredSubgroupSizeStages),
		MaxMemoryAllocationSize: uint64(p.maintenance3.maxMemoryAllocationSize),
	}
}

// Features are the optional features that matter to compute kernels.
type Features struct {
	Int16               bool // 16-bit integers in arithmetic
	Int64               bool
	Float64             bool
	Storage16           bool // 16-bit loads and stores in storage buffers
	Float16             bool // 16-bit floats in arithmetic
	Int8                bool
	SubgroupSizeControl bool
	FullSubgroups       bool
	Executables         bool // pipeline statistics
	CooperativeMatrix   bool
	BFloat16Matrix      bool // cooperative matrices of bfloat16
	MemoryModel         bool // Vulkan's memory model, which cooperative matrices need
}

// Features asks a device.
func (i *Instance) Features(pd vk.PhysicalDevice, known Known) Features {
	var f C.vkx_features
	k := known.c()
	C.vkx_get_features(&i.c, dispatchable(pd), &k, &f)
	return Features{
		Int16:     f.core.core[C.VKX_FEATURE_INT16] != 0,
		Int64:     f.core.core[C.VKX_FEATURE_INT64] != 0,
		Float64:   f.core.core[C.VKX_FEATURE_FLOAT64] != 0,
		Storage16: f.storage16.storageBuffer != 0,
		Float16:   f.float16_int8.shaderFloat16 != 0, Int8: f.float16_int8.shaderInt8 != 0,
		SubgroupSizeControl: f.subgroup_size.subgroupSizeControl != 0,
		FullSubgroups:       f.subgroup_size.computeFullSubgroups != 0,
		Executables:         f.executables.pipelineExecutableInfo != 0,
		CooperativeMatrix:   f.cooperative_matrix.cooperativeMatrix != 0,
		BFloat16Matrix:      f.bfloat16._type != 0 && f.bfloat16.cooperativeMatrix != 0,
		MemoryModel:         f.memory_model.vulkanMemoryModel != 0,
	}
}

// MemoryType is one way to allocate.
type MemoryType struct {
	Flags vk.MemoryPropertyFlags
	Heap  int
}

// MemoryHeap is one pool of memory, in bytes. Budget and Usage are zero without VK_EXT_memory_budget.
type MemoryHeap struct {
	Size          uint64
	DeviceLocal   bool
	Budget, Usage uint64
}

// Memory asks for a device's memory types and heaps; withBudget needs VK_EXT_memory_budget.
func (i *Instance) Memory(pd vk.PhysicalDevice, withBudget bool) ([]MemoryType, []MemoryHeap) {
	var m C.VkxMemoryProperties2
	var b C.VkxMemoryBudget
	C.vkx_get_memory(&i.c, dispatchable(pd), cBool(withBudget), &m, &b)
	types := make([]MemoryType, m.memoryTypeCount)
	for k := range types {
		types[k] = MemoryType{vk.MemoryPropertyFlags(m.memoryTypes[k].propertyFlags), int(m.memoryTypes[k].heapIndex)}
	}
	heaps := make([]MemoryHeap, m.memoryHeapCount)
	for k := range heaps {
		h := m.memoryHeaps[k]
		heaps[k] = MemoryHeap{uint64(h.size), h.flags&1 != 0, uint64(b.heapBudget[k]), uint64(b.heapUsage[k])}
	}
	return types, heaps
}

// CooperativeMatrix is one shape that VK_KHR_cooperative_matrix multiplies: C (MxN) += A (MxK) B (KxN). Types are
// VkComponentTypeKHR, Scope is a VkScopeKHR.
type CooperativeMatrix struct {
	M, N, K         uint32
	A, B, C, Result uint32
	Saturating      bool
	Scope           uint32
}

// CooperativeMatrices lists the shapes of a device that has the extension.
func (i *Instance) CooperativeMatrices(pd vk.PhysicalDevice) ([]CooperativeMatrix, error) {
	list, err := enumerate("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
		func(n *C.uint32_t, out *C.VkxCooperativeMatrixProperties) C.VkxResult {
			return C.vkx_cooperative_matrices(&i.c, dispatchable(pd), n, out)
		})
	shapes := make([]CooperativeMatrix, len(list))
	for k, m := range list {
		shapes[k] = CooperativeMatrix{
			M: uint32(m.MSize), N: uint32(m.NSize), K: uint32(m.KSize),
			A: uint32(m.AType), B: uint32(m.BType), C: uint32(m.CType), Result: uint32(m.ResultType),
			Saturating: m.saturatingAccumulation != 0, Scope: uint32(m.scope),
		}
	}
	return shapes, err
}

// DeviceConfig says what logical device to make: one queue of a family.
type DeviceConfig struct {
	QueueFamily uint32
	Extensions  []string
	Features    Features // to turn on; Int64 and Float64 stay off
}

// Device is a VkDevice with its function table.
type Device struct {
	Handle vk.Device
	// Made counts the objects that were made of the device: those of this package's wrappers, and what others add.
	Made atomic.Int64
	c    C.vkx_device
}

// NewDevice creates a logical device.
func (i *Instance) NewDevice(pd vk.PhysicalDevice, config DeviceConfig) (*Device, error) {
	extensions := newCStrings(config.Extensions)
	defer extensions.free()
	f := config.Features
	c := C.vkx_device_config{
		queue_family: C.uint32_t(config.QueueFamily),
		extensions:   extensions.array, extension_count: extensions.n,
		int16: cBool(f.Int16), storage16: cBool(f.Storage16), float16: cBool(f.Float16), int8: cBool(f.Int8),
		subgroup_size_control: cBool(f.SubgroupSizeControl), full_subgroups: cBool(f.FullSubgroups),
		executables: cBool(f.Executables), cooperative_matrix: cBool(f.CooperativeMatrix),
		bfloat16_matrix: cBool(f.BFloat16Matrix), memory_model: cBool(f.MemoryModel),
		swapchain: cBool(slices.Contains(config.Extensions, ExtSwapchain)),
	}
	d := &Device{}
	if r := vk.Result(C.vkx_create_device(&i.c, dispatchable(pd), &c, &d.c)); r != vk.Success {
		return nil, Check("vkCreateDevice", r)
	}
	d.Handle = *(*vk.Device)(ptr(&d.c.handle))
	return d, nil
}

// Close destroys the device; everything made from it must be gone.
func (d *Device) Close() {
	C.vkx_destroy_device(&d.c)
	d.Handle = nil
}
