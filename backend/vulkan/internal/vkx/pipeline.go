//go:build cgo

package vkx

// #include <stdlib.h>
// #include "vkx.h"
import "C"

import (
	"errors"
	"math"
	"runtime"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// MaxBindings and MaxSpec bound a kernel's bindings and specialization constants.
const (
	MaxBindings = 64
	MaxSpec     = 64
)

// NewSetLayout makes the layout of sets of n storage buffers, bindings 0 to n-1.
func (d *Device) NewSetLayout(n int) (vk.DescriptorSetLayout, error) {
	var out C.VkxHandle
	if n > MaxBindings {
		panic("vkx: too many bindings")
	}
	d.Made.Add(1)
	r := C.vkx_create_set_layout(&d.c, C.uint32_t(n), &out)
	return handle[vk.DescriptorSetLayout](out), Check("vkCreateDescriptorSetLayout", vk.Result(r))
}

// NewPipelineLayout makes the layout of pipelines with one set and pushBytes of push constants.
func (d *Device) NewPipelineLayout(set vk.DescriptorSetLayout, pushBytes int) (vk.PipelineLayout, error) {
	var out C.VkxHandle
	d.Made.Add(1)
	r := C.vkx_create_pipeline_layout(&d.c, u64(set), C.uint32_t(pushBytes), &out)
	return handle[vk.PipelineLayout](out), Check("vkCreatePipelineLayout", vk.Result(r))
}

// NewDescriptorPool makes a pool for sets with buffers storage buffers in all.
func (d *Device) NewDescriptorPool(sets, buffers int) (vk.DescriptorPool, error) {
	var out C.VkxHandle
	d.Made.Add(1)
	r := C.vkx_create_descriptor_pool(&d.c, C.uint32_t(sets), C.uint32_t(buffers), &out)
	return handle[vk.DescriptorPool](out), Check("vkCreateDescriptorPool", vk.Result(r))
}

// AllocateSets makes one descriptor set for each layout.
func (d *Device) AllocateSets(pool vk.DescriptorPool, layouts []vk.DescriptorSetLayout) ([]vk.DescriptorSet, error) {
	if len(layouts) == 0 {
		return nil, nil
	}
	in, out := make([]C.VkxHandle, len(layouts)), make([]C.VkxHandle, len(layouts))
	for i, l := range layouts {
		in[i] = u64(l)
	}
	d.Made.Add(int64(len(in)))
	r := C.vkx_allocate_sets(&d.c, u64(pool), C.uint32_t(len(in)), &in[0], &out[0])
	sets := make([]vk.DescriptorSet, len(out))
	for i := range out {
		sets[i] = handle[vk.DescriptorSet](out[i])
	}
	return sets, Check("vkAllocateDescriptorSets", vk.Result(r))
}

// BufferRange is a part of a buffer that a descriptor shows.
type BufferRange struct {
	Buffer       vk.Buffer
	Offset, Size uint64
}

// SetWrite fills a descriptor set: binding k gets Buffers[k].
type SetWrite struct {
	Set     vk.DescriptorSet
	Buffers []BufferRange
}

// UpdateSets fills descriptor sets.
func (d *Device) UpdateSets(writes []SetWrite) error {
	if len(writes) == 0 {
		return nil
	}
	sets := make([]C.vkx_set_write, len(writes))
	var infos []C.VkxBufferInfo
	for i, w := range writes {
		sets[i] = C.vkx_set_write{set: u64(w.Set), first: C.uint32_t(len(infos)), count: C.uint32_t(len(w.Buffers))}
		for _, b := range w.Buffers {
			infos = append(infos, C.VkxBufferInfo{u64(b.Buffer), C.VkxSize(b.Offset), C.VkxSize(b.Size)})
		}
	}
	if len(infos) == 0 {
		return nil
	}
	r := C.vkx_update_sets(&d.c, C.uint32_t(len(sets)), &sets[0], &infos[0])
	return Check("vkUpdateDescriptorSets", vk.Result(r))
}

// PipelineConfig says what compute pipeline to make.
type PipelineConfig struct {
	Module        vk.ShaderModule // entry point main
	Layout        vk.PipelineLayout
	Spec          []uint32 // specialization constants, ids 0 to len-1; floats and booleans as bits
	SubgroupSize  uint32   // required size, 0 for the driver's choice; needs SubgroupSizeControl
	FullSubgroups bool     // needs FullSubgroups
	Statistics    bool     // capture statistics; needs Executables
	Disassembly   bool     // capture what Device.Disassembly gives; needs Executables
}

// NewPipeline compiles a pipeline. It may be called from several goroutines with one cache.
func (d *Device) NewPipeline(cache vk.PipelineCache, config PipelineConfig) (vk.Pipeline, error) {
	if len(config.Spec) > MaxSpec {
		panic("vkx: too many specialization constants")
	}
	var flags C.uint32_t
	if config.Statistics {
		flags |= C.VKX_PIPELINE_STATISTICS
	}
	if config.Disassembly {
		flags |= C.VKX_PIPELINE_REPRESENTATIONS
	}
	if config.FullSubgroups {
		flags |= C.VKX_PIPELINE_FULL_SUBGROUPS
	}
	var out C.VkxHandle
	d.Made.Add(1)
	r := C.vkx_create_pipeline(&d.c, u64(cache), u64(config.Module), u64(config.Layout), C.uint32_t(len(config.Spec)),
		(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(config.Spec))), C.uint32_t(config.SubgroupSize), flags, &out)
	runtime.KeepAlive(config.Spec)
	return handle[vk.Pipeline](out), Check("vkCreateComputePipelines", vk.Result(r))
}

