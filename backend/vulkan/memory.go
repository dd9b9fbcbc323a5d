//go:build cgo

package vulkan

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

const (
	deviceLocal  = vk.MemoryPropertyFlags(vk.MemoryPropertyDeviceLocalBit)
	hostVisible  = vk.MemoryPropertyFlags(vk.MemoryPropertyHostVisibleBit)
	hostCoherent = vk.MemoryPropertyFlags(vk.MemoryPropertyHostCoherentBit)
	hostCached   = vk.MemoryPropertyFlags(vk.MemoryPropertyHostCachedBit)
	plainFlags   = deviceLocal | hostVisible | hostCoherent | hostCached

	deviceBlockBytes = 64 << 20
	hostBlockBytes   = 4 << 20
	bufferUsage      = vk.BufferUsageFlags(vk.BufferUsageStorageBufferBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit)
)

// memoryClass is what memory is for.
type memoryClass uint8

const (
	onDevice memoryClass = iota // kernels read and write it
	upload                      // the host writes it in order, the device reads it
	readback                    // the device writes it, the host reads it
	onHost                      // kernels read and write it, but it takes none of the device's own
	numClasses
)

func (c memoryClass) String() string {
	return [numClasses]string{"device memory", "upload memory", "readback memory", "host memory"}[c]
}

// memoryPool gives out parts of large blocks, each block being one allocation and one buffer over all of it.
type memoryPool struct {
	dev      *vkx.Device
	instance *vkx.Instance
	physical *physicalDevice
	align    uint64 // of every offset and size
	largest  uint64 // bytes of one allocation
	types    [numClasses][]int

	mu     sync.Mutex
	blocks [numClasses][]*block
	heaps  []uint64 // bytes allocated by heap
}

type block struct {
	memory   vk.DeviceMemory
	buffer   vk.Buffer
	class    memoryClass
	kind     int    // memory type
	bytes    uint64 // allocated
	mapped   []byte // nil if the host cannot see it
	coherent bool
	spans    spans
}

// allocation is a part of a block. The zero value is none.
type allocation struct {
	pool   *memoryPool
	block  *block
	offset uint64
	size   uint64
}

func newMemoryPool(dev *vkx.Device, instance *vkx.Instance, physical *physicalDevice) (*memoryPool, error) {
	p := &memoryPool{
		dev: dev, instance: instance, physical: physical, heaps: make([]uint64, len(physical.Heaps)),
		align:   uint64(max(256, physical.Limits.Align, physical.Limits.AtomSize)),
		largest: uint64(physical.Limits.AllocBytes),
	}
	p.largest -= p.largest % p.align
	// Which types fit a buffer depends on its usage alone.
	buffer, needs, err := p.newBuffer(p.align)
	if err != nil {
		return nil, err
	}
	vk.DestroyBuffer(dev.Handle, buffer, nil)
	for class := range numClasses {
		p.types[class] = orderTypes(physical.types, needs.MemoryTypeBits, class, physical.Unified)
	}
	return p, nil
}

// orderTypes lists the memory types that serve a class, best first. Device memory is never replaced by the host's: a driver that
// spills there makes a step many times slower, silently.
func orderTypes(types []vkx.MemoryType, allowed uint32, class memoryClass, unified bool) []int {
	score := func(f vk.MemoryPropertyFlags) int {
		bit := func(flag vk.MemoryPropertyFlags, weight int) int {
			if f&flag != 0 {
				return weight
			}
			return 0
		}
		switch {
		case class == onDevice && unified: // so that variables are read and written without staging
			return bit(hostVisible, 4) + bit(hostCached, 2) + bit(hostCoherent, 1)
		case class == onDevice: // host-visible device memory is scarce on some cards
			return bit(hostVisible, -4)
		case class == upload:
			return bit(hostCoherent, 4) + bit(hostCached, -1)
		default:
			return bit(hostCached, 4) + bit(hostCoherent, 2) + bit(deviceLocal, -1)
		}
	}
	var order []int
	for i, t := range types {
		need := hostVisible
		if class == onDevice || unified && class == upload {
			need = deviceLocal
		}
		if unified && class == upload {
			need |= hostVisible
		}
		own := class == onHost && t.Flags&deviceLocal != 0
		if allowed&(1<<i) != 0 && t.Flags&need == need && t.Flags&^plainFlags == 0 && !own {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return score(types[b].Flags) - score(types[a].Flags) })
	return order
}

// round gives a size in whole alignment units.
func (p *memoryPool) round(size uint64) uint64 { return (size + p.align - 1) / p.align * p.align }

