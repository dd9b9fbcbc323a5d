// The declarations of the Vulkan API that vkx calls by itself: everything that takes arrays of structs and
// everything newer than Vulkan 1.0. They are written out here so that neither a Vulkan SDK nor a -dev package
// is needed to build. Dispatchable handles are pointers, all others 64-bit integers, as on every 64-bit system.
#ifndef VKX_VKAPI_H
#define VKX_VKAPI_H

#include <stddef.h>
#include <stdint.h>

_Static_assert(sizeof(void *) == 8, "vkx needs a 64-bit system");

#if defined(_WIN32)
#define VKX_CALL __stdcall
#else
#define VKX_CALL
#endif

typedef void *VkxDispatchable; // VkInstance, VkPhysicalDevice, VkDevice, VkQueue, VkCommandBuffer
typedef uint64_t VkxHandle;    // every other handle
typedef int32_t VkxResult;
typedef uint32_t VkxBool;
typedef uint64_t VkxSize;
typedef void (*VkxVoidFn)(void);

enum {
  VKX_SUCCESS = 0,
  VKX_INCOMPLETE = 5,
  VKX_OUT_OF_HOST_MEMORY = -1,
  VKX_EXTENSION_NOT_PRESENT = -7,
};

enum { // structure types
  VKX_ST_APPLICATION_INFO = 0,
  VKX_ST_INSTANCE_CREATE_INFO = 1,
  VKX_ST_DEVICE_QUEUE_CREATE_INFO = 2,
  VKX_ST_DEVICE_CREATE_INFO = 3,
  VKX_ST_SUBMIT_INFO = 4,
  VKX_ST_MAPPED_MEMORY_RANGE = 6,
  VKX_ST_PIPELINE_SHADER_STAGE = 18,
  VKX_ST_COMPUTE_PIPELINE = 29,
  VKX_ST_PIPELINE_LAYOUT = 30,
  VKX_ST_DESCRIPTOR_SET_LAYOUT = 32,
  VKX_ST_DESCRIPTOR_POOL = 33,
  VKX_ST_DESCRIPTOR_SET_ALLOCATE = 34,
  VKX_ST_WRITE_DESCRIPTOR_SET = 35,
  VKX_ST_COMMAND_BUFFER_BEGIN = 42,
  VKX_ST_IMAGE_BARRIER = 45,
  VKX_ST_MEMORY_BARRIER = 46,
  VKX_ST_SWAPCHAIN = 1000001000,
  VKX_ST_PRESENT_INFO = 1000001001,
  VKX_ST_FEATURES_2 = 1000059000,
  VKX_ST_PROPERTIES_2 = 1000059001,
  VKX_ST_MEMORY_PROPERTIES_2 = 1000059006,
  VKX_ST_ID_PROPERTIES = 1000071004,
  VKX_ST_FLOAT16_INT8_FEATURES = 1000082000,
  VKX_ST_16BIT_STORAGE_FEATURES = 1000083000,
  VKX_ST_SUBGROUP_PROPERTIES = 1000094000,
  VKX_ST_DEBUG_MESSENGER = 1000128004,
  VKX_ST_MAINTENANCE3_PROPERTIES = 1000168000,
  VKX_ST_BFLOAT16_FEATURES = 1000141000,
  VKX_ST_DRIVER_PROPERTIES = 1000196000,
  VKX_ST_MEMORY_MODEL_FEATURES = 1000211000,
  VKX_ST_SUBGROUP_SIZE_PROPERTIES = 1000225000,
  VKX_ST_REQUIRED_SUBGROUP_SIZE = 1000225001,
  VKX_ST_SUBGROUP_SIZE_FEATURES = 1000225002,
  VKX_ST_MEMORY_BUDGET = 1000237000,
  VKX_ST_VALIDATION_FEATURES = 1000247000,
  VKX_ST_EXECUTABLE_FEATURES = 1000269000,
  VKX_ST_PIPELINE_INFO = 1000269001,
  VKX_ST_EXECUTABLE_PROPERTIES = 1000269002,
  VKX_ST_EXECUTABLE_INFO = 1000269003,
  VKX_ST_EXECUTABLE_STATISTIC = 1000269004,
  VKX_ST_EXECUTABLE_REPRESENTATION = 1000269005,
  VKX_ST_LAYER_SETTINGS = 1000496000,
  VKX_ST_COOPERATIVE_MATRIX_FEATURES = 1000506000,
  VKX_ST_COOPERATIVE_MATRIX_PROPERTIES = 1000506001,
};