// Disassembly is the machine's code of a pipeline that was made with Disassembly, in the driver's words; "" where it gives none.
func (d *Device) Disassembly(p vk.Pipeline) (string, error) {
	var out *C.char
	if r := vk.Result(C.vkx_disassembly(&d.c, u64(p), &out)); r != vk.Success {
		return "", Check("vkGetPipelineExecutableInternalRepresentationsKHR", r)
	}
	defer C.free(unsafe.Pointer(out))
	return C.GoString(out), nil
}

// Statistic is one number that a driver tells of a compiled pipeline.
type Statistic struct {
	Name, Description string
	Value             float64
}

// PipelineExecutable is what a driver made of one shader.
type PipelineExecutable struct {
	Name         string
	SubgroupSize uint32
	Statistics   []Statistic
}

// Executables reads the statistics of a pipeline that was made with Statistics.
func (d *Device) Executables(p vk.Pipeline) ([]PipelineExecutable, error) {
	list, err := enumerate("vkGetPipelineExecutablePropertiesKHR", func(n *C.uint32_t, out *C.VkxExecutableProperties) C.VkxResult {
		return C.vkx_executables(&d.c, u64(p), n, out)
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("vkGetPipelineExecutablePropertiesKHR: the driver lists no executable")
	}
	executables := make([]PipelineExecutable, len(list))
	for k := range list {
		stats, err := enumerate("vkGetPipelineExecutableStatisticsKHR", func(n *C.uint32_t, out *C.VkxExecutableStatistic) C.VkxResult {
			return C.vkx_statistics(&d.c, u64(p), C.uint32_t(k), n, out)
		})
		if err != nil {
			return nil, err
		}
		e := PipelineExecutable{Name: text(list[k].name[:]), SubgroupSize: uint32(list[k].subgroupSize)}
		for j := range stats {
			s := &stats[j]
			e.Statistics = append(e.Statistics, Statistic{text(s.name[:]), text(s.description[:]), statisticValue(s)})
		}
		executables[k] = e
	}
	return executables, nil
}

func statisticValue(s *C.VkxExecutableStatistic) float64 {
	bits := *(*uint64)(unsafe.Pointer(&s.value))
	switch s.format {
	case 0: // VkBool32
		return float64(uint32(bits))
	case 1:
		return float64(int64(bits))
	case 2:
		return float64(bits)
	default:
		return math.Float64frombits(bits)
	}
}
