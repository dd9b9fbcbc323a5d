//go:build cgo

package vulkan

import (
	"errors"
	"fmt"
	"slices"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

var (
	version11 = vk.MakeVersion(1, 1, 0)
	version12 = vk.MakeVersion(1, 2, 0)
	version13 = vk.MakeVersion(1, 3, 0)
)

// newInstance loads Vulkan and makes an instance; log is not nil if the validation layer is to be on. It has the extensions that are needed beside.
func newInstance(log *messageLog, access bool, needed ...string) (*vkx.Instance, error) {
	if err := vkx.Load(vkx.LibraryNames()...); err != nil {
		return nil, fmt.Errorf("vulkan: %w: no Vulkan loader on this system (install a GPU driver, or the package libvulkan1 or vulkan-loader): %w",
			ErrNoDevice, err)
	}
	if v := vkx.InstanceVersion(); v < version11 {
		return nil, fmt.Errorf("vulkan: %w: the Vulkan loader is version %v, 1.1 is needed: update it", ErrNoDevice, vk.Version(v))
	}
	config := vkx.InstanceConfig{App: "vktrain", Engine: "vktrain", APIVersion: version13, Extensions: slices.Clone(needed)}
	extensions, err := vkx.InstanceExtensions("")
	if err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	if slices.Contains(extensions, vkx.ExtPortabilityEnumeration) {
		config.Portability = true
		config.Extensions = append(config.Extensions, vkx.ExtPortabilityEnumeration)
	}
	if log != nil {
		if err := addValidation(&config, log); err != nil {
			return nil, err
		}
		config.GPUAssisted = access
	}
	instance, err := vkx.NewInstance(config)
	if vkx.Code(err) == vk.ErrorIncompatibleDriver {
		return nil, fmt.Errorf("vulkan: %w: %w", ErrNoDevice, err)
	}
	if err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	return instance, nil
}

func addValidation(config *vkx.InstanceConfig, log *messageLog) error {
	layers, err := vkx.InstanceLayers()
	if err != nil {
		return fmt.Errorf("vulkan: %w", err)
	}
	if !slices.Contains(layers, vkx.LayerValidation) {
		return errors.New("vulkan: validation was asked for, but the layer " + vkx.LayerValidation + " is not installed (Debian: vulkan-validationlayers)")
	}
	own, err := vkx.InstanceExtensions(vkx.LayerValidation)
	if err != nil {
		return fmt.Errorf("vulkan: %w", err)
	}
	config.SyncSetting = slices.Contains(own, vkx.ExtLayerSettings)
	by := vkx.ExtLayerSettings
	if !config.SyncSetting {
		by = vkx.ExtValidationFeatures
	}
	if !slices.Contains(own, by) {
		return errors.New("vulkan: the validation layer is too old: it has no " + vkx.ExtValidationFeatures)
	}
	config.Layers = append(config.Layers, vkx.LayerValidation)
	config.Extensions = append(config.Extensions, vkx.ExtDebugUtils, by)
	config.SyncLayer = vkx.LayerValidation
	config.Messages = log.add
	return nil
}

// physicalDevice is a DeviceInfo and what it takes to open it.
type physicalDevice struct {
	DeviceInfo
	handle      vk.PhysicalDevice
	version     uint32 // of Vulkan that both the device and the instance speak
	extensions  []string
	queueFamily uint32
	types       []vkx.MemoryType
	cacheUUID   [16]byte

	matrixFeature bool // it has cooperative matrices, and what they need beside
}

func physicalDevices(instance *vkx.Instance) ([]*physicalDevice, error) {
	var n uint32
	if r := vk.EnumeratePhysicalDevices(instance.Handle, &n, nil); r != vk.Success {
		if r == vk.ErrorInitializationFailed {
			return nil, fmt.Errorf("vulkan: %w: %w", ErrNoDevice, vkx.Check("vkEnumeratePhysicalDevices", r))
		}
		return nil, fmt.Errorf("vulkan: %w", vkx.Check("vkEnumeratePhysicalDevices", r))
	}
	handles := make([]vk.PhysicalDevice, n)
	if n > 0 {
		if r := vk.EnumeratePhysicalDevices(instance.Handle, &n, handles); r != vk.Success && r != vk.Incomplete {
			return nil, fmt.Errorf("vulkan: %w", vkx.Check("vkEnumeratePhysicalDevices", r))
		}
	}
	devices := make([]*physicalDevice, n)
	for i := range devices {
		d, err := describe(instance, handles[i])
		if err != nil {
			return nil, err
		}
		devices[i] = d
	}
	slices.SortStableFunc(devices, func(a, b *physicalDevice) int { return order(&a.DeviceInfo, &b.DeviceInfo) })
	for i, d := range devices {
		d.Index = i
	}
	return devices, nil
}

// Devices lists the Vulkan devices of this machine, usable or not. An error is ErrNoDevice if there is no Vulkan at all.
func Devices() ([]DeviceInfo, error) { return ListDevices(Options{}) }

// ListDevices is Devices, as Open with these options sees them.
func ListDevices(opts Options) ([]DeviceInfo, error) {
	instance, err := newInstance(nil, false)
	if err != nil {
		return nil, err
	}
	defer instance.Close()
	devices, err := physicalDevices(instance)
	if err != nil {
		return nil, err
	}
	if err := narrow(devices, opts.Limits); err != nil {
		return nil, err
	}
	for _, d := range devices {
		d.findMatrices(opts)
		d.recall(opts)
		d.Choices = d.Tuned(opts)
	}
	return infos(devices), nil
}

func narrow(devices []*physicalDevice, limits string) error {
	change, err := narrower(limits)
	if err != nil {
		return err
	}
	for _, d := range devices {
		change(&d.DeviceInfo)
	}
	return nil
}

func infos(devices []*physicalDevice) []DeviceInfo {
	list := make([]DeviceInfo, len(devices))
	for i, d := range devices {
		list[i] = d.DeviceInfo
	}
	return list
}