typedef struct VkxChain { // what every extensible struct begins with
  uint32_t sType;
  void *pNext;
} VkxChain;

typedef struct {
  char extensionName[256];
  uint32_t specVersion;
} VkxExtensionProperties;

typedef struct {
  char layerName[256];
  uint32_t specVersion;
  uint32_t implementationVersion;
  char description[256];
} VkxLayerProperties;

typedef struct {
  uint32_t sType;
  const void *pNext;
  const char *pApplicationName;
  uint32_t applicationVersion;
  const char *pEngineName;
  uint32_t engineVersion;
  uint32_t apiVersion;
} VkxApplicationInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  const VkxApplicationInfo *pApplicationInfo;
  uint32_t enabledLayerCount;
  const char *const *ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char *const *ppEnabledExtensionNames;
} VkxInstanceCreateInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t enabledCount;
  const uint32_t *pEnabled;
  uint32_t disabledCount;
  const uint32_t *pDisabled;
} VkxValidationFeatures;

typedef struct {
  const char *pLayerName;
  const char *pSettingName;
  uint32_t type; // 0: VkBool32
  uint32_t valueCount;
  const void *pValues;
} VkxLayerSetting;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t settingCount;
  const VkxLayerSetting *pSettings;
} VkxLayerSettings;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  const char *pMessageIdName;
  int32_t messageIdNumber;
  const char *pMessage; // the labels and objects that follow are not read
} VkxMessengerData;

typedef VkxBool(VKX_CALL *VkxMessengerFn)(uint32_t severity, uint32_t types, const VkxMessengerData *data, void *user);

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t messageSeverity;
  uint32_t messageType;
  VkxMessengerFn pfnUserCallback;
  void *pUserData;
} VkxMessengerCreateInfo;

typedef struct {
  uint32_t queueFlags;
  uint32_t queueCount;
  uint32_t timestampValidBits;
  uint32_t minImageTransferGranularity[3];
} VkxQueueFamilyProperties;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint64_t properties[103]; // VkPhysicalDeviceProperties, read through the Vulkan 1.0 call
} VkxProperties2;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint8_t deviceUUID[16];
  uint8_t driverUUID[16];
  uint8_t deviceLUID[8];
  uint32_t deviceNodeMask;
  VkxBool deviceLUIDValid;
} VkxIDProperties;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t driverID;
  char driverName[256];
  char driverInfo[256];
  uint8_t conformanceVersion[4];
} VkxDriverProperties;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t subgroupSize;
  uint32_t supportedStages;
  uint32_t supportedOperations;
  VkxBool quadOperationsInAllStages;
} VkxSubgroupProperties;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t minSubgroupSize;
  uint32_t maxSubgroupSize;
  uint32_t maxComputeWorkgroupSubgroups;
  uint32_t requiredSubgroupSizeStages;
} VkxSubgroupSizeProperties;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t maxPerSetDescriptors;
  VkxSize maxMemoryAllocationSize;
} VkxMaintenance3Properties;

