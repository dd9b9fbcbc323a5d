//go:build cgo

package vulkan

import (
	"errors"
	"fmt"
	"image"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// ScreenOptions says what a Screen is of.
type ScreenOptions struct {
	// Extensions of the instance are what the window system needs, VK_KHR_surface among them.
	Extensions []string
	// Surface makes the VkSurfaceKHR of a window for a VkInstance, and gives the address where its handle is, as GLFW's Go binding does. Nothing is
	// collected as garbage until it was read.
	Surface func(instance any) (handle uintptr, err error)
	// UUID names the device to take where it can show images on the surface, as in DeviceInfo. Empty, or one that can't: the best that can.
	UUID string
	// Validate is as in Options, and VKTRAIN_VALIDATE does the same.
	Validate bool
}

// ErrNoScreen is in the chain of errors about a surface that no device can show images on.
var ErrNoScreen = errors.New("no Vulkan device can show images in the window")

// Screen shows images in a window: each is copied to an image of a swapchain as it is, at most one a frame of the display. It has a logical device and
// a queue of its own, so that what a Backend computes on the same device does not wait for it in a queue. It is used by one goroutine.
type Screen struct {
	b       *Backend // without kernels
	surface vk.Surface
	format  vkx.SurfaceFormat
	red     int // byte of a pixel that red is in: blue is in the other of 0 and 2

	commands *commandBuffers
	fence    vk.Fence
	staging  allocation
	chain    vk.Swapchain
	images   []vk.Image
	size     vkx.Extent
	stale    bool // the swapchain no longer fits its window
}

// OpenScreen opens a device that shows images on a surface, and makes the surface.
func OpenScreen(opts ScreenOptions) (*Screen, error) {
	asked, _, err := validationAsked()
	if err != nil {
		return nil, err
	}
	s := &Screen{b: &Backend{
		opts: Options{FloorOnly: true, extensions: []string{vkx.ExtSwapchain}}, open: map[*handle]func() error{},
	}}
	if opts.Validate || asked {
		s.b.log = &messageLog{}
	}
	if err := s.start(opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, s.b.said(nil)
}

func (s *Screen) start(opts ScreenOptions) error {
	var err error
	if s.b.instance, err = newInstance(s.b.log, false, opts.Extensions...); err != nil {
		return err
	}
	if s.surface, err = surfaceOf(s.b.instance, opts.Surface); err != nil {
		return err
	}
	if s.b.physical, err = s.choose(opts.UUID); err != nil {
		return err
	}
	if err := s.chooseFormat(); err != nil {
		return err
	}
	if err := s.b.newDevice(); err != nil {
		return err
	}
	s.b.await = s.b.waitForFences
	if s.b.memory, err = newMemoryPool(s.b.dev, s.b.instance, s.b.physical); err != nil {
		return err
	}
	if s.commands, err = s.b.newCommandBuffers(1); err != nil {
		return err
	}
	s.fence, err = s.b.newFence()
	return err
}

// choose gives the device with the UUID if it presents to the surface, else the first that does, of the order of Devices, with its queue family for that.
func (s *Screen) choose(uuid string) (*physicalDevice, error) {
	devices, err := physicalDevices(s.b.instance)
	if err != nil {
		return nil, err
	}
	var best *physicalDevice
	for _, d := range devices {
		presents, err := s.presents(d)
		if err != nil {
			return nil, err
		}
		if presents && (best == nil || d.UUID == uuid) {
			best = d
		}
	}
	if best == nil {
		return nil, fmt.Errorf("vulkan: %w", ErrNoScreen)
	}
	return best, nil
}

// presents finds a device's queue family for the surface: one that draws or computes, for others may not copy to a part of an image.
func (s *Screen) presents(d *physicalDevice) (bool, error) {
	if d.version < version11 || !d.has(vkx.ExtSwapchain) {
		return false, nil
	}
	for i, f := range s.b.instance.QueueFamilies(d.handle) {
		if f.Count == 0 || f.Flags&vk.QueueFlags(vk.QueueGraphicsBit|vk.QueueComputeBit) == 0 {
			continue
		}
		presents, err := s.b.instance.Presents(d.handle, uint32(i), s.surface)
		if err != nil {
			return false, fmt.Errorf("vulkan: %s: %w", d.Name, err)
		}
		if presents {
			d.queueFamily = uint32(i)
			return true, nil
		}
	}
	return false, nil
}

// redBytes are the formats that images are shown in, with the byte that red is in. The bytes of an image are copied as they are, and mean sRGB in all of them:
// the names of the formats differ in what shaders see.
var redBytes = map[vk.Format]int{
	vk.FormatB8g8r8a8Unorm: 2, vk.FormatB8g8r8a8Srgb: 2, vk.FormatR8g8b8a8Unorm: 0, vk.FormatR8g8b8a8Srgb: 0,
	vk.FormatA8b8g8r8UnormPack32: 0, vk.FormatA8b8g8r8SrgbPack32: 0, // little-endian: red first
}

func (s *Screen) chooseFormat() error {
	d := s.b.physical
	formats, err := s.b.instance.SurfaceFormats(d.handle, s.surface)
	if err != nil {
		return fmt.Errorf("vulkan: %s: %w", d.Name, err)
	}
	for _, f := range formats {
		if f.Format == vk.FormatUndefined { // any is well
			f = vkx.SurfaceFormat{Format: vk.FormatB8g8r8a8Unorm, ColorSpace: vk.ColorSpaceSrgbNonlinear}
		}
		if red, ok := redBytes[f.Format]; ok && f.ColorSpace == vk.ColorSpaceSrgbNonlinear {
			s.format, s.red = f, red
			return nil
		}
	}
	return fmt.Errorf("vulkan: %s: %w: it has no format of 8 bits a channel for it", d.Name, ErrNoScreen)
}

// Device describes the device that shows the images.
func (s *Screen) Device() DeviceInfo { return s.b.physical.DeviceInfo }

// Fit makes the screen ready for images of the window's present size, and gives it. It is 0 x 0 while the window shows nothing, as a minimised one does.
// width and height are the window's framebuffer, for systems where the images decide over its size.
func (s *Screen) Fit(width, height int) (image.Point, error) {
	size, err := s.fit(vkx.Extent{Width: uint32(max(width, 0)), Height: uint32(max(height, 0))})
	return image.Pt(int(size.Width), int(size.Height)), s.said(err)
}

// Show shows an image of the size that Fit gave. It is false where the window has changed since, or takes no image now: Fit, draw and show again then, after
// a while.
func (s *Screen) Show(img *image.RGBA) (shown bool, err error) {
	size := img.Bounds().Size()
	if s.chain == vk.NullSwapchain || s.stale || size != image.Pt(int(s.size.Width), int(s.size.Height)) {
		return false, nil
	}
	shown, err = s.show(img)
	return shown, s.said(err)
}

// said joins what the validation layer has said to an error, which then says whose it is.
func (s *Screen) said(err error) error {
	if err != nil {
		err = fmt.Errorf("vulkan: %s: the window: %w", s.b.physical.Name, err)
	}
	return s.b.said(err)
}

// Close frees the device and the surface. The window itself is its maker's, and still there.
func (s *Screen) Close() error {
	b := s.b
	if b.dev != nil && !b.closed {
		vk.DeviceWaitIdle(b.dev.Handle) // what is lost can be destroyed all the same
		s.destroyChain()
		s.commands.close()
		if s.fence != vk.NullFence {
			vk.DestroyFence(b.dev.Handle, s.fence, nil)
		}
		s.staging.free()
	}
	if s.surface != vk.NullSurface {
		b.instance.DestroySurface(s.surface)
		s.surface = vk.NullSurface
	}
	return b.Close()
}
