#include "vkx.h"

#include <string.h>

VkxResult vkx_device_extensions(vkx_instance *i, VkxDispatchable pd, uint32_t *count, VkxExtensionProperties *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, const char *, uint32_t *, VkxExtensionProperties *);
  return ((Fn)i->device_extensions)(pd, NULL, count, out);
}

void vkx_queue_families(vkx_instance *i, VkxDispatchable pd, uint32_t *count, VkxQueueFamilyProperties *out) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, uint32_t *, VkxQueueFamilyProperties *);
  ((Fn)i->queue_families)(pd, count, out);
}

VkxResult vkx_cooperative_matrices(vkx_instance *i, VkxDispatchable pd, uint32_t *count,
                                   VkxCooperativeMatrixProperties *out) {
  typedef VkxResult(VKX_CALL * Fn)(VkxDispatchable, uint32_t *, VkxCooperativeMatrixProperties *);
  if (!i->cooperative_matrices) return VKX_EXTENSION_NOT_PRESENT;
  for (uint32_t k = 0; out && k < *count; k++) out[k] = (VkxCooperativeMatrixProperties){VKX_ST_COOPERATIVE_MATRIX_PROPERTIES};
  return ((Fn)i->cooperative_matrices)(pd, count, out);
}

// link puts a struct into a chain, right behind its head.
static void link_after(void *head, void *item) {
  ((VkxChain *)item)->pNext = ((VkxChain *)head)->pNext;
  ((VkxChain *)head)->pNext = item;
}

void vkx_get_properties(vkx_instance *i, VkxDispatchable pd, const vkx_known *known, vkx_properties *out) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, VkxProperties2 *);
  VkxProperties2 head = {VKX_ST_PROPERTIES_2};
  vkx_properties p; // not *out, which is Go's memory and must not come to hold pointers to itself
  memset(&p, 0, sizeof p);
  p.id.sType = VKX_ST_ID_PROPERTIES;
  p.driver.sType = VKX_ST_DRIVER_PROPERTIES;
  p.subgroup.sType = VKX_ST_SUBGROUP_PROPERTIES;
  p.subgroup_size.sType = VKX_ST_SUBGROUP_SIZE_PROPERTIES;
  p.maintenance3.sType = VKX_ST_MAINTENANCE3_PROPERTIES;
  link_after(&head, &p.id);
  link_after(&head, &p.subgroup);
  link_after(&head, &p.maintenance3);
  if (known->driver) link_after(&head, &p.driver);
  if (known->subgroup_size_control) link_after(&head, &p.subgroup_size);
  ((Fn)i->properties2)(pd, &head);
  p.id.pNext = p.driver.pNext = p.subgroup.pNext = p.subgroup_size.pNext = p.maintenance3.pNext = NULL;
  *out = p;
}

// chain_features links the feature structs that a device knows behind the core ones.
static void chain_features(const vkx_known *known, vkx_features *f) {
  f->core.sType = VKX_ST_FEATURES_2;
  f->storage16.sType = VKX_ST_16BIT_STORAGE_FEATURES;
  f->float16_int8.sType = VKX_ST_FLOAT16_INT8_FEATURES;
  f->subgroup_size.sType = VKX_ST_SUBGROUP_SIZE_FEATURES;
  f->executables.sType = VKX_ST_EXECUTABLE_FEATURES;
  f->cooperative_matrix.sType = VKX_ST_COOPERATIVE_MATRIX_FEATURES;
  f->bfloat16.sType = VKX_ST_BFLOAT16_FEATURES;
  f->memory_model.sType = VKX_ST_MEMORY_MODEL_FEATURES;
  if (known->storage16) link_after(&f->core, &f->storage16);
  if (known->float16_int8) link_after(&f->core, &f->float16_int8);
  if (known->subgroup_size_control) link_after(&f->core, &f->subgroup_size);
  if (known->executables) link_after(&f->core, &f->executables);
  if (known->cooperative_matrix) link_after(&f->core, &f->cooperative_matrix);
  if (known->bfloat16) link_after(&f->core, &f->bfloat16);
  if (known->memory_model) link_after(&f->core, &f->memory_model);
}

void vkx_get_features(vkx_instance *i, VkxDispatchable pd, const vkx_known *known, vkx_features *out) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, VkxFeatures2 *);
  vkx_features f; // not *out: see vkx_get_properties
  memset(&f, 0, sizeof f);
  chain_features(known, &f);
  ((Fn)i->features2)(pd, &f.core);
  f.core.pNext = f.storage16.pNext = f.float16_int8.pNext = f.subgroup_size.pNext = f.executables.pNext = NULL;
  f.cooperative_matrix.pNext = f.bfloat16.pNext = f.memory_model.pNext = NULL;
  *out = f;
}

void vkx_get_memory(vkx_instance *i, VkxDispatchable pd, int budget, VkxMemoryProperties2 *out, VkxMemoryBudget *b) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, VkxMemoryProperties2 *);
  VkxMemoryBudget budgets = {VKX_ST_MEMORY_BUDGET};
  VkxMemoryProperties2 memory = {VKX_ST_MEMORY_PROPERTIES_2, budget ? &budgets : NULL};
  ((Fn)i->memory_properties2)(pd, &memory);
  memory.pNext = budgets.pNext = NULL;
  *out = memory;
  *b = budgets;
}