enum { VKX_FEATURE_COUNT = 55, VKX_FEATURE_FLOAT64 = 39, VKX_FEATURE_INT64 = 40, VKX_FEATURE_INT16 = 41 };

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool core[VKX_FEATURE_COUNT]; // VkPhysicalDeviceFeatures by index
} VkxFeatures2;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool storageBuffer;
  VkxBool uniformAndStorageBuffer;
  VkxBool pushConstant;
  VkxBool inputOutput;
} Vkx16BitStorageFeatures;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool shaderFloat16;
  VkxBool shaderInt8;
} VkxFloat16Int8Features;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool subgroupSizeControl;
  VkxBool computeFullSubgroups;
} VkxSubgroupSizeFeatures;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool pipelineExecutableInfo;
} VkxExecutableFeatures;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool cooperativeMatrix;
  VkxBool robustBufferAccess;
} VkxCooperativeMatrixFeatures;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool type;
  VkxBool dotProduct;
  VkxBool cooperativeMatrix;
} VkxBFloat16Features;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxBool vulkanMemoryModel;
  VkxBool deviceScope;
  VkxBool availabilityVisibilityChains;
} VkxMemoryModelFeatures;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t MSize, NSize, KSize;
  uint32_t AType, BType, CType, ResultType; // component types
  VkxBool saturatingAccumulation;
  uint32_t scope;
} VkxCooperativeMatrixProperties;

typedef struct {
  uint32_t propertyFlags;
  uint32_t heapIndex;
} VkxMemoryType;

typedef struct {
  VkxSize size;
  uint32_t flags;
} VkxMemoryHeap;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t memoryTypeCount;
  VkxMemoryType memoryTypes[32];
  uint32_t memoryHeapCount;
  VkxMemoryHeap memoryHeaps[16];
} VkxMemoryProperties2;

typedef struct {
  uint32_t sType;
  void *pNext;
  VkxSize heapBudget[16];
  VkxSize heapUsage[16];
} VkxMemoryBudget;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t queueFamilyIndex;
  uint32_t queueCount;
  const float *pQueuePriorities;
} VkxDeviceQueueCreateInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t queueCreateInfoCount;
  const VkxDeviceQueueCreateInfo *pQueueCreateInfos;
  uint32_t enabledLayerCount;
  const char *const *ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char *const *ppEnabledExtensionNames;
  const VkxBool *pEnabledFeatures;
} VkxDeviceCreateInfo;

typedef struct {
  uint32_t binding;
  uint32_t descriptorType;
  uint32_t descriptorCount;
  uint32_t stageFlags;
  const void *pImmutableSamplers;
} VkxLayoutBinding;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t bindingCount;
  const VkxLayoutBinding *pBindings;
} VkxSetLayoutCreateInfo;

typedef struct {
  uint32_t stageFlags;
  uint32_t offset;
  uint32_t size;
} VkxPushConstantRange;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t setLayoutCount;
  const VkxHandle *pSetLayouts;
  uint32_t pushConstantRangeCount;
  const VkxPushConstantRange *pPushConstantRanges;
} VkxPipelineLayoutCreateInfo;

typedef struct {
  uint32_t type;
  uint32_t descriptorCount;
} VkxPoolSize;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t maxSets;
  uint32_t poolSizeCount;
  const VkxPoolSize *pPoolSizes;
} VkxDescriptorPoolCreateInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  VkxHandle descriptorPool;
  uint32_t descriptorSetCount;
  const VkxHandle *pSetLayouts;
} VkxSetAllocateInfo;

typedef struct {
  VkxHandle buffer;
  VkxSize offset;
  VkxSize range;
} VkxBufferInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  VkxHandle dstSet;
  uint32_t dstBinding;
  uint32_t dstArrayElement;
  uint32_t descriptorCount;
  uint32_t descriptorType;
  const void *pImageInfo;
  const VkxBufferInfo *pBufferInfo;
  const void *pTexelBufferView;
} VkxWriteDescriptorSet;

typedef struct {
  uint32_t constantID;
  uint32_t offset;
  size_t size;
} VkxSpecializationEntry;

typedef struct {
  uint32_t mapEntryCount;
  const VkxSpecializationEntry *pMapEntries;
  size_t dataSize;
  const void *pData;
} VkxSpecializationInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  uint32_t stage;
  VkxHandle module;
  const char *pName;
  const VkxSpecializationInfo *pSpecializationInfo;
} VkxShaderStageCreateInfo;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t requiredSubgroupSize;
} VkxRequiredSubgroupSize;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  VkxShaderStageCreateInfo stage;
  VkxHandle layout;
  VkxHandle basePipelineHandle;
  int32_t basePipelineIndex;
} VkxComputePipelineCreateInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  VkxHandle pipeline;
} VkxPipelineInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  VkxHandle pipeline;
  uint32_t executableIndex;
} VkxExecutableInfo;

