//go:build cgo

package vulkan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// describe asks a device for all that matters but its cooperative matrices: see probe.go.
func describe(instance *vkx.Instance, handle vk.PhysicalDevice) (*physicalDevice, error) {
	extensions, err := instance.DeviceExtensions(handle)
	if err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	core := coreProperties(handle)
	d := &physicalDevice{handle: handle, extensions: extensions, version: min(core.ApiVersion, version13), cacheUUID: core.PipelineCacheUUID}
	d.Name = vk.ToString(core.DeviceName[:])
	d.Kind = kindOf(core.DeviceType)
	d.VendorID, d.DeviceID, d.DriverVersion = core.VendorID, core.DeviceID, core.DriverVersion
	d.Vendor = vendorName(core.VendorID)
	d.API = vk.Version(core.ApiVersion).String()
	if core.ApiVersion < version11 {
		d.KindName = d.Kind.String()
		d.Unusable = "its driver has Vulkan " + d.API + ", 1.1 is needed"
		return d, nil // it may not be asked the rest
	}
	d.askProperties(instance)
	d.Features.fill(instance, d)
	d.Limits.fill(&core.Limits)
	d.Limits.AllocBytes = int64(min(instance.Properties(handle, d.known()).MaxMemoryAllocationSize, 1<<62))
	d.askMemory(instance)
	d.findQueue(instance.QueueFamilies(handle))
	d.applyQuirks()
	d.checkFloor()
	return d, nil
}

// coreProperties are what Vulkan 1.0 tells; the binding's copy is plain Go memory.
func coreProperties(handle vk.PhysicalDevice) vk.PhysicalDeviceProperties {
	var p vk.PhysicalDeviceProperties
	vk.GetPhysicalDeviceProperties(handle, &p)
	p.Deref()
	p.Limits.Deref()
	p.Free()
	return p
}

func (d *physicalDevice) has(extension string) bool { return slices.Contains(d.extensions, extension) }

func (d *physicalDevice) known() vkx.Known {
	return vkx.Known{
		Driver:              d.version >= version12 || d.has(vkx.ExtDriverProperties),
		Float16Int8:         d.version >= version12 || d.has(vkx.ExtFloat16Int8),
		SubgroupSizeControl: d.version >= version13 || d.has(vkx.ExtSubgroupSizeControl),
		Executables:         d.has(vkx.ExtExecutableProperties),
		CooperativeMatrix:   d.has(vkx.ExtCooperativeMatrix),
		BFloat16:            d.has(vkx.ExtBFloat16),
		MemoryModel:         d.version >= version12 || d.has(vkx.ExtMemoryModel),
	}
}

func (d *physicalDevice) askProperties(instance *vkx.Instance) {
	p := instance.Properties(d.handle, d.known())
	d.UUID, d.DriverUUID = uuid(p.DeviceUUID), uuid(p.DriverUUID)
	d.Driver = strings.TrimSpace(p.DriverName + " " + p.DriverInfo)
	if p.DriverInfo == "" {
		d.Driver = strings.TrimSpace(fmt.Sprintf("%s %s", p.DriverName, vk.Version(d.DriverVersion)))
	}
	f := &d.Features
	f.SubgroupSize = p.SubgroupSize
	f.MinSubgroupSize, f.MaxSubgroupSize = p.MinSubgroupSize, p.MaxSubgroupSize
	const compute = uint32(vk.ShaderStageComputeBit)
	if p.SubgroupStages&compute != 0 {
		for bit, name := range []string{"basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative", "clustered", "quad"} {
			if p.SubgroupOps&(1<<bit) != 0 {
				f.SubgroupOps = append(f.SubgroupOps, name)
			}
		}
	}
	// A size can only be required of compute shaders where the device says so.
	f.SubgroupSizeControl = p.RequiredSubgroupStages&compute != 0
}

