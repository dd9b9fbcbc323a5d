//go:build cgo

package vulkan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

var _ backend.Backend = (*Backend)(nil)

// Backend is a Vulkan device that is open.
type Backend struct {
	opts     Options
	physical *physicalDevice
	caps     *deviceCaps
	log      *messageLog // nil without validation

	instance  *vkx.Instance
	dev       *vkx.Device
	queue     vk.Queue
	memory    *memoryPool
	pipelines *pipelineSet
	cache     cacheFile
	transfer  *transfer
	tests     *selfTest
	dummy     allocation // what an absent operand is bound to

	lower  lowerFunc
	lookup func(string) (shader, bool)

	queueMu sync.Mutex                             // around the submissions of a run
	tuner   tuner                                  // where Options.Tuning
	pacer   pacer                                  // where Options.Nice
	submit  func(vk.CommandBuffer, vk.Fence) error // these two are fields so that tests can make them fail
	await   func([]vk.Fence) error

	mu     sync.Mutex
	broken map[string]bool          // kernels that failed their test, as deviceCaps has them; never changed, but replaced
	open   map[*handle]func() error // what is to be closed before the device, with how
	lost   error
	closed bool
	saved  time.Time // when the pipeline cache was last written
}

// handle stands for an open store or executable.
type handle struct{ order int }

// Open opens a device. The error is ErrNoDevice if there is none that the options ask for.
func Open(opts Options) (*Backend, error) {
	validate, access, err := validationAsked()
	if err != nil {
		return nil, err
	}
	opts.ValidateAccess = opts.ValidateAccess || access
	opts.Validate = opts.Validate || opts.ValidateAccess || validate
	if opts.Context == nil {
		opts.Context = context.Background()
	}
	b := &Backend{opts: opts, lower: lowerNode, lookup: lookupShader, open: map[*handle]func() error{}}
	if opts.Validate {
		b.log = &messageLog{}
	}
	if opts.breaks != nil {
		b.lookup = func(name string) (shader, bool) {
			s, ok := lookupShader(name)
			s.spirv = opts.breaks(name, s.spirv)
			return s, ok
		}
	}
	if err := b.start(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// validationAsked reads VKTRAIN_VALIDATE. A value that means nothing is an error: who sets it would take silence for a clean run.
func validationAsked() (validate, access bool, err error) {
	switch v := os.Getenv("VKTRAIN_VALIDATE"); v {
	case "", "0":
		return false, false, nil
	case "1":
		return true, false, nil
	case "access":
		return true, true, nil
	default:
		return false, false, fmt.Errorf("vulkan: VKTRAIN_VALIDATE: %q is unknown: use 1 or access, or 0 for no validation", v)
	}
}

func (b *Backend) start() error {
	var err error
	if b.instance, err = newInstance(b.log, b.opts.ValidateAccess); err != nil {
		return err
	}
	devices, err := physicalDevices(b.instance)
	if err != nil {
		return err
	}
	if err := narrow(devices, b.opts.Limits); err != nil {
		return err
	}
	if said := b.opts.lessened(); said != "" && b.opts.Warn != nil {
		b.opts.Warn(said)
	}
	chosen, err := Choose(infos(devices), b.opts)
	if err != nil {
		return err
	}
	b.physical = devices[chosen.Index]
	b.physical.findMatrices(b.opts)
	if b.opts.tweak != nil {
		b.opts.tweak(&b.physical.DeviceInfo)
	}
	b.caps = b.physical.caps(b.opts.FloorOnly)
	if err := b.newDevice(); err != nil {
		return err
	}
	b.pacer.b = b
	b.submit = func(cb vk.CommandBuffer, fence vk.Fence) error { return b.dev.Submit(b.queue, cb, fence) }
	b.await = b.waitForFences
	if b.memory, err = newMemoryPool(b.dev, b.instance, b.physical); err != nil {
		return err
	}
	b.cache = newCacheFile(b.opts, b.physical.DeviceInfo, b.physical.cacheUUID)
	if b.pipelines, err = newPipelineSet(b.opts.Context, b.dev, b.lookup, b.cache.read()); err != nil {
		return err
	}
	b.saved = time.Now()
	b.transfer = &transfer{b: b}
	if err := b.testDevice(); err != nil {
		return b.said(err)
	}
	if b.opts.Tuning != nil {
		b.tuner.start(b)
	}
	return b.said(nil)
}

// newDevice makes the logical device with the features that kernels may use.
func (b *Backend) newDevice() error {
	d, f := b.physical, &b.physical.Features
	config := vkx.DeviceConfig{QueueFamily: d.queueFamily, Extensions: slices.Clone(b.opts.extensions)}
	enable := func(extension string, since uint32) {
		if d.version < since && d.has(extension) {
			config.Extensions = append(config.Extensions, extension)
		}
	}
	const never = 1<<32 - 1 // not in any core version
	if f.Portability {
		enable(vkx.ExtPortabilitySubset, never) // the specification demands it
	}
	if f.MemoryBudget {
		enable(vkx.ExtMemoryBudget, never)
	}
	if b.opts.Statistics {
		if !f.PipelineStatistics {
			return fmt.Errorf("vulkan: %s: %w", d.Name, ErrNoStatistics)
		}
		enable(vkx.ExtExecutableProperties, never)
		config.Features.Executables = true
	}
	if !b.opts.FloorOnly {
		on := &config.Features
		on.Int16, on.Storage16, on.Float16, on.Int8 = f.Int16, f.Storage16, f.Float16, f.Int8
		on.SubgroupSizeControl, on.FullSubgroups = f.SubgroupSizeControl, f.FullSubgroups && f.SubgroupSizeControl
		if len(f.matrices) > 0 {
			on.CooperativeMatrix, on.MemoryModel, on.BFloat16Matrix = true, true, f.BFloat16
			enable(vkx.ExtCooperativeMatrix, never)
			enable(vkx.ExtMemoryModel, version12)
			if f.BFloat16 {
				enable(vkx.ExtBFloat16, never)
			}
		}
		if f.Float16 || f.Int8 {
			enable(vkx.ExtFloat16Int8, version12)
		}
		if f.SubgroupSizeControl {
			enable(vkx.ExtSubgroupSizeControl, version13)
		}
	}
	var err error
	if b.dev, err = b.instance.NewDevice(d.handle, config); err != nil {
		return fmt.Errorf("vulkan: %s: %w", d.Name, err)
	}
	var queue vk.Queue
	vk.GetDeviceQueue(b.dev.Handle, d.queueFamily, 0, &queue)
	b.queue = queue
	return nil
}

// Info describes the device. Memory is what was free, when the device was opened, on the heap that tensors go to.
func (b *Backend) Info() backend.Info {
	d := &b.physical.DeviceInfo
	return backend.Info{Backend: "vulkan", Name: d.Name, Vendor: d.Vendor, Driver: d.Driver, Kind: d.Kind, Memory: b.memory.atFirst()}
}

// Device describes the device in full.
func (b *Backend) Device() DeviceInfo {
	b.mu.Lock() // tests of kernels may fail now
	defer b.mu.Unlock()
	return b.physical.DeviceInfo
}

// usable gives the error of every call after Close, or after the device was lost.
func (b *Backend) usable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	return b.lost
}

func (b *Backend) isLost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost != nil
}

