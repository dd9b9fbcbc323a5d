// The C half of vkx: the loader, one function table an instance and one a device, and the calls that would be
// unsafe or impossible through the 1.0 binding. Everything a call points to is plain C memory or a Go slice
// without pointers that the caller keeps alive over the call.
#ifndef VKX_VKX_H
#define VKX_VKX_H

#include "vkapi.h"

// Loader. vkx_load opens one library and keeps it; it gives 0 or -1, and then the reason is in err.
int vkx_load(const char *path, char *err, size_t err_size);
void *vkx_get_instance_proc_addr(void);

uint32_t vkx_instance_version(void);
VkxResult vkx_instance_extensions(const char *layer, uint32_t *count, VkxExtensionProperties *out);
VkxResult vkx_instance_layers(uint32_t *count, VkxLayerProperties *out);

typedef struct {
  VkxDispatchable handle;
  VkxHandle messenger;
  VkxVoidFn destroy, destroy_messenger, get_device_proc_addr, create_device;
  VkxVoidFn device_extensions, queue_families, properties2, features2, memory_properties2, cooperative_matrices;
  VkxVoidFn destroy_surface, surface_support, surface_capabilities, surface_formats; // NULL without VK_KHR_surface
} vkx_instance;

typedef struct {
  const char *app, *engine;
  uint32_t api_version, flags;
  uint32_t layer_count, extension_count;
  const char **layers, **extensions;
  int messages;             // make a messenger that calls vkxGoMessage
  const char *sync_layer;   // turn this layer's synchronization validation on
  int sync_by_settings;     // ... with VK_EXT_layer_settings, else with VK_EXT_validation_features
  int gpu_assisted;         // and let it look at what shaders access
  uintptr_t message_handle; // given back to vkxGoMessage
} vkx_instance_config;

VkxResult vkx_create_instance(const vkx_instance_config *config, vkx_instance *out);
void vkx_destroy_instance(vkx_instance *instance);

VkxResult vkx_device_extensions(vkx_instance *i, VkxDispatchable pd, uint32_t *count, VkxExtensionProperties *out);
void vkx_queue_families(vkx_instance *i, VkxDispatchable pd, uint32_t *count, VkxQueueFamilyProperties *out);
VkxResult vkx_cooperative_matrices(vkx_instance *i, VkxDispatchable pd, uint32_t *count, VkxCooperativeMatrixProperties *out);

typedef struct { // which of the optional structs a device knows
  int driver, subgroup_size_control, float16_int8, storage16, executables, budget, cooperative_matrix, bfloat16, memory_model;
} vkx_known;

typedef struct {
  VkxIDProperties id;
  VkxDriverProperties driver;
  VkxSubgroupProperties subgroup;
  VkxSubgroupSizeProperties subgroup_size;
  VkxMaintenance3Properties maintenance3;
} vkx_properties;

typedef struct {
  VkxFeatures2 core;
  Vkx16BitStorageFeatures storage16;
  VkxFloat16Int8Features float16_int8;
  VkxSubgroupSizeFeatures subgroup_size;
  VkxExecutableFeatures executables;
  VkxCooperativeMatrixFeatures cooperative_matrix;
  VkxBFloat16Features bfloat16;
  VkxMemoryModelFeatures memory_model;
} vkx_features;

void vkx_get_properties(vkx_instance *i, VkxDispatchable pd, const vkx_known *known, vkx_properties *out);
void vkx_get_features(vkx_instance *i, VkxDispatchable pd, const vkx_known *known, vkx_features *out);
void vkx_get_memory(vkx_instance *i, VkxDispatchable pd, int budget, VkxMemoryProperties2 *out, VkxMemoryBudget *b);

typedef struct {
  VkxDispatchable handle;
  VkxVoidFn destroy, create_set_layout, create_pipeline_layout, create_descriptor_pool, create_compute_pipelines;
  VkxVoidFn allocate_sets, update_sets, queue_submit, flush, invalidate;
  VkxVoidFn begin, end, cmd_bind_pipeline, cmd_bind_sets, cmd_push, cmd_dispatch, cmd_barrier, cmd_copy, cmd_fill;
  VkxVoidFn cmd_reset_queries, cmd_timestamp;
  VkxVoidFn executable_properties, executable_statistics, executable_representations;
  VkxVoidFn create_swapchain, destroy_swapchain, swapchain_images, acquire, present, cmd_copy_to_image; // NULL without VK_KHR_swapchain
} vkx_device;

typedef struct {
  uint32_t queue_family;
  uint32_t extension_count;
  const char **extensions;
  int int16, storage16, float16, int8, subgroup_size_control, full_subgroups, executables; // features to turn on
  int cooperative_matrix, bfloat16_matrix, memory_model;
  int swapchain; // VK_KHR_swapchain is among the extensions
} vkx_device_config;