typedef struct {
  uint32_t sType;
  void *pNext;
  uint32_t stages;
  char name[256];
  char description[256];
  uint32_t subgroupSize;
} VkxExecutableProperties;

typedef struct {
  uint32_t sType;
  void *pNext;
  char name[256];
  char description[256];
  uint32_t format; // 0 bool, 1 int64, 2 uint64, 3 float64
  union {
    VkxBool b32;
    int64_t i64;
    uint64_t u64;
    double f64;
  } value;
} VkxExecutableStatistic;

typedef struct {
  uint32_t sType;
  void *pNext;
  char name[256];
  char description[256];
  VkxBool isText;
  size_t dataSize;
  void *pData;
} VkxExecutableRepresentation;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  const void *pInheritanceInfo;
} VkxBeginInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t srcAccessMask;
  uint32_t dstAccessMask;
} VkxMemoryBarrier;

typedef struct {
  VkxSize srcOffset;
  VkxSize dstOffset;
  VkxSize size;
} VkxBufferCopy;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t waitSemaphoreCount;
  const VkxHandle *pWaitSemaphores;
  const uint32_t *pWaitDstStageMask;
  uint32_t commandBufferCount;
  const VkxDispatchable *pCommandBuffers;
  uint32_t signalSemaphoreCount;
  const VkxHandle *pSignalSemaphores;
} VkxSubmitInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  VkxHandle memory;
  VkxSize offset;
  VkxSize size;
} VkxMappedRange;

typedef struct {
  uint32_t width, height;
} VkxExtent2D;

typedef struct {
  uint32_t minImageCount, maxImageCount;
  VkxExtent2D currentExtent, minImageExtent, maxImageExtent;
  uint32_t maxImageArrayLayers;
  uint32_t supportedTransforms, currentTransform;
  uint32_t supportedCompositeAlpha;
  uint32_t supportedUsageFlags;
} VkxSurfaceCapabilities;

typedef struct {
  uint32_t format;
  uint32_t colorSpace;
} VkxSurfaceFormat;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t flags;
  VkxHandle surface;
  uint32_t minImageCount;
  uint32_t imageFormat;
  uint32_t imageColorSpace;
  VkxExtent2D imageExtent;
  uint32_t imageArrayLayers;
  uint32_t imageUsage;
  uint32_t imageSharingMode;
  uint32_t queueFamilyIndexCount;
  const uint32_t *pQueueFamilyIndices;
  uint32_t preTransform;
  uint32_t compositeAlpha;
  uint32_t presentMode;
  VkxBool clipped;
  VkxHandle oldSwapchain;
} VkxSwapchainCreateInfo;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t waitSemaphoreCount;
  const VkxHandle *pWaitSemaphores;
  uint32_t swapchainCount;
  const VkxHandle *pSwapchains;
  const uint32_t *pImageIndices;
  VkxResult *pResults;
} VkxPresentInfo;

typedef struct {
  uint32_t aspectMask;
  uint32_t baseMipLevel, levelCount;
  uint32_t baseArrayLayer, layerCount;
} VkxSubresourceRange;

typedef struct {
  uint32_t sType;
  const void *pNext;
  uint32_t srcAccessMask, dstAccessMask;
  uint32_t oldLayout, newLayout;
  uint32_t srcQueueFamilyIndex, dstQueueFamilyIndex;
  VkxHandle image;
  VkxSubresourceRange subresourceRange;
} VkxImageBarrier;

typedef struct {
  VkxSize bufferOffset;
  uint32_t bufferRowLength, bufferImageHeight;
  struct {
    uint32_t aspectMask, mipLevel, baseArrayLayer, layerCount;
  } imageSubresource;
  int32_t imageOffset[3];
  uint32_t imageExtent[3];
} VkxBufferImageCopy;

#endif