// said joins what the validation layer has said to an error.
func (b *Backend) said(err error) error {
	if b.log == nil {
		return err
	}
	if spoke := b.log.take(); spoke != nil {
		return errors.Join(err, spoke)
	}
	return err
}

// failed turns the error of a submission or a wait into what a caller gets, and notes a lost device.
func (b *Backend) failed(err error, work func() string) error {
	if vkx.Code(err) != vk.ErrorDeviceLost {
		return fmt.Errorf("vulkan: %s: %w", work(), err)
	}
	return b.lose(err, work())
}

// lose notes that the device is lost, which is the error of every later call.
func (b *Backend) lose(err error, work string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost == nil {
		b.lost = &DeviceLostError{Device: b.physical.Name, Work: work, Err: err}
	}
	return b.lost
}

// adopt notes something that must be closed before the device, in reverse order.
func (b *Backend) adopt(closeIt func() error) *handle {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &handle{order: len(b.open)}
	for other := range b.open {
		h.order = max(h.order, other.order+1)
	}
	b.open[h] = closeIt
	return h
}

func (b *Backend) disown(h *handle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, h)
}

// lastOpen is the newest thing still open.
func (b *Backend) lastOpen() func() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var last *handle
	for h := range b.open {
		if last == nil || h.order > last.order {
			last = h
		}
	}
	return b.open[last]
}

// Close closes what is still open on the device and then the device. With validation on, the error tells of leaks.
func (b *Backend) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	for closeIt := b.lastOpen(); closeIt != nil; closeIt = b.lastOpen() {
		errs = append(errs, closeIt())
	}
	if b.dev != nil {
		errs = append(errs, b.closeDevice())
	}
	if b.instance != nil {
		b.instance.Close()
	}
	return b.said(errors.Join(errs...))
}

