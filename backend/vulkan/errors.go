package vulkan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vktrain/vktrain/internal/units"
)

// ErrWithoutCgo is in the chain of what Open and Devices return in a program that was built without cgo.
var ErrWithoutCgo = errors.New("built without cgo, so without Vulkan: build with CGO_ENABLED=1 and a C compiler")

// ErrNoStatistics is in the chain of Open's error where Options.Statistics asks for what the driver does not have.
var ErrNoStatistics = errors.New("the driver has no pipeline statistics (VK_KHR_pipeline_executable_properties)")

// MemoryError says that something does not fit on the device.
type MemoryError struct {
	What      string // what was to be allocated
	Need      int64  // bytes
	Available int64  // bytes, as the device estimates them
	Device    string
	Hint      string // what would help, if anything is known to
}

func (e *MemoryError) Error() string {
	s := fmt.Sprintf("vulkan: out of memory: %s needs %s, %s has %s available", e.What, units.Bytes(e.Need), e.Device, units.Bytes(e.Available))
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// DeviceLostError says that the device stopped working: a driver crash, a watchdog, an unplugged card. The Backend
// can only be closed after it.
type DeviceLostError struct {
	Device string
	// Work is what was being run: the program, and its nodes where they are known.
	Work string
	Err  error
}

func (e *DeviceLostError) Error() string {
	return fmt.Sprintf("vulkan: device lost: %s stopped working during %s: %v", e.Device, e.Work, e.Err)
}

// Unwrap gives the Vulkan result.
func (e *DeviceLostError) Unwrap() error { return e.Err }

// ValidationError is what the validation layer reported.
type ValidationError struct {
	Messages []string
}

func (e *ValidationError) Error() string {
	return fmt.Sprintf("vulkan: validation: %d messages:\n%s", len(e.Messages), strings.Join(e.Messages, "\n"))
}

// ErrNoTimestamps is in the chain of Backend.Tune's error on a device whose compute queue has no clock: its kernels are chosen by rule.
var ErrNoTimestamps = errors.New("no timestamps on its compute queue, so that its kernels are chosen by rule")
