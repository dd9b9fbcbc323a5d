// Package device finds and opens devices by the names that people give them: auto, cpu, vulkan, vulkan:N.
//
// auto is the best GPU, or the CPU where there is none. A Vulkan driver that runs on the CPU is slower than the CPU backend, so auto never
// takes it; vulkan does when there is nothing better.
package device

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/backend/vulkan"
)

// Names of devices. A device of Vulkan's list is Vulkan + ":" + its index, its UUID or a part of its name.
const (
	Auto   = "auto"
	CPU    = "cpu"
	Vulkan = "vulkan"
)

// NameError is a device's name that means nothing.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("device: %q is unknown: use auto, cpu, vulkan, or vulkan:N with an N that `vktrain devices` lists", e.Name)
}

// CheckName returns a *NameError for a name that no machine could have.
func CheckName(name string) error {
	sub, numbered := strings.CutPrefix(name, Vulkan+":")
	switch {
	case name == Auto, name == CPU, name == Vulkan, numbered && sub != "":
		return nil
	}
	return &NameError{name}
}

// Choice is what auto takes, and why.
type Choice struct {
	Device string `json:"device"` // cpu or vulkan:N
	Why    string `json:"why"`
}

// Survey is every device of the machine.
type Survey struct {
	Auto   Choice
	CPU    backend.Info
	Vulkan []vulkan.DeviceInfo
	// VulkanErr says why there is no Vulkan at all: no driver, or a program built without cgo.
	VulkanErr error
}

// Options say how devices are opened.
type Options struct {
	Threads     int             // of the CPU; 0: its default
	SubmitLimit time.Duration   // of a GPU; 0: its default (vulkan.Options)
	NoMatrices  bool            // no cooperative matrices on a GPU
	Context     context.Context // ends a GPU's compiling, testing and measuring of kernels (vulkan.Options); nil: nothing does
	Warn        func(string)    // is told what a GPU was found to do wrong; nil: nobody is
	Nice        bool            // leave a GPU to others now and then (vulkan.Options)

	Measure  bool                  // a GPU's kernels for shapes that are new (vulkan.Tuning)
	NoTuning bool                  // choose a GPU's kernels by rule, whatever was measured
	Progress func(done, total int) // of measuring
}

// Look lists the devices.
func Look(o Options) (Survey, error) {
	var s Survey
	host, err := cpu.New(cpu.Options{Threads: o.Threads})
	if err != nil {
		return s, err
	}
	s.CPU = host.Info()
	if err := host.Close(); err != nil {
		return s, err
	}
	s.Vulkan, s.VulkanErr = vulkan.ListDevices(vulkan.Options{NoMatrices: o.NoMatrices})
	if wrong := (*vulkan.LimitsError)(nil); errors.As(s.VulkanErr, &wrong) {
		return s, wrong
	}
	s.Auto = choose(s.Vulkan, s.VulkanErr)
	return s, nil
}

// choose decides for auto.
func choose(devices []vulkan.DeviceInfo, err error) Choice {
	if err != nil {
		return Choice{CPU, "there is no Vulkan device: " + reason(err)}
	}
	best, err := vulkan.Choose(devices, vulkan.Options{})
	if err != nil {
		return Choice{CPU, reason(err)}
	}
	why := fmt.Sprintf("%s is a GPU (%s)", best.Name, best.Kind)
	if len(devices) > 1 {
		why += ", the best of " + fmt.Sprint(len(devices)) + " Vulkan devices"
	}
	return Choice{fmt.Sprintf("%s:%d", Vulkan, best.Index), why}
}

// reason is what package vulkan says, without what the sentence around it says already.
func reason(err error) string {
	s := strings.TrimPrefix(err.Error(), "vulkan: ")
	return strings.TrimPrefix(s, vulkan.ErrNoDevice.Error()+": ")
}

// Open opens a device by its name. why is not empty for auto. cpu never loads Vulkan.
func Open(name string, o Options) (dev backend.Backend, why string, err error) {
	if err := CheckName(name); err != nil {
		return nil, "", err
	}
	if name == Auto {
		devices, err := vulkan.Devices()
		if wrong := (*vulkan.LimitsError)(nil); errors.As(err, &wrong) {
			return nil, "", wrong
		}
		choice := choose(devices, err)
		if dev, _, err = Open(choice.Device, o); err == nil || choice.Device == CPU {
			return dev, choice.Why, err
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, "", err
		}
		dev, _, fallback := Open(CPU, o)
		return dev, fmt.Sprintf("%s does not open: %v", choice.Device, err), fallback
	}
	if name == CPU {
		b, err := cpu.New(cpu.Options{Threads: o.Threads})
		if err != nil {
			return nil, "", err
		}
		return b, "", nil
	}
	_, index, _ := strings.Cut(name, ":")
	options := vulkan.Options{
		Device: index, Software: true, SubmitLimit: o.SubmitLimit, Nice: o.Nice, NoMatrices: o.NoMatrices, Context: o.Context, Warn: o.Warn,
	}
	if !o.NoTuning {
		options.Tuning = &vulkan.Tuning{Measure: o.Measure, Conform: conformance.CheckKernel, Progress: o.Progress}
	}
	b, err := vulkan.Open(options)
	if err != nil {
		return nil, "", err
	}
	return b, "", nil
}