func (b *Backend) closeDevice() error {
	var err error
	if b.transfer != nil {
		b.transfer.close()
	}
	if b.pipelines != nil {
		err = b.saveCache(true)
		b.pipelines.close()
	}
	if b.memory != nil {
		b.dummy.free()
		b.memory.close()
	}
	b.dev.Close()
	return err
}

// saveCache writes the pipeline cache if there is something new, at most every ten seconds unless it is the last time. A
// cache that cannot be written costs time in the next run, nothing else.
func (b *Backend) saveCache(last bool) error {
	b.pipelines.mu.Lock()
	defer b.pipelines.mu.Unlock()
	if b.pipelines.built == 0 || b.cache.path == "" || !last && time.Since(b.saved) < 10*time.Second {
		return nil
	}
	b.saved = time.Now()
	b.pipelines.built = 0
	data, err := b.pipelines.content()
	if err != nil {
		if vkx.Code(err) == vk.ErrorDeviceLost {
			return nil
		}
		return fmt.Errorf("vulkan: %w", err)
	}
	_ = b.cache.write(data)
	return nil
}

// newFence makes a fence that is not signalled.
func (b *Backend) newFence() (vk.Fence, error) {
	info := vk.FenceCreateInfo{SType: vk.StructureTypeFenceCreateInfo}
	defer info.Free()
	var fence vk.Fence
	b.dev.Made.Add(1)
	r := vk.CreateFence(b.dev.Handle, &info, nil, &fence)
	return fence, vkx.Check("vkCreateFence", r)
}

// wait returns when all fences are signalled, and makes them ready for another submission.
func (b *Backend) wait(fences []vk.Fence) error {
	if len(fences) == 0 {
		return nil
	}
	fences = slices.Clone(fences) // cgo looks at the whole object that an array is part of, so this one stands alone
	if err := b.await(fences); err != nil {
		return err
	}
	return vkx.Check("vkResetFences", vk.ResetFences(b.dev.Handle, uint32(len(fences)), fences))
}

func (b *Backend) waitForFences(fences []vk.Fence) error {
	const forever = 1<<64 - 1
	return vkx.Check("vkWaitForFences", vk.WaitForFences(b.dev.Handle, uint32(len(fences)), fences, vk.True, forever))
}

// An absent operand is bound to a part of the dummy buffer, and kernels neither read nor write it then. Which part, goes round: a kernel that
// could write it and one that could read it would look like a hazard to the validation layer if both had the same.
const (
	dummyBytes = 256
	dummyCount = 256
)

func (b *Backend) dummyBuffer() (allocation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dummy.block == nil {
		var err error
		if b.dummy, err = b.memory.allocate("the dummy buffer", onDevice, dummyCount*dummyBytes); err != nil {
			return allocation{}, err
		}
	}
	return b.dummy, nil
}

// commandBuffers is a command pool and what was made from it.
type commandBuffers struct {
	b    *Backend
	pool vk.CommandPool
	list []vk.CommandBuffer
}

// newCommandBuffers makes n command buffers, each of which may be recorded again.
func (b *Backend) newCommandBuffers(n int) (*commandBuffers, error) {
	info := vk.CommandPoolCreateInfo{
		SType: vk.StructureTypeCommandPoolCreateInfo, QueueFamilyIndex: b.physical.queueFamily,
		Flags: vk.CommandPoolCreateFlags(vk.CommandPoolCreateResetCommandBufferBit),
	}
	defer info.Free()
	var pool vk.CommandPool
	if r := vk.CreateCommandPool(b.dev.Handle, &info, nil, &pool); r != vk.Success {
		return nil, vkx.Check("vkCreateCommandPool", r)
	}
	b.dev.Made.Add(1 + int64(n))
	c := &commandBuffers{b: b, pool: pool, list: make([]vk.CommandBuffer, n)}
	allocate := vk.CommandBufferAllocateInfo{
		SType: vk.StructureTypeCommandBufferAllocateInfo, CommandPool: pool, Level: vk.CommandBufferLevelPrimary, CommandBufferCount: uint32(n),
	}
	defer allocate.Free()
	if r := vk.AllocateCommandBuffers(b.dev.Handle, &allocate, c.list); r != vk.Success {
		c.close()
		return nil, vkx.Check("vkAllocateCommandBuffers", r)
	}
	return c, nil
}

// record fills command buffer i.
func (c *commandBuffers) record(i int, commands []vkx.Command, push []byte) error {
	return c.b.dev.Record(c.list[i], commands, push)
}

func (c *commandBuffers) close() {
	if c != nil && c.pool != vk.NullCommandPool {
		vk.DestroyCommandPool(c.b.dev.Handle, c.pool, nil) // frees its buffers too
		c.pool = vk.NullCommandPool
	}
}
