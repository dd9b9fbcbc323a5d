#include "vkx.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

typedef VkxVoidFn(VKX_CALL *GetInstanceProcAddr)(VkxDispatchable instance, const char *name);

static GetInstanceProcAddr get_instance_proc_addr;

int vkx_load(const char *path, char *err, size_t err_size) {
#if defined(_WIN32)
  HMODULE lib = LoadLibraryA(path);
  if (!lib) {
    snprintf(err, err_size, "error %lu", (unsigned long)GetLastError());
    return -1;
  }
  get_instance_proc_addr = (GetInstanceProcAddr)(void *)GetProcAddress(lib, "vkGetInstanceProcAddr");
#else
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *why = dlerror();
    snprintf(err, err_size, "%s", why ? why : "unknown");
    return -1;
  }
  void *sym = dlsym(lib, "vkGetInstanceProcAddr");
  memcpy(&get_instance_proc_addr, &sym, sizeof sym);
#endif
  if (!get_instance_proc_addr) {
    snprintf(err, err_size, "it has no vkGetInstanceProcAddr");
    return -1;
  }
  return 0;
}

void *vkx_get_instance_proc_addr(void) {
  void *p;
  memcpy(&p, &get_instance_proc_addr, sizeof p);
  return p;
}

uint32_t vkx_instance_version(void) {
  typedef VkxResult(VKX_CALL * Fn)(uint32_t *);
  Fn f = (Fn)get_instance_proc_addr(NULL, "vkEnumerateInstanceVersion");
  uint32_t v = 1u << 22; // a loader without the function is a 1.0 loader
  if (f && f(&v) != VKX_SUCCESS) v = 1u << 22;
  return v;
}

VkxResult vkx_instance_extensions(const char *layer, uint32_t *count, VkxExtensionProperties *out) {
  typedef VkxResult(VKX_CALL * Fn)(const char *, uint32_t *, VkxExtensionProperties *);
  Fn f = (Fn)get_instance_proc_addr(NULL, "vkEnumerateInstanceExtensionProperties");
  return f ? f(layer, count, out) : VKX_EXTENSION_NOT_PRESENT;
}

VkxResult vkx_instance_layers(uint32_t *count, VkxLayerProperties *out) {
  typedef VkxResult(VKX_CALL * Fn)(uint32_t *, VkxLayerProperties *);
  Fn f = (Fn)get_instance_proc_addr(NULL, "vkEnumerateInstanceLayerProperties");
  return f ? f(count, out) : VKX_EXTENSION_NOT_PRESENT;
}

extern void vkxGoMessage(uintptr_t handle, uint32_t severity, uint32_t types, char *id, char *text);

static VkxBool VKX_CALL on_message(uint32_t severity, uint32_t types, const VkxMessengerData *data, void *user) {
  vkxGoMessage((uintptr_t)user, severity, types, (char *)data->pMessageIdName, (char *)data->pMessage);
  return 0;
}

VkxResult vkx_create_instance(const vkx_instance_config *c, vkx_instance *out) {
  typedef VkxResult(VKX_CALL * Create)(const VkxInstanceCreateInfo *, const void *, VkxDispatchable *);
  typedef VkxResult(VKX_CALL * CreateMessenger)(VkxDispatchable, const VkxMessengerCreateInfo *, const void *, VkxHandle *);

  VkxApplicationInfo app = {VKX_ST_APPLICATION_INFO, NULL, c->app, 0, c->engine, 0, c->api_version};
  // Warnings and errors; general, validation and performance messages.
  VkxMessengerCreateInfo messenger = {VKX_ST_DEBUG_MESSENGER, NULL,       0, 0x1100, 0x7,
                                      on_message,             (void *)c->message_handle};
  // VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT and _GPU_ASSISTED_EXT
  uint32_t enabled[] = {4, 0};
  VkxValidationFeatures features = {VKX_ST_VALIDATION_FEATURES, NULL, c->gpu_assisted ? 2 : 1, enabled, 0, NULL};
  // Newer layers look at what kernels access only when told to.
  VkxBool on = 1;
  VkxLayerSetting list[] = {{c->sync_layer, "validate_sync", 0, 1, &on},
                            {c->sync_layer, "syncval_shader_accesses_heuristic", 0, 1, &on},
                            {c->sync_layer, "gpuav_enable", 0, 1, &on}};
  VkxLayerSettings settings = {VKX_ST_LAYER_SETTINGS, NULL, c->gpu_assisted ? 3 : 2, list};
  VkxInstanceCreateInfo info = {VKX_ST_INSTANCE_CREATE_INFO, NULL,      c->flags,           &app,
                                c->layer_count,              c->layers, c->extension_count, c->extensions};
  // The chained messenger is the one that speaks during creation and destruction.
  if (c->messages) info.pNext = &messenger;
  if (c->sync_layer && c->sync_by_settings) {
    settings.pNext = info.pNext;
    info.pNext = &settings;
  } else if (c->sync_layer) {
    features.pNext = info.pNext;
    info.pNext = &features;
  }
  memset(out, 0, sizeof *out);
  Create create = (Create)get_instance_proc_addr(NULL, "vkCreateInstance");
  if (!create) return VKX_EXTENSION_NOT_PRESENT;
  VkxResult r = create(&info, NULL, &out->handle);
  if (r != VKX_SUCCESS) return r;

#define LOAD(field, name) out->field = get_instance_proc_addr(out->handle, name)
  LOAD(destroy, "vkDestroyInstance");
  LOAD(destroy_messenger, "vkDestroyDebugUtilsMessengerEXT");
  LOAD(get_device_proc_addr, "vkGetDeviceProcAddr");
  LOAD(create_device, "vkCreateDevice");
  LOAD(device_extensions, "vkEnumerateDeviceExtensionProperties");
  LOAD(queue_families, "vkGetPhysicalDeviceQueueFamilyProperties");
  LOAD(properties2, "vkGetPhysicalDeviceProperties2");
  LOAD(features2, "vkGetPhysicalDeviceFeatures2");
  LOAD(memory_properties2, "vkGetPhysicalDeviceMemoryProperties2");
  LOAD(cooperative_matrices, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  LOAD(destroy_surface, "vkDestroySurfaceKHR");
  LOAD(surface_support, "vkGetPhysicalDeviceSurfaceSupportKHR");
  LOAD(surface_capabilities, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
  LOAD(surface_formats, "vkGetPhysicalDeviceSurfaceFormatsKHR");
  CreateMessenger create_messenger = NULL;
  if (c->messages) create_messenger = (CreateMessenger)get_instance_proc_addr(out->handle, "vkCreateDebugUtilsMessengerEXT");
#undef LOAD
  if (create_messenger) {
    r = create_messenger(out->handle, &messenger, NULL, &out->messenger);
    if (r != VKX_SUCCESS) vkx_destroy_instance(out);
  }
  return r;
}

void vkx_destroy_instance(vkx_instance *i) {
  typedef void(VKX_CALL * Destroy)(VkxDispatchable, const void *);
  typedef void(VKX_CALL * DestroyMessenger)(VkxDispatchable, VkxHandle, const void *);
  if (i->messenger && i->destroy_messenger) ((DestroyMessenger)i->destroy_messenger)(i->handle, i->messenger, NULL);
  if (i->handle) ((Destroy)i->destroy)(i->handle, NULL);
  memset(i, 0, sizeof *i);
}