VkxResult vkx_create_device(vkx_instance *i, VkxDispatchable pd, const vkx_device_config *config, vkx_device *out);
void vkx_destroy_device(vkx_device *d);

// All bindings are storage buffers of the compute stage.
VkxResult vkx_create_set_layout(vkx_device *d, uint32_t bindings, VkxHandle *out);
VkxResult vkx_create_pipeline_layout(vkx_device *d, VkxHandle set_layout, uint32_t push_bytes, VkxHandle *out);
VkxResult vkx_create_descriptor_pool(vkx_device *d, uint32_t sets, uint32_t buffers, VkxHandle *out);
VkxResult vkx_allocate_sets(vkx_device *d, VkxHandle pool, uint32_t n, const VkxHandle *layouts, VkxHandle *out);

typedef struct { // one descriptor set: its buffers are infos[first .. first+count-1], bindings 0 .. count-1
  VkxHandle set;
  uint32_t first, count;
} vkx_set_write;

VkxResult vkx_update_sets(vkx_device *d, uint32_t n, const vkx_set_write *writes, const VkxBufferInfo *infos);

enum { VKX_PIPELINE_STATISTICS = 1, VKX_PIPELINE_FULL_SUBGROUPS = 2, VKX_PIPELINE_REPRESENTATIONS = 4 };

VkxResult vkx_create_pipeline(vkx_device *d, VkxHandle cache, VkxHandle module, VkxHandle layout, uint32_t spec_count,
                              const uint32_t *spec, uint32_t subgroup_size, uint32_t flags, VkxHandle *out);
VkxResult vkx_executables(vkx_device *d, VkxHandle pipeline, uint32_t *count, VkxExecutableProperties *out);
VkxResult vkx_statistics(vkx_device *d, VkxHandle pipeline, uint32_t executable, uint32_t *count, VkxExecutableStatistic *out);
// The driver's last text of a pipeline's first executable, which is the one nearest to the machine; to be freed.
VkxResult vkx_disassembly(vkx_device *d, VkxHandle pipeline, char **text);

enum { VKX_BIND_PIPELINE, VKX_BIND_SET, VKX_PUSH, VKX_DISPATCH, VKX_BARRIER, VKX_COPY, VKX_FILL, VKX_RESET_QUERIES, VKX_TIMESTAMP,
       VKX_IMAGE_BARRIER, VKX_COPY_TO_IMAGE };

typedef struct { // one command; what the fields mean is said beside the constructors in record.go
  uint32_t kind, x, y, z;
  uint64_t a, b, c, d, e;
} vkx_command;

VkxResult vkx_record(vkx_device *d, VkxDispatchable cb, size_t n, const vkx_command *commands, const uint8_t *push);

VkxResult vkx_surface_support(vkx_instance *i, VkxDispatchable pd, uint32_t family, VkxHandle surface, VkxBool *supported);
VkxResult vkx_surface_capabilities(vkx_instance *i, VkxDispatchable pd, VkxHandle surface, VkxSurfaceCapabilities *out);
VkxResult vkx_surface_formats(vkx_instance *i, VkxDispatchable pd, VkxHandle surface, uint32_t *count, VkxSurfaceFormat *out);
void vkx_destroy_surface(vkx_instance *i, VkxHandle surface);
VkxHandle vkx_handle_at(uintptr_t address);

typedef struct {
  VkxHandle surface, old; // old may be 0
  uint32_t images, format, color_space, width, height, usage, transform, alpha, mode;
} vkx_swapchain_config;

VkxResult vkx_create_swapchain(vkx_device *d, const vkx_swapchain_config *config, VkxHandle *out);
void vkx_destroy_swapchain(vkx_device *d, VkxHandle swapchain);
VkxResult vkx_swapchain_images(vkx_device *d, VkxHandle swapchain, uint32_t *count, VkxHandle *out);
VkxResult vkx_acquire(vkx_device *d, VkxHandle swapchain, uint64_t timeout_ns, VkxHandle fence, uint32_t *index);
VkxResult vkx_present(vkx_device *d, VkxDispatchable queue, VkxHandle swapchain, uint32_t index);

VkxResult vkx_submit(vkx_device *d, VkxDispatchable queue, VkxDispatchable cb, VkxHandle fence);
VkxResult vkx_flush(vkx_device *d, VkxHandle memory, VkxSize offset, VkxSize size);
VkxResult vkx_invalidate(vkx_device *d, VkxHandle memory, VkxSize offset, VkxSize size);

#endif
