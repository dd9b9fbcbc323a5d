#include "vkx.h"

enum { COMPUTE_STAGE = 0x20, COMPUTE_BIND_POINT = 1, BOTTOM_OF_PIPE = 0x2000 };

enum { COLOR_ASPECT = 1, LAYOUT_TRANSFER_DST = 7, SAME_FAMILY = -1 };

VkxResult vkx_record(vkx_device *d, VkxDispatchable cb, size_t n, const vkx_command *commands, const uint8_t *push) {
  typedef void(VKX_CALL * Bind)(VkxDispatchable, uint32_t, VkxHandle);
  typedef void(VKX_CALL * BindSets)(VkxDispatchable, uint32_t, VkxHandle, uint32_t, uint32_t, const VkxHandle *, uint32_t,
                                    const uint32_t *);
  typedef void(VKX_CALL * Push)(VkxDispatchable, VkxHandle, uint32_t, uint32_t, uint32_t, const void *);
  typedef void(VKX_CALL * Dispatch)(VkxDispatchable, uint32_t, uint32_t, uint32_t);
  typedef void(VKX_CALL * Barrier)(VkxDispatchable, uint32_t, uint32_t, uint32_t, uint32_t, const VkxMemoryBarrier *, uint32_t,
                                   const void *, uint32_t, const VkxImageBarrier *);
  typedef void(VKX_CALL * Copy)(VkxDispatchable, VkxHandle, VkxHandle, uint32_t, const VkxBufferCopy *);
  typedef void(VKX_CALL * CopyToImage)(VkxDispatchable, VkxHandle, VkxHandle, uint32_t, uint32_t, const VkxBufferImageCopy *);
  typedef void(VKX_CALL * Fill)(VkxDispatchable, VkxHandle, VkxSize, VkxSize, uint32_t);
  typedef void(VKX_CALL * ResetQueries)(VkxDispatchable, VkxHandle, uint32_t, uint32_t);
  typedef void(VKX_CALL * Timestamp)(VkxDispatchable, uint32_t, VkxHandle, uint32_t);

  typedef VkxResult(VKX_CALL * Begin)(VkxDispatchable, const VkxBeginInfo *);
  typedef VkxResult(VKX_CALL * End)(VkxDispatchable);

  VkxBeginInfo begin = {VKX_ST_COMMAND_BUFFER_BEGIN};
  VkxResult r = ((Begin)d->begin)(cb, &begin);
  if (r != VKX_SUCCESS) return r;
  for (size_t i = 0; i < n; i++) {
    const vkx_command *c = &commands[i];
    switch (c->kind) {
    case VKX_BIND_PIPELINE: ((Bind)d->cmd_bind_pipeline)(cb, COMPUTE_BIND_POINT, c->a); break;
    case VKX_BIND_SET: ((BindSets)d->cmd_bind_sets)(cb, COMPUTE_BIND_POINT, c->a, 0, 1, &c->b, 0, NULL); break;
    case VKX_PUSH: ((Push)d->cmd_push)(cb, c->a, COMPUTE_STAGE, 0, c->x, push + c->b); break;
    case VKX_DISPATCH: ((Dispatch)d->cmd_dispatch)(cb, c->x, c->y, c->z); break;
    case VKX_BARRIER: {
      VkxMemoryBarrier barrier = {VKX_ST_MEMORY_BARRIER, NULL, (uint32_t)c->a, (uint32_t)c->b};
      ((Barrier)d->cmd_barrier)(cb, c->x, c->y, 0, 1, &barrier, 0, NULL, 0, NULL);
      break;
    }
    case VKX_COPY: {
      VkxBufferCopy region = {c->c, c->d, c->e};
      ((Copy)d->cmd_copy)(cb, c->a, c->b, 1, &region);
      break;
    }
    case VKX_FILL: ((Fill)d->cmd_fill)(cb, c->a, c->b, c->c, c->x); break;
    case VKX_IMAGE_BARRIER: {
      VkxImageBarrier barrier = {VKX_ST_IMAGE_BARRIER, NULL, (uint32_t)c->b, (uint32_t)c->c, c->z, (uint32_t)c->d,
                                 (uint32_t)SAME_FAMILY, (uint32_t)SAME_FAMILY, c->a, {COLOR_ASPECT, 0, 1, 0, 1}};
      ((Barrier)d->cmd_barrier)(cb, c->x, c->y, 0, 0, NULL, 0, NULL, 1, &barrier);
      break;
    }
    case VKX_COPY_TO_IMAGE: {
      VkxBufferImageCopy region = {c->c, 0, 0, {COLOR_ASPECT, 0, 0, 1}, {0, 0, 0}, {c->x, c->y, 1}};
      ((CopyToImage)d->cmd_copy_to_image)(cb, c->a, c->b, LAYOUT_TRANSFER_DST, 1, &region);
      break;
    }
    case VKX_RESET_QUERIES: ((ResetQueries)d->cmd_reset_queries)(cb, c->a, c->x, c->y); break;
    case VKX_TIMESTAMP: ((Timestamp)d->cmd_timestamp)(cb, BOTTOM_OF_PIPE, c->a, c->x); break;
    }
  }
  return ((End)d->end)(cb);
}

VkxResult vkx_submit(vkx_device *d, VkxDispatchable queue, VkxDispatchable cb, VkxHandle fence) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, uint32_t, const VkxSubmitInfo *, VkxHandle);
  VkxSubmitInfo info = {.sType = VKX_ST_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cb};
  return ((Fn)d->queue_submit)(queue, 1, &info, fence);
}

VkxResult vkx_flush(vkx_device *d, VkxHandle memory, VkxSize offset, VkxSize size) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, uint32_t, const VkxMappedRange *);
  VkxMappedRange range = {VKX_ST_MAPPED_MEMORY_RANGE, NULL, memory, offset, size};
  return ((Fn)d->flush)(d->handle, 1, &range);
}

VkxResult vkx_invalidate(vkx_device *d, VkxHandle memory, VkxSize offset, VkxSize size) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, uint32_t, const VkxMappedRange *);
  VkxMappedRange range = {VKX_ST_MAPPED_MEMORY_RANGE, NULL, memory, offset, size};
  return ((Fn)d->invalidate)(d->handle, 1, &range);
}
