#include "vkx.h"

VkxResult vkx_surface_support(vkx_instance *i, VkxDispatchable pd, uint32_t family, VkxHandle surface, VkxBool *supported) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, uint32_t, VkxHandle, VkxBool *);
  if (!i->surface_support) return VKX_EXTENSION_NOT_PRESENT;
  return ((Fn)i->surface_support)(pd, family, surface, supported);
}

VkxResult vkx_surface_capabilities(vkx_instance *i, VkxDispatchable pd, VkxHandle surface, VkxSurfaceCapabilities *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, VkxSurfaceCapabilities *);
  if (!i->surface_capabilities) return VKX_EXTENSION_NOT_PRESENT;
  return ((Fn)i->surface_capabilities)(pd, surface, out);
}

VkxResult vkx_surface_formats(vkx_instance *i, VkxDispatchable pd, VkxHandle surface, uint32_t *count, VkxSurfaceFormat *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, uint32_t *, VkxSurfaceFormat *);
  if (!i->surface_formats) return VKX_EXTENSION_NOT_PRESENT;
  return ((Fn)i->surface_formats)(pd, surface, count, out);
}

VkxHandle vkx_handle_at(uintptr_t address) { return *(const VkxHandle *)address; }

void vkx_destroy_surface(vkx_instance *i, VkxHandle surface) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, const void *);
  if (i->handle && i->destroy_surface) ((Fn)i->destroy_surface)(i->handle, surface, NULL);
}

VkxResult vkx_create_swapchain(vkx_device *d, const vkx_swapchain_config *c, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxSwapchainCreateInfo *, const void *, VkxHandle *);
  if (!d->create_swapchain) return VKX_EXTENSION_NOT_PRESENT;
  VkxSwapchainCreateInfo info = {
      .sType = VKX_ST_SWAPCHAIN,
      .surface = c->surface,
      .minImageCount = c->images,
      .imageFormat = c->format,
      .imageColorSpace = c->color_space,
      .imageExtent = {c->width, c->height},
      .imageArrayLayers = 1,
      .imageUsage = c->usage,
      .preTransform = c->transform,
      .compositeAlpha = c->alpha,
      .presentMode = c->mode,
      .clipped = 1,
      .oldSwapchain = c->old,
  };
  return ((Fn)d->create_swapchain)(d->handle, &info, NULL, out);
}

void vkx_destroy_swapchain(vkx_device *d, VkxHandle swapchain) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, const void *);
  if (d->handle && d->destroy_swapchain) ((Fn)d->destroy_swapchain)(d->handle, swapchain, NULL);
}

VkxResult vkx_swapchain_images(vkx_device *d, VkxHandle swapchain, uint32_t *count, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, uint32_t *, VkxHandle *);
  return ((Fn)d->swapchain_images)(d->handle, swapchain, count, out);
}

VkxResult vkx_acquire(vkx_device *d, VkxHandle swapchain, uint64_t timeout_ns, VkxHandle fence, uint32_t *index) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, uint64_t, VkxHandle, VkxHandle, uint32_t *);
  return ((Fn)d->acquire)(d->handle, swapchain, timeout_ns, 0, fence, index);
}

VkxResult vkx_present(vkx_device *d, VkxDispatchable queue, VkxHandle swapchain, uint32_t index) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxPresentInfo *);
  VkxPresentInfo info = {.sType = VKX_ST_PRESENT_INFO, .swapchainCount = 1, .pSwapchains = &swapchain, .pImageIndices = &index};
  return ((Fn)d->present)(queue, &info);
}
