#include "vkx.h"

#include <stdlib.h>
#include <string.h>

enum { STORAGE_BUFFER = 7, COMPUTE_STAGE = 0x20 };

VkxResult vkx_create_set_layout(vkx_device *d, uint32_t bindings, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxSetLayoutCreateInfo *, const void *, VkxHandle *);
  VkxLayoutBinding b[64];
  if (bindings > sizeof b / sizeof *b) return VKX_OUT_OF_HOST_MEMORY;
  for (uint32_t k = 0; k < bindings; k++) b[k] = (VkxLayoutBinding){k, STORAGE_BUFFER, 1, COMPUTE_STAGE, NULL};
  VkxSetLayoutCreateInfo info = {VKX_ST_DESCRIPTOR_SET_LAYOUT, NULL, 0, bindings, b};
  return ((Fn)d->create_set_layout)(d->handle, &info, NULL, out);
}

VkxResult vkx_create_pipeline_layout(vkx_device *d, VkxHandle set_layout, uint32_t push_bytes, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxPipelineLayoutCreateInfo *, const void *, VkxHandle *);
  VkxPushConstantRange push = {COMPUTE_STAGE, 0, push_bytes};
  VkxPipelineLayoutCreateInfo info = {VKX_ST_PIPELINE_LAYOUT, NULL, 0, 1, &set_layout, push_bytes ? 1 : 0, &push};
  return ((Fn)d->create_pipeline_layout)(d->handle, &info, NULL, out);
}

VkxResult vkx_create_descriptor_pool(vkx_device *d, uint32_t sets, uint32_t buffers, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxDescriptorPoolCreateInfo *, const void *, VkxHandle *);
  VkxPoolSize size = {STORAGE_BUFFER, buffers};
  VkxDescriptorPoolCreateInfo info = {VKX_ST_DESCRIPTOR_POOL, NULL, 0, sets, 1, &size};
  return ((Fn)d->create_descriptor_pool)(d->handle, &info, NULL, out);
}

VkxResult vkx_allocate_sets(vkx_device *d, VkxHandle pool, uint32_t n, const VkxHandle *layouts, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxSetAllocateInfo *, VkxHandle *);
  VkxSetAllocateInfo info = {VKX_ST_DESCRIPTOR_SET_ALLOCATE, NULL, pool, n, layouts};
  return ((Fn)d->allocate_sets)(d->handle, &info, out);
}

VkxResult vkx_update_sets(vkx_device *d, uint32_t n, const vkx_set_write *writes, const VkxBufferInfo *infos) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, uint32_t, const VkxWriteDescriptorSet *, uint32_t, const void *);
  uint32_t total = 0;
  for (uint32_t k = 0; k < n; k++) total += writes[k].count;
  if (total == 0) return VKX_SUCCESS;
  VkxWriteDescriptorSet *w = calloc(total, sizeof *w);
  if (!w) return VKX_OUT_OF_HOST_MEMORY;
  uint32_t at = 0;
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t binding = 0; binding < writes[k].count; binding++, at++) {
      w[at].sType = VKX_ST_WRITE_DESCRIPTOR_SET;
      w[at].dstSet = writes[k].set;
      w[at].dstBinding = binding;
      w[at].descriptorCount = 1;
      w[at].descriptorType = STORAGE_BUFFER;
      w[at].pBufferInfo = infos + writes[k].first + binding;
    }
  }
  ((Fn)d->update_sets)(d->handle, total, w, 0, NULL);
  free(w);
  return VKX_SUCCESS;
}

