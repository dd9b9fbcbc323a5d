//go:build cgo

package vkx

// #include <stdlib.h>
// #include "vkx.h"
import "C"

import (
	"runtime/cgo"
	"sync"

	vk "github.com/vulkan-go/vulkan"
)

// Names of what vkx itself asks for or looks at.
const (
	ExtDebugUtils             = "VK_EXT_debug_utils"
	ExtValidationFeatures     = "VK_EXT_validation_features"
	ExtLayerSettings          = "VK_EXT_layer_settings"
	ExtPortabilityEnumeration = "VK_KHR_portability_enumeration"
	ExtPortabilitySubset      = "VK_KHR_portability_subset"
	ExtDriverProperties       = "VK_KHR_driver_properties"
	ExtFloat16Int8            = "VK_KHR_shader_float16_int8"
	ExtSubgroupSizeControl    = "VK_EXT_subgroup_size_control"
	ExtExecutableProperties   = "VK_KHR_pipeline_executable_properties"
	ExtCooperativeMatrix      = "VK_KHR_cooperative_matrix"
	ExtBFloat16               = "VK_KHR_shader_bfloat16"
	ExtMemoryModel            = "VK_KHR_vulkan_memory_model"
	ExtMemoryBudget           = "VK_EXT_memory_budget"
	ExtSwapchain              = "VK_KHR_swapchain"
	LayerValidation           = "VK_LAYER_KHRONOS_validation"

	portabilityFlag = 1 // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
)

// InstanceVersion is the loader's Vulkan version, packed as by vk.MakeVersion.
func InstanceVersion() uint32 { return uint32(C.vkx_instance_version()) }

// InstanceExtensions lists the instance extensions of the drivers, or of one layer.
func InstanceExtensions(layer string) ([]string, error) {
	var name *C.char
	if layer != "" {
		names := newCStrings([]string{layer})
		defer names.free()
		name = *names.array
	}
	list, err := enumerate("vkEnumerateInstanceExtensionProperties", func(n *C.uint32_t, out *C.VkxExtensionProperties) C.VkxResult {
		return C.vkx_instance_extensions(name, n, out)
	})
	return extensionNames(list), err
}

// InstanceLayers lists the installed layers.
func InstanceLayers() ([]string, error) {
	list, err := enumerate("vkEnumerateInstanceLayerProperties", func(n *C.uint32_t, out *C.VkxLayerProperties) C.VkxResult {
		return C.vkx_instance_layers(n, out)
	})
	names := make([]string, len(list))
	for i := range list {
		names[i] = text(list[i].layerName[:])
	}
	return names, err
}

func extensionNames(list []C.VkxExtensionProperties) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = text(list[i].extensionName[:])
	}
	return names
}

// Message is what a layer, the loader or a driver has to say.
type Message struct {
	Error bool // an error, else a warning
	ID    string
	Text  string
}

// InstanceConfig says what instance to make.
type InstanceConfig struct {
	App, Engine string
	APIVersion  uint32
	Layers      []string
	Extensions  []string
	Portability bool          // list drivers that are not fully conformant too (MoltenVK); needs the extension
	SyncLayer   string        // the layer that is to validate synchronization, if any
	SyncSetting bool          // turned on by VK_EXT_layer_settings, else by VK_EXT_validation_features
	GPUAssisted bool          // and it is to look at what shaders access
	Messages    func(Message) // called from any thread, during calls; needs VK_EXT_debug_utils; nil for none
}

// Instance is a VkInstance with its function table.
type Instance struct {
	Handle   vk.Instance
	c        C.vkx_instance
	messages cgo.Handle
}

// initBinding makes the binding look its functions up once a process: it keeps them in globals.
var initBinding sync.Once

// NewInstance creates an instance. The messenger, if any, also hears of the creation itself and of Close.
func NewInstance(config InstanceConfig) (*Instance, error) {
	names := newCStrings([]string{config.App, config.Engine, config.SyncLayer})
	defer names.free()
	layers, extensions := newCStrings(config.Layers), newCStrings(config.Extensions)
	defer layers.free()
	defer extensions.free()
	c := C.vkx_instance_config{
		app: at(names, 0), engine: at(names, 1), api_version: C.uint32_t(config.APIVersion),
		layers: layers.array, layer_count: layers.n, extensions: extensions.array, extension_count: extensions.n,
	}
	if config.SyncLayer != "" {
		c.sync_layer, c.sync_by_settings, c.gpu_assisted = at(names, 2), cBool(config.SyncSetting), cBool(config.GPUAssisted)
	}
	if config.Portability {
		c.flags = portabilityFlag
	}
	inst := &Instance{}
	if config.Messages != nil {
		inst.messages = cgo.NewHandle(config.Messages)
		c.messages, c.message_handle = 1, C.uintptr_t(inst.messages)
	}
	if r := vk.Result(C.vkx_create_instance(&c, &inst.c)); r != vk.Success {
		inst.Close()
		return nil, Check("vkCreateInstance", r)
	}
	inst.Handle = *(*vk.Instance)(ptr(&inst.c.handle))
	var err error
	initBinding.Do(func() { err = vk.InitInstance(inst.Handle) })
	if err != nil {
		inst.Close()
		return nil, err
	}
	return inst, nil
}

// Close destroys the instance.
func (i *Instance) Close() {
	C.vkx_destroy_instance(&i.c)
	if i.messages != 0 {
		i.messages.Delete()
		i.messages = 0
	}
	i.Handle = nil
}

//export vkxGoMessage
func vkxGoMessage(handle C.uintptr_t, severity, types C.uint32_t, id, text *C.char) {
	const errorSeverity = 0x1000
	m := Message{Error: severity >= errorSeverity}
	if id != nil {
		m.ID = C.GoString(id)
	}
	if text != nil {
		m.Text = C.GoString(text)
	}
	cgo.Handle(handle).Value().(func(Message))(m)
}