func (f *Features) fill(instance *vkx.Instance, d *physicalDevice) {
	have := instance.Features(d.handle, d.known())
	f.Storage16, f.Int16, f.Float16, f.Int8 = have.Storage16, have.Int16, have.Float16, have.Int8
	f.Float64, f.Int64 = have.Float64, have.Int64
	f.SubgroupSizeControl = f.SubgroupSizeControl && have.SubgroupSizeControl
	f.FullSubgroups = have.FullSubgroups
	f.PipelineStatistics = have.Executables
	d.matrixFeature = have.CooperativeMatrix && have.MemoryModel
	f.BFloat16 = have.BFloat16Matrix
	f.MemoryBudget = d.has(vkx.ExtMemoryBudget)
	f.Portability = d.has(vkx.ExtPortabilitySubset)
}

func (l *Limits) fill(from *vk.PhysicalDeviceLimits) {
	l.Invocations = from.MaxComputeWorkGroupInvocations
	l.GroupSize, l.GroupCount = from.MaxComputeWorkGroupSize, from.MaxComputeWorkGroupCount
	l.Shared = from.MaxComputeSharedMemorySize
	l.Bindings = min(from.MaxPerStageDescriptorStorageBuffers, from.MaxDescriptorSetStorageBuffers, from.MaxPerStageResources)
	l.BindBytes = int64(from.MaxStorageBufferRange)
	l.PushBytes = from.MaxPushConstantsSize
	l.Align = int64(from.MinStorageBufferOffsetAlignment)
	l.AtomSize = int64(from.NonCoherentAtomSize)
	if p := from.TimestampPeriod; p > 0 && !math.IsInf(float64(p), 1) { // drivers divide by a frequency, which is 0 on RADV without hardware
		l.TimestampNanos = p
	}
}

func (d *physicalDevice) askMemory(instance *vkx.Instance) {
	types, heaps := instance.Memory(d.handle, d.Features.MemoryBudget)
	d.types = types
	d.Heaps = nil
	shared := true
	for _, h := range heaps {
		budget := min(h.Budget, h.Size) // a driver may report more budget than memory, or more usage than budget
		free := h.Size
		if budget > 0 {
			free = budget - min(h.Usage, budget)
		}
		d.Heaps = append(d.Heaps, Heap{Bytes: int64(h.Size), DeviceLocal: h.DeviceLocal, Budget: int64(budget), Free: int64(free)})
		shared = shared && h.DeviceLocal
	}
	const direct = deviceLocal | hostVisible | hostCoherent
	d.Unified = shared && slices.ContainsFunc(types, func(t vkx.MemoryType) bool { return t.Flags&direct == direct })
}

// findQueue takes a family that computes and does not draw where there is one: it runs beside the display.
func (d *physicalDevice) findQueue(families []vkx.QueueFamily) {
	const compute, graphics = vk.QueueFlags(vk.QueueComputeBit), vk.QueueFlags(vk.QueueGraphicsBit)
	found := -1
	for i, f := range families {
		if f.Flags&compute != 0 && f.Count > 0 && (found < 0 || f.Flags&graphics == 0 && families[found].Flags&graphics != 0) {
			found = i
		}
	}
	if found < 0 {
		d.Unusable = "it has no compute queue"
		return
	}
	d.queueFamily = uint32(found)
	if families[found].TimestampBits == 0 {
		d.Limits.TimestampNanos = 0
	}
}

func kindOf(t vk.PhysicalDeviceType) backend.Kind {
	switch t {
	case vk.PhysicalDeviceTypeDiscreteGpu:
		return backend.Discrete
	case vk.PhysicalDeviceTypeIntegratedGpu:
		return backend.Integrated
	case vk.PhysicalDeviceTypeCpu:
		return backend.Software
	default: // a virtual GPU, or a device that does not say what it is
		return backend.Virtual
	}
}

func vendorName(id uint32) string {
	names := map[uint32]string{
		0x1002: "AMD", 0x10DE: "NVIDIA", 0x8086: "Intel", 0x106B: "Apple", 0x13B5: "Arm", 0x5143: "Qualcomm",
		0x1010: "Imagination", 0x14E4: "Broadcom", 0x1AE0: "Google", 0x10005: "Mesa", 0x144D: "Samsung", 0x1ED5: "Moore Threads",
	}
	if name, ok := names[id]; ok {
		return name
	}
	return fmt.Sprintf("0x%04X", id)
}

func uuid(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