// available is what can still be allocated for a class on its first memory type's heap, with the free parts of its blocks.
func (p *memoryPool) available(class memoryClass) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	heap := p.physical.types[p.types[class][0]].Heap
	h := p.physical.Heaps[heap]
	free := h.Bytes - int64(p.heaps[heap])
	if p.physical.Features.MemoryBudget {
		_, now := p.instance.Memory(p.physical.handle, true)
		budget := int64(min(now[heap].Budget, now[heap].Size))
		free = min(free, budget-int64(min(now[heap].Usage, uint64(budget))))
	}
	free = max(free, 0)
	for _, b := range p.blocks[class] {
		for _, f := range b.spans.free {
			free += int64(f.size)
		}
	}
	return free
}

// atFirst is what was free on the heap of tensors when the device was opened; 0 if it has no memory.
func (p *memoryPool) atFirst() int64 {
	if len(p.types[onDevice]) == 0 {
		return 0
	}
	return p.physical.Heaps[p.physical.types[p.types[onDevice][0]].Heap].Free
}

var _ backend.MemoryReporter = (*Backend)(nil)

// MemoryUse lists what is allocated, by purpose and memory type.
func (b *Backend) MemoryUse() []backend.MemoryUse {
	p := b.memory
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []backend.MemoryUse
	for class := range numClasses {
		for kind, t := range p.physical.types {
			use := backend.MemoryUse{Purpose: class.String(), Type: kind, Heap: t.Heap, Flags: flagNames(t.Flags)}
			for _, b := range p.blocks[class] {
				if b.kind == kind {
					use.Bytes += int64(b.bytes)
				}
			}
			if use.Bytes > 0 {
				list = append(list, use)
			}
		}
	}
	return list
}

