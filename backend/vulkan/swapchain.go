//go:build cgo

package vulkan

import (
	"errors"
	"fmt"
	"image"
	"math/bits"
	"runtime/debug"
	"time"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// surfaceOf makes a surface. GLFW's binding gives the address of a variable to which nothing points any more: no collection may begin until it was read.
func surfaceOf(instance *vkx.Instance, surface func(any) (uintptr, error)) (vk.Surface, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	at, err := surface(instance.Handle)
	if err != nil {
		return vk.NullSurface, fmt.Errorf("vulkan: %w: %w", ErrNoScreen, err)
	}
	return vkx.SurfaceAt(at), nil
}

const (
	transferTarget = uint32(vk.ImageUsageTransferDstBit)
	// anySize is the current extent of a surface that takes its size from the swapchain's.
	anySize = 1<<32 - 1
	// imageWait is how long to wait for an image that is free. A window that is hidden may give none.
	imageWait = 100 * time.Millisecond
)

// fit replaces a swapchain that does not fit the window any more.
func (s *Screen) fit(framebuffer vkx.Extent) (vkx.Extent, error) {
	able, err := s.b.instance.SurfaceCapabilities(s.b.physical.handle, s.surface)
	if err != nil {
		return vkx.Extent{}, err
	}
	size := able.Current
	if size.Width == anySize {
		size = clampExtent(framebuffer, able.Least, able.Most)
	}
	if size.Width == 0 || size.Height == 0 {
		return vkx.Extent{}, nil
	}
	if s.chain != vk.NullSwapchain && !s.stale && size == s.size {
		return size, nil
	}
	return size, s.newChain(size, able)
}

func clampExtent(e, least, most vkx.Extent) vkx.Extent {
	if e.Width == 0 || e.Height == 0 {
		return vkx.Extent{}
	}
	return vkx.Extent{Width: min(max(e.Width, least.Width), most.Width), Height: min(max(e.Height, least.Height), most.Height)}
}

func (s *Screen) newChain(size vkx.Extent, able vkx.SurfaceCapabilities) error {
	if able.Usage&transferTarget == 0 {
		return errors.New("its images can't be copied to")
	}
	images := able.MinImages + 1 // one to write while the others are shown
	if able.MaxImages > 0 {
		images = min(images, able.MaxImages)
	}
	if err := s.waitIdle(); err != nil {
		return err
	}
	old := s.chain
	chain, err := s.b.dev.NewSwapchain(vkx.SwapchainConfig{
		Surface: s.surface, Old: old, Images: images, Format: s.format, Size: size, Usage: transferTarget,
		Transform: able.Transform, Alpha: opaque(able.Alphas), Mode: vk.PresentModeFifo,
	})
	s.destroyChain() // retired, whether there is a new one or not
	if err != nil {
		return err
	}
	s.chain, s.size, s.stale = chain, size, false
	if s.images, err = s.b.dev.SwapchainImages(chain); err != nil {
		return err
	}
	return s.newStaging(int64(size.Width) * int64(size.Height) * 4)
}

func (s *Screen) newStaging(bytes int64) error {
	if s.staging.block != nil && s.staging.size >= uint64(bytes) {
		return nil
	}
	s.staging.free()
	var err error
	s.staging, err = s.b.memory.allocate("the window's image", upload, bytes)
	return err
}

// opaque chooses how a window's alpha counts: not at all, where that can be had.
func opaque(able uint32) uint32 {
	if able&uint32(vk.CompositeAlphaOpaqueBit) != 0 {
		return uint32(vk.CompositeAlphaOpaqueBit)
	}
	return 1 << bits.TrailingZeros32(able)
}

func (s *Screen) waitIdle() error {
	return vkx.Check("vkDeviceWaitIdle", vk.DeviceWaitIdle(s.b.dev.Handle))
}

func (s *Screen) destroyChain() {
	if s.chain != vk.NullSwapchain {
		s.b.dev.DestroySwapchain(s.chain)
	}
	s.chain, s.images = vk.NullSwapchain, nil
}

// show copies an image to the next of the swapchain. The host waits for each part: a few images a second need no overlap, and what is waited for
// needs no semaphores.
func (s *Screen) show(img *image.RGBA) (bool, error) {
	index, err := s.b.dev.Acquire(s.chain, imageWait, s.fence)
	switch vkx.Code(err) {
	case vk.Success, vk.Suboptimal:
		s.stale = err != nil
	case vk.ErrorOutOfDate:
		s.stale = true
		return false, nil
	case vk.NotReady, vk.Timeout:
		return false, nil
	default:
		return false, err
	}
	if err := s.b.wait([]vk.Fence{s.fence}); err != nil {
		return false, err
	}
	pixels := s.staging.bytes()
	packPixels(pixels, img, s.red)
	if err := s.staging.flush(); err != nil {
		return false, err
	}
	if err := s.commands.record(0, s.copyTo(s.images[index]), nil); err != nil {
		return false, err
	}
	if err := s.b.dev.Submit(s.b.queue, s.commands.list[0], s.fence); err != nil {
		return false, err
	}
	if err := s.b.wait([]vk.Fence{s.fence}); err != nil {
		return false, err
	}
	err = s.b.dev.Present(s.b.queue, s.chain, index)
	switch vkx.Code(err) {
	case vk.Success:
		return true, nil
	case vk.Suboptimal:
		s.stale = true
		return true, nil
	case vk.ErrorOutOfDate:
		s.stale = true
		return false, nil
	}
	return false, err
}

// copyTo are the commands that fill an image from the staging buffer. What was in the image is of no use.
func (s *Screen) copyTo(target vk.Image) []vkx.Command {
	before := vkx.Scope{Stages: vk.PipelineStageTopOfPipeBit}
	after := vkx.Scope{Stages: vk.PipelineStageBottomOfPipeBit}
	return []vkx.Command{
		vkx.ImageBarrier(target, before, copyWrites, vk.ImageLayoutUndefined, vk.ImageLayoutTransferDstOptimal),
		vkx.CopyToImage(s.staging.block.buffer, s.staging.offset, target, s.size.Width, s.size.Height),
		vkx.ImageBarrier(target, copyWrites, after, vk.ImageLayoutTransferDstOptimal, vk.ImageLayoutPresentSrc),
	}
}

// packPixels writes an image's rows one behind the other, with red in byte 0 or 2 of a pixel.
func packPixels(dst []byte, img *image.RGBA, red int) {
	size := img.Bounds().Size()
	for y := range size.Y {
		row := img.Pix[y*img.Stride:][:4*size.X]
		out := dst[4*size.X*y:][:4*size.X]
		copy(out, row)
		if red == 0 {
			continue
		}
		for i := 0; i < len(out); i += 4 {
			out[i], out[i+2] = out[i+2], out[i]
		}
	}
}
