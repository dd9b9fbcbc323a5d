//go:build !cgo

package vulkan

import (
	"context"
	"fmt"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Backend is a Vulkan device that is open. Without cgo there are none.
type Backend struct{ backend.Backend }

var _ backend.Backend = (*Backend)(nil)

// Open returns an error: see ErrWithoutCgo.
func Open(Options) (*Backend, error) { return nil, fmt.Errorf("vulkan: %w", ErrWithoutCgo) }

// PipelineStats returns an error: see ErrWithoutCgo.
func (b *Backend) PipelineStats(...*graph.Program) ([]KernelStats, error) {
	return nil, fmt.Errorf("vulkan: %w", ErrWithoutCgo)
}

// Device describes no device.
func (b *Backend) Device() DeviceInfo { return DeviceInfo{} }

// ProbeMain has nothing to do: see ErrWithoutCgo.
func ProbeMain() {}

// ListDevices returns an error: see ErrWithoutCgo.
func ListDevices(Options) ([]DeviceInfo, error) { return nil, fmt.Errorf("vulkan: %w", ErrWithoutCgo) }

// Tune returns an error: see ErrWithoutCgo.
func (b *Backend) Tune(context.Context, ...*graph.Program) ([]Choice, error) {
	return nil, fmt.Errorf("vulkan: %w", ErrWithoutCgo)
}

// Choices has nothing to tell.
func (b *Backend) Choices(...*graph.Program) []Choice { return nil }

// Devices returns an error: see ErrWithoutCgo.
func Devices() ([]DeviceInfo, error) { return nil, fmt.Errorf("vulkan: %w", ErrWithoutCgo) }
