//go:build cgo

package vkx

// #include "vkx.h"
import "C"

import (
	"time"

	vk "github.com/vulkan-go/vulkan"
)

// Presents says whether a queue family can show images on a surface.
func (i *Instance) Presents(pd vk.PhysicalDevice, family uint32, surface vk.Surface) (bool, error) {
	var supported C.VkxBool
	r := C.vkx_surface_support(&i.c, dispatchable(pd), C.uint32_t(family), u64(surface), &supported)
	return supported != 0, Check("vkGetPhysicalDeviceSurfaceSupportKHR", vk.Result(r))
}

// Extent is a size in pixels.
type Extent struct{ Width, Height uint32 }

func extent(e C.VkxExtent2D) Extent { return Extent{uint32(e.width), uint32(e.height)} }

// SurfaceCapabilities are what a swapchain of a surface may be.
type SurfaceCapabilities struct {
	MinImages, MaxImages uint32 // MaxImages 0: no limit
	Current              Extent // the window's; both 0xFFFFFFFF where the swapchain decides
	Least, Most          Extent
	Transform            uint32 // VkSurfaceTransformFlagBitsKHR that the surface has
	Alphas               uint32 // VkCompositeAlphaFlagsKHR that it can have
	Usage                uint32 // VkImageUsageFlags of its images
}

// SurfaceCapabilities asks what a surface allows now.
func (i *Instance) SurfaceCapabilities(pd vk.PhysicalDevice, surface vk.Surface) (SurfaceCapabilities, error) {
	var c C.VkxSurfaceCapabilities
	r := C.vkx_surface_capabilities(&i.c, dispatchable(pd), u64(surface), &c)
	return SurfaceCapabilities{
		MinImages: uint32(c.minImageCount), MaxImages: uint32(c.maxImageCount),
		Current: extent(c.currentExtent), Least: extent(c.minImageExtent), Most: extent(c.maxImageExtent),
		Transform: uint32(c.currentTransform), Alphas: uint32(c.supportedCompositeAlpha), Usage: uint32(c.supportedUsageFlags),
	}, Check("vkGetPhysicalDeviceSurfaceCapabilitiesKHR", vk.Result(r))
}

// SurfaceFormat is a format of pixels and what its values mean.
type SurfaceFormat struct {
	Format     vk.Format
	ColorSpace vk.ColorSpace
}

// SurfaceFormats lists the formats that a device can show on a surface.
func (i *Instance) SurfaceFormats(pd vk.PhysicalDevice, surface vk.Surface) ([]SurfaceFormat, error) {
	list, err := enumerate("vkGetPhysicalDeviceSurfaceFormatsKHR", func(n *C.uint32_t, out *C.VkxSurfaceFormat) C.VkxResult {
		return C.vkx_surface_formats(&i.c, dispatchable(pd), u64(surface), n, out)
	})
	formats := make([]SurfaceFormat, len(list))
	for k, f := range list {
		formats[k] = SurfaceFormat{vk.Format(f.format), vk.ColorSpace(f.colorSpace)}
	}
	return formats, err
}

// SurfaceAt reads a surface's handle at an address that other bindings give as a number, which Go's checks of pointers would not let it read.
func SurfaceAt(address uintptr) vk.Surface {
	return handle[vk.Surface](C.vkx_handle_at(C.uintptr_t(address)))
}

// DestroySurface destroys a surface of the instance; its swapchains must be gone.
func (i *Instance) DestroySurface(surface vk.Surface) { C.vkx_destroy_surface(&i.c, u64(surface)) }

// SwapchainConfig says what swapchain to make.
type SwapchainConfig struct {
	Surface   vk.Surface
	Old       vk.Swapchain // which it replaces, if any
	Images    uint32       // at least
	Format    SurfaceFormat
	Size      Extent
	Usage     uint32 // VkImageUsageFlags
	Transform uint32
	Alpha     uint32
	Mode      vk.PresentMode
}

// NewSwapchain creates a swapchain. The device needs ExtSwapchain.
func (d *Device) NewSwapchain(config SwapchainConfig) (vk.Swapchain, error) {
	c := C.vkx_swapchain_config{
		surface: u64(config.Surface), old: u64(config.Old), images: C.uint32_t(config.Images),
		format: C.uint32_t(config.Format.Format), color_space: C.uint32_t(config.Format.ColorSpace),
		width: C.uint32_t(config.Size.Width), height: C.uint32_t(config.Size.Height), usage: C.uint32_t(config.Usage),
		transform: C.uint32_t(config.Transform), alpha: C.uint32_t(config.Alpha), mode: C.uint32_t(config.Mode),
	}
	var out C.VkxHandle
	r := C.vkx_create_swapchain(&d.c, &c, &out)
	return handle[vk.Swapchain](out), Check("vkCreateSwapchainKHR", vk.Result(r))
}

// DestroySwapchain destroys a swapchain, none of whose images is in use.
func (d *Device) DestroySwapchain(s vk.Swapchain) { C.vkx_destroy_swapchain(&d.c, u64(s)) }

// SwapchainImages lists a swapchain's images.
func (d *Device) SwapchainImages(s vk.Swapchain) ([]vk.Image, error) {
	list, err := enumerate("vkGetSwapchainImagesKHR", func(n *C.uint32_t, out *C.VkxHandle) C.VkxResult {
		return C.vkx_swapchain_images(&d.c, u64(s), n, out)
	})
	images := make([]vk.Image, len(list))
	for k, bits := range list {
		images[k] = handle[vk.Image](bits)
	}
	return images, err
}

// Acquire waits for an image of a swapchain; the fence is signalled when it may be written. The image is there if the error is nil or of code
// vk.Suboptimal.
func (d *Device) Acquire(s vk.Swapchain, timeout time.Duration, fence vk.Fence) (image uint32, err error) {
	var index C.uint32_t
	r := C.vkx_acquire(&d.c, u64(s), C.uint64_t(timeout.Nanoseconds()), u64(fence), &index)
	return uint32(index), Check("vkAcquireNextImageKHR", vk.Result(r))
}

// Present shows an acquired image, all work on which is known to be done.
func (d *Device) Present(queue vk.Queue, s vk.Swapchain, image uint32) error {
	return Check("vkQueuePresentKHR", vk.Result(C.vkx_present(&d.c, dispatchable(queue), u64(s), C.uint32_t(image))))
}