func flagNames(flags vk.MemoryPropertyFlags) []string {
	names := []string{}
	for i, name := range []string{"device_local", "host_visible", "host_coherent", "host_cached"} {
		if flags&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// check says with an error that a device has no memory of a class at all, as drivers without hardware do.
func (p *memoryPool) check(class memoryClass) error {
	if len(p.types[class]) == 0 {
		return fmt.Errorf("vulkan: %s has no memory type for %s", p.physical.Name, class)
	}
	return nil
}

// trim gives back blocks that nothing is in, of every class: they may be on one heap.
func (p *memoryPool) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class, list := range p.blocks {
		p.blocks[class] = slices.DeleteFunc(list, func(b *block) bool {
			if !b.spans.empty() {
				return false
			}
			p.freeBlock(b)
			return true
		})
	}
}

// reserve says with an error that need bytes are not there, before any is allocated.
func (p *memoryPool) reserve(what string, class memoryClass, need int64) error {
	if err := p.check(class); err != nil {
		return err
	}
	if need > p.available(class) {
		p.trim()
	}
	if have := p.available(class); need > have {
		return &MemoryError{What: what, Need: need, Available: have, Device: p.physical.Name, Hint: "use a smaller model, batch or sequence"}
	}
	return nil
}

// allocate gives size bytes, their content undefined. what names them in an error.
func (p *memoryPool) allocate(what string, class memoryClass, size int64) (allocation, error) {
	if err := p.check(class); err != nil {
		return allocation{}, err
	}
	n := p.round(uint64(max(size, 1)))
	if n > p.largest {
		return allocation{}, &MemoryError{
			What: what, Need: size, Available: int64(p.largest), Device: p.physical.Name,
			Hint: "that is the device's largest single allocation: use a smaller batch or sequence",
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.blocks[class] {
		if offset, ok := b.spans.take(n); ok {
			return allocation{p, b, offset, n}, nil
		}
	}
	b, err := p.newBlock(what, class, n)
	if err != nil {
		return allocation{}, err
	}
	p.blocks[class] = append(p.blocks[class], b)
	offset, _ := b.spans.take(n)
	return allocation{p, b, offset, n}, nil
}

// newBlock makes a block of at least size bytes: a standard one, or where that is not to be had, one of just that size.
func (p *memoryPool) newBlock(what string, class memoryClass, size uint64) (*block, error) {
	standard := uint64(hostBlockBytes)
	if class == onDevice || class == onHost {
		standard = deviceBlockBytes
	}
	sizes := []uint64{size}
	if size < min(standard, p.largest) {
		sizes = []uint64{min(standard, p.largest), size}
	}
	var last error
	for _, kind := range p.types[class] {
		for _, n := range sizes {
			b, err := p.tryBlock(class, kind, n)
			if err == nil {
				return b, nil
			}
			if code := vkx.Code(err); code != vk.ErrorOutOfDeviceMemory && code != vk.ErrorOutOfHostMemory {
				return nil, fmt.Errorf("vulkan: %s: %w", what, err)
			}
			last = err
		}
	}
	heap := p.physical.types[p.types[class][0]].Heap
	have := max(p.physical.Heaps[heap].Bytes-int64(p.heaps[heap]), 0)
	return nil, &MemoryError{What: what, Need: int64(size), Available: have, Device: p.physical.Name, Hint: last.Error()}
}

func (p *memoryPool) tryBlock(class memoryClass, kind int, size uint64) (*block, error) {
	buffer, needs, err := p.newBuffer(size)
	if err != nil {
		return nil, err
	}
	b := &block{buffer: buffer, class: class, kind: kind, bytes: uint64(needs.Size), spans: newSpans(size)}
	flags := p.physical.types[kind].Flags
	b.coherent = flags&hostCoherent != 0
	info := vk.MemoryAllocateInfo{
		SType: vk.StructureTypeMemoryAllocateInfo, AllocationSize: needs.Size, MemoryTypeIndex: uint32(kind),
	}
	var memory vk.DeviceMemory
	p.dev.Made.Add(1)
	r := vk.AllocateMemory(p.dev.Handle, &info, nil, &memory)
	info.Free()
	if r != vk.Success {
		vk.DestroyBuffer(p.dev.Handle, buffer, nil)
		return nil, vkx.Check("vkAllocateMemory", r)
	}
	b.memory = memory
	p.heaps[p.physical.types[kind].Heap] += b.bytes
	if r := vk.BindBufferMemory(p.dev.Handle, buffer, memory, 0); r != vk.Success {
		p.freeBlock(b)
		return nil, vkx.Check("vkBindBufferMemory", r)
	}
	if flags&hostVisible != 0 && (class != onDevice || p.physical.Unified) {
		var at unsafe.Pointer
		if r := vk.MapMemory(p.dev.Handle, memory, 0, vk.DeviceSize(vk.WholeSize), 0, &at); r != vk.Success {
			p.freeBlock(b)
			return nil, vkx.Check("vkMapMemory", r)
		}
		b.mapped = unsafe.Slice((*byte)(at), size)
	}
	return b, nil
}

func (p *memoryPool) newBuffer(size uint64) (vk.Buffer, vk.MemoryRequirements, error) {
	info := vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo, Size: vk.DeviceSize(size), Usage: bufferUsage, SharingMode: vk.SharingModeExclusive,
	}
	defer info.Free()
	var buffer vk.Buffer
	var needs vk.MemoryRequirements
	p.dev.Made.Add(1)
	if r := vk.CreateBuffer(p.dev.Handle, &info, nil, &buffer); r != vk.Success {
		return buffer, needs, vkx.Check("vkCreateBuffer", r)
	}
	vk.GetBufferMemoryRequirements(p.dev.Handle, buffer, &needs)
	needs.Deref()
	needs.Free()
	return buffer, needs, nil
}

func (p *memoryPool) freeBlock(b *block) {
	vk.DestroyBuffer(p.dev.Handle, b.buffer, nil)
	vk.FreeMemory(p.dev.Handle, b.memory, nil) // unmaps it too
	p.heaps[p.physical.types[b.kind].Heap] -= b.bytes
	b.mapped = nil
}

// close frees every block; nothing of them may be in use.
func (p *memoryPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.blocks {
		for _, b := range p.blocks[class] {
			p.freeBlock(b)
		}
		p.blocks[class] = nil
	}
}

// free gives memory back. A block that becomes empty is kept if it is the only such and of standard size, else freed.
func (a *allocation) free() {
	if a.block == nil {
		return
	}
	p, b := a.pool, a.block
	p.mu.Lock()
	defer p.mu.Unlock()
	b.spans.give(a.offset, a.size)
	*a = allocation{}
	if !b.spans.empty() {
		return
	}
	keep := b.spans.size <= deviceBlockBytes
	for _, other := range p.blocks[b.class] {
		keep = keep && (other == b || !other.spans.empty())
	}
	if !keep {
		p.blocks[b.class] = slices.DeleteFunc(p.blocks[b.class], func(other *block) bool { return other == b })
		p.freeBlock(b)
	}
}

// part is n bytes of the allocation as a kernel or copy sees them.
func (a allocation) part(offset, n int) vkx.BufferRange {
	return vkx.BufferRange{Buffer: a.block.buffer, Offset: a.offset + uint64(offset), Size: uint64(n)}
}

// bytes is the memory as the host sees it, nil if it does not.
func (a allocation) bytes() []byte {
	if a.block == nil || a.block.mapped == nil {
		return nil
	}
	return a.block.mapped[a.offset : a.offset+a.size : a.offset+a.size]
}

// cached tells whether reading bytes is fast.
func (a allocation) cached() bool {
	return a.block != nil && a.pool.physical.types[a.block.kind].Flags&hostCached != 0
}

// flush makes what the host wrote visible to later submissions.
func (a allocation) flush() error {
	if a.block.coherent {
		return nil
	}
	return a.pool.dev.Flush(a.block.memory, a.offset, a.size)
}

// invalidate makes what the device wrote visible to the host.
func (a allocation) invalidate() error {
	if a.block.coherent {
		return nil
	}
	return a.pool.dev.Invalidate(a.block.memory, a.offset, a.size)
}