VkxResult vkx_create_pipeline(vkx_device *d, VkxHandle cache, VkxHandle module, VkxHandle layout, uint32_t spec_count,
                              const uint32_t *spec, uint32_t subgroup_size, uint32_t flags, VkxHandle *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, VkxHandle, uint32_t, const VkxComputePipelineCreateInfo *, const void *,
                                   VkxHandle *);
  VkxSpecializationEntry entries[64];
  if (spec_count > sizeof entries / sizeof *entries) return VKX_OUT_OF_HOST_MEMORY;
  for (uint32_t k = 0; k < spec_count; k++) entries[k] = (VkxSpecializationEntry){k, 4 * k, 4};
  VkxSpecializationInfo specialization = {spec_count, entries, 4 * (size_t)spec_count, spec};
  VkxRequiredSubgroupSize required = {VKX_ST_REQUIRED_SUBGROUP_SIZE, NULL, subgroup_size};
  VkxComputePipelineCreateInfo info = {
      .sType = VKX_ST_COMPUTE_PIPELINE,
      // VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR, VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR
      .flags = (flags & VKX_PIPELINE_STATISTICS ? 0x40 : 0) | (flags & VKX_PIPELINE_REPRESENTATIONS ? 0x80 : 0),
      .stage = {.sType = VKX_ST_PIPELINE_SHADER_STAGE,
                .pNext = subgroup_size ? &required : NULL,
                .flags = flags & VKX_PIPELINE_FULL_SUBGROUPS ? 0x2 : 0,
                .stage = COMPUTE_STAGE,
                .module = module,
                .pName = "main",
                .pSpecializationInfo = spec_count ? &specialization : NULL},
      .layout = layout,
      .basePipelineIndex = -1,
  };
  return ((Fn)d->create_compute_pipelines)(d->handle, cache, 1, &info, NULL, out);
}

VkxResult vkx_executables(vkx_device *d, VkxHandle pipeline, uint32_t *count, VkxExecutableProperties *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxPipelineInfo *, uint32_t *, VkxExecutableProperties *);
  if (!d->executable_properties) return VKX_EXTENSION_NOT_PRESENT;
  for (uint32_t k = 0; out && k < *count; k++) out[k] = (VkxExecutableProperties){VKX_ST_EXECUTABLE_PROPERTIES};
  VkxPipelineInfo info = {VKX_ST_PIPELINE_INFO, NULL, pipeline};
  return ((Fn)d->executable_properties)(d->handle, &info, count, out);
}

VkxResult vkx_statistics(vkx_device *d, VkxHandle pipeline, uint32_t executable, uint32_t *count,
                         VkxExecutableStatistic *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxExecutableInfo *, uint32_t *, VkxExecutableStatistic *);
  if (!d->executable_statistics) return VKX_EXTENSION_NOT_PRESENT;
  for (uint32_t k = 0; out && k < *count; k++) out[k] = (VkxExecutableStatistic){VKX_ST_EXECUTABLE_STATISTIC};
  VkxExecutableInfo info = {VKX_ST_EXECUTABLE_INFO, NULL, pipeline, executable};
  return ((Fn)d->executable_statistics)(d->handle, &info, count, out);
}

VkxResult vkx_disassembly(vkx_device *d, VkxHandle pipeline, char **text) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const VkxExecutableInfo *, uint32_t *, VkxExecutableRepresentation *);
  *text = NULL;
  if (!d->executable_representations) return VKX_EXTENSION_NOT_PRESENT;
  VkxExecutableInfo info = {VKX_ST_EXECUTABLE_INFO, NULL, pipeline, 0};
  VkxExecutableRepresentation list[16];
  memset(list, 0, sizeof list);
  uint32_t count = sizeof list / sizeof *list;
  for (uint32_t k = 0; k < count; k++) list[k].sType = VKX_ST_EXECUTABLE_REPRESENTATION;
  VkxResult r = ((Fn)d->executable_representations)(d->handle, &info, &count, list); // their sizes
  VkxExecutableRepresentation *last = NULL;
  for (uint32_t k = 0; r == VKX_SUCCESS && k < count; k++)
    if (list[k].isText && list[k].dataSize > 0) last = &list[k];
  if (!last) return r;
  if (!(last->pData = calloc(1, last->dataSize + 1))) return VKX_OUT_OF_HOST_MEMORY;
  r = ((Fn)d->executable_representations)(d->handle, &info, &count, list); // those without a place are only measured
  if (r == VKX_SUCCESS) *text = last->pData;
  else free(last->pData);
  return r;
}
