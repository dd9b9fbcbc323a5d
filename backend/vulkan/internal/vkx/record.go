//go:build cgo

package vkx

// #include "vkx.h"
import "C"

import (
	"runtime"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"
)

// Command is one entry of a command buffer, in plain memory.
type Command C.vkx_command

// BindPipeline binds a compute pipeline.
func BindPipeline(p vk.Pipeline) Command {
	return Command{kind: C.VKX_BIND_PIPELINE, a: C.uint64_t(u64(p))}
}

// BindSet binds descriptor set 0.
func BindSet(layout vk.PipelineLayout, set vk.DescriptorSet) Command {
	return Command{kind: C.VKX_BIND_SET, a: C.uint64_t(u64(layout)), b: C.uint64_t(u64(set))}
}

// Push sets push constants 0 to size-1 from the bytes at offset of the array that Record is given.
func Push(layout vk.PipelineLayout, offset, size int) Command {
	return Command{kind: C.VKX_PUSH, a: C.uint64_t(u64(layout)), b: C.uint64_t(offset), x: C.uint32_t(size)}
}

// Dispatch runs workgroups.
func Dispatch(x, y, z uint32) Command {
	return Command{kind: C.VKX_DISPATCH, x: C.uint32_t(x), y: C.uint32_t(y), z: C.uint32_t(z)}
}

// Scope is a set of pipeline stages and of the accesses in them.
type Scope struct {
	Stages vk.PipelineStageFlagBits
	Access vk.AccessFlagBits
}

// Barrier makes everything in scope after wait for everything in scope before, and see what it wrote.
func Barrier(before, after Scope) Command {
	return Command{
		kind: C.VKX_BARRIER, x: C.uint32_t(before.Stages), y: C.uint32_t(after.Stages),
		a: C.uint64_t(before.Access), b: C.uint64_t(after.Access),
	}
}

// Copy copies size bytes between two buffers.
func Copy(src vk.Buffer, srcOffset uint64, dst vk.Buffer, dstOffset, size uint64) Command {
	return Command{
		kind: C.VKX_COPY, a: C.uint64_t(u64(src)), b: C.uint64_t(u64(dst)),
		c: C.uint64_t(srcOffset), d: C.uint64_t(dstOffset), e: C.uint64_t(size),
	}
}

// ImageBarrier is Barrier for a colour image, which goes from one layout to another.
func ImageBarrier(image vk.Image, before, after Scope, from, to vk.ImageLayout) Command {
	return Command{
		kind: C.VKX_IMAGE_BARRIER, x: C.uint32_t(before.Stages), y: C.uint32_t(after.Stages), z: C.uint32_t(from),
		a: C.uint64_t(u64(image)), b: C.uint64_t(before.Access), c: C.uint64_t(after.Access), d: C.uint64_t(to),
	}
}

// CopyToImage fills a colour image, which is in VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, from rows of pixels without padding.
func CopyToImage(src vk.Buffer, offset uint64, image vk.Image, width, height uint32) Command {
	return Command{
		kind: C.VKX_COPY_TO_IMAGE, x: C.uint32_t(width), y: C.uint32_t(height),
		a: C.uint64_t(u64(src)), b: C.uint64_t(u64(image)), c: C.uint64_t(offset),
	}
}

// Fill writes a 32-bit pattern to size bytes; offset and size are multiples of 4.
func Fill(dst vk.Buffer, offset, size uint64, pattern uint32) Command {
	return Command{kind: C.VKX_FILL, a: C.uint64_t(u64(dst)), b: C.uint64_t(offset), c: C.uint64_t(size), x: C.uint32_t(pattern)}
}

// ResetQueries makes queries first to first+n-1 of a pool ready to be written.
func ResetQueries(pool vk.QueryPool, first, n uint32) Command {
	return Command{kind: C.VKX_RESET_QUERIES, a: C.uint64_t(u64(pool)), x: C.uint32_t(first), y: C.uint32_t(n)}
}

// Timestamp writes the time at which all earlier commands are done to a query.
func Timestamp(pool vk.QueryPool, query uint32) Command {
	return Command{kind: C.VKX_TIMESTAMP, a: C.uint64_t(u64(pool)), x: C.uint32_t(query)}
}

// Record fills a command buffer from its beginning to its end, in one call. push holds the push constants' bytes.
func (d *Device) Record(cb vk.CommandBuffer, commands []Command, push []byte) error {
	r := C.vkx_record(&d.c, dispatchable(cb), C.size_t(len(commands)), (*C.vkx_command)(unsafe.Pointer(unsafe.SliceData(commands))),
		(*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(push))))
	runtime.KeepAlive(commands)
	runtime.KeepAlive(push)
	return Check("recording a command buffer", vk.Result(r))
}

// Submit hands a command buffer to a queue; the fence is signalled when it is done.
func (d *Device) Submit(queue vk.Queue, cb vk.CommandBuffer, fence vk.Fence) error {
	return Check("vkQueueSubmit", vk.Result(C.vkx_submit(&d.c, dispatchable(queue), dispatchable(cb), u64(fence))))
}

// Flush makes the host's writes to a mapped range visible to the device. Offset and size are multiples of
// nonCoherentAtomSize.
func (d *Device) Flush(memory vk.DeviceMemory, offset, size uint64) error {
	return Check("vkFlushMappedMemoryRanges", vk.Result(C.vkx_flush(&d.c, u64(memory), C.VkxSize(offset), C.VkxSize(size))))
}

// Invalidate makes the device's writes to a mapped range visible to the host.
func (d *Device) Invalidate(memory vk.DeviceMemory, offset, size uint64) error {
	return Check("vkInvalidateMappedMemoryRanges", vk.Result(C.vkx_invalidate(&d.c, u64(memory), C.VkxSize(offset), C.VkxSize(size))))
}