VkxResult vkx_create_device(vkx_instance *i, VkxDispatchable pd, const vkx_device_config *c, vkx_device *out) {
  typedef VkxResult(VKX_CALL * Create)(VkxDispatchable, const VkxDeviceCreateInfo *, const void *, VkxDispatchable *);
  typedef VkxVoidFn(VKX_CALL * GetProc)(VkxDispatchable, const char *);

  vkx_features f;
  memset(&f, 0, sizeof f);
  vkx_known known = {
      .storage16 = c->storage16,
      .float16_int8 = c->float16 || c->int8,
      .subgroup_size_control = c->subgroup_size_control,
      .executables = c->executables,
      .cooperative_matrix = c->cooperative_matrix,
      .bfloat16 = c->bfloat16_matrix,
      .memory_model = c->memory_model,
  };
  chain_features(&known, &f);
  f.core.core[VKX_FEATURE_INT16] = c->int16;
  f.storage16.storageBuffer = c->storage16;
  f.float16_int8.shaderFloat16 = c->float16;
  f.float16_int8.shaderInt8 = c->int8;
  f.subgroup_size.subgroupSizeControl = c->subgroup_size_control;
  f.subgroup_size.computeFullSubgroups = c->full_subgroups;
  f.executables.pipelineExecutableInfo = c->executables;
  f.cooperative_matrix.cooperativeMatrix = c->cooperative_matrix;
  f.bfloat16.type = f.bfloat16.cooperativeMatrix = c->bfloat16_matrix;
  f.memory_model.vulkanMemoryModel = c->memory_model;

  float priority = 1;
  VkxDeviceQueueCreateInfo queue = {VKX_ST_DEVICE_QUEUE_CREATE_INFO, NULL, 0, c->queue_family, 1, &priority};
  VkxDeviceCreateInfo info = {
      .sType = VKX_ST_DEVICE_CREATE_INFO,
      .pNext = &f.core,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = c->extension_count,
      .ppEnabledExtensionNames = c->extensions,
  };
  memset(out, 0, sizeof *out);
  VkxResult r = ((Create)i->create_device)(pd, &info, NULL, &out->handle);
  if (r != VKX_SUCCESS) return r;

  GetProc get = (GetProc)i->get_device_proc_addr;
#define LOAD(field, name) out->field = get(out->handle, name)
  LOAD(destroy, "vkDestroyDevice");
  LOAD(create_set_layout, "vkCreateDescriptorSetLayout");
  LOAD(create_pipeline_layout, "vkCreatePipelineLayout");
  LOAD(create_descriptor_pool, "vkCreateDescriptorPool");
  LOAD(create_compute_pipelines, "vkCreateComputePipelines");
  LOAD(allocate_sets, "vkAllocateDescriptorSets");
  LOAD(update_sets, "vkUpdateDescriptorSets");
  LOAD(queue_submit, "vkQueueSubmit");
  LOAD(flush, "vkFlushMappedMemoryRanges");
  LOAD(invalidate, "vkInvalidateMappedMemoryRanges");
  LOAD(begin, "vkBeginCommandBuffer");
  LOAD(end, "vkEndCommandBuffer");
  LOAD(cmd_bind_pipeline, "vkCmdBindPipeline");
  LOAD(cmd_bind_sets, "vkCmdBindDescriptorSets");
  LOAD(cmd_push, "vkCmdPushConstants");
  LOAD(cmd_dispatch, "vkCmdDispatch");
  LOAD(cmd_barrier, "vkCmdPipelineBarrier");
  LOAD(cmd_copy, "vkCmdCopyBuffer");
  LOAD(cmd_fill, "vkCmdFillBuffer");
  LOAD(cmd_reset_queries, "vkCmdResetQueryPool");
  LOAD(cmd_timestamp, "vkCmdWriteTimestamp");
  if (c->executables) {
    LOAD(executable_properties, "vkGetPipelineExecutablePropertiesKHR");
    LOAD(executable_statistics, "vkGetPipelineExecutableStatisticsKHR");
    LOAD(executable_representations, "vkGetPipelineExecutableInternalRepresentationsKHR");
  }
  if (c->swapchain) {
    LOAD(create_swapchain, "vkCreateSwapchainKHR");
    LOAD(destroy_swapchain, "vkDestroySwapchainKHR");
    LOAD(swapchain_images, "vkGetSwapchainImagesKHR");
    LOAD(acquire, "vkAcquireNextImageKHR");
    LOAD(present, "vkQueuePresentKHR");
    LOAD(cmd_copy_to_image, "vkCmdCopyBufferToImage");
  }
#undef LOAD
  return VKX_SUCCESS;
}

void vkx_destroy_device(vkx_device *d) {
  typedef void(VKX_CALL * Fn)(VkxDispatchable, const void *);
  if (d->handle) ((Fn)d->destroy)(d->handle, NULL);
  memset(d, 0, sizeof *d);
}
