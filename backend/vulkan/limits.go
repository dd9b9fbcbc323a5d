package vulkan

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// limitsVariable is the environment variable that stands in for an empty Options.Limits.
const limitsVariable = "VKTRAIN_LIMITS"

// lessened tells of a device that the environment makes less of, which is for tests, and easily forgotten. "": it does not.
func (o *Options) lessened() string {
	said := os.Getenv(limitsVariable)
	if o.Limits != "" || strings.TrimFunc(said, betweenLimits) == "" {
		return ""
	}
	return fmt.Sprintf("%s=%s: no more than that is used of the device", limitsVariable, said)
}

// noMatricesVariable is Options.NoMatrices for programs without such a flag: set to anything but 0.
const noMatricesVariable = "VKTRAIN_NO_COOPMAT"

// LimitsError is what is wrong with Options.Limits, or with the environment variable in its place.
type LimitsError struct{ Where, Why string }

func (e *LimitsError) Error() string { return "vulkan: " + e.Where + ": " + e.Why }

// limitSetters are the names that Options.Limits knows: each narrows a device to a value, and never widens it.
var limitSetters = map[string]func(d *DeviceInfo, value int64){
	"invocations": func(d *DeviceInfo, v int64) { lower(&d.Limits.Invocations, v) },
	"group": func(d *DeviceInfo, v int64) {
		for i := range d.Limits.GroupSize {
			lower(&d.Limits.GroupSize[i], v)
		}
	},
	"groups": func(d *DeviceInfo, v int64) {
		for i := range d.Limits.GroupCount {
			lower(&d.Limits.GroupCount[i], v)
		}
	},
	"shared":  func(d *DeviceInfo, v int64) { lower(&d.Limits.Shared, v) },
	"buffers": func(d *DeviceInfo, v int64) { lower(&d.Limits.Bindings, v) },
	"range":   func(d *DeviceInfo, v int64) { d.Limits.BindBytes = min(d.Limits.BindBytes, v) },
	"alloc":   func(d *DeviceInfo, v int64) { d.Limits.AllocBytes = min(d.Limits.AllocBytes, v) },
	"memory": func(d *DeviceInfo, v int64) {
		for i := range d.Heaps {
			d.Heaps[i].Bytes, d.Heaps[i].Free = min(d.Heaps[i].Bytes, v), min(d.Heaps[i].Free, v)
		}
	},
}

// featureSwitches are the names that Options.Limits can turn off.
var featureSwitches = map[string]func(d *DeviceInfo){
	"subgroup":   withoutSubgroups,
	"16bit":      func(d *DeviceInfo) { d.Features.Storage16, d.Features.Int16, d.Features.Float16 = false, false, false },
	"8bit":       func(d *DeviceInfo) { d.Features.Int8 = false },
	"matrix":     withoutMatrices,
	"timestamps": func(d *DeviceInfo) { d.Limits.TimestampNanos = 0 },
}

// lessens names what the options and the environment take from a device, "" for nothing.
func (o *Options) lessens() string {
	limits := strings.FieldsFunc(cmp.Or(o.Limits, os.Getenv(limitsVariable)), betweenLimits)
	if o.withoutMatrices() {
		limits = append(limits, "matrix=off")
	}
	if o.FloorOnly {
		limits = append(limits, "floor")
	}
	slices.Sort(limits)
	return strings.Join(slices.Compact(limits), ",")
}

// withoutMatrices: cooperative matrices are to be left alone.
func (o *Options) withoutMatrices() bool {
	said := os.Getenv(noMatricesVariable)
	return o.NoMatrices || o.FloorOnly || said != "" && said != "0"
}

func betweenLimits(r rune) bool { return r == ',' || r == ' ' }

func lower(limit *uint32, to int64) { *limit = uint32(min(int64(*limit), to)) }

// narrower reads Options.Limits, or the environment where that is empty.
func narrower(limits string) (func(*DeviceInfo), error) {
	where := "Options.Limits"
	if limits == "" {
		where, limits = limitsVariable, os.Getenv(limitsVariable)
	}
	var changes []func(*DeviceInfo)
	for _, part := range strings.FieldsFunc(limits, betweenLimits) {
		name, text, _ := strings.Cut(part, "=")
		if off, ok := featureSwitches[name]; ok {
			if text != "off" {
				return nil, &LimitsError{where, fmt.Sprintf("%s can only be off, not %q", name, text)}
			}
			changes = append(changes, off)
			continue
		}
		set, ok := limitSetters[name]
		if !ok {
			return nil, &LimitsError{where, fmt.Sprintf("no limit is named %q: use %s", name, limitNames())}
		}
		v, err := parseSize(text)
		if err != nil {
			return nil, &LimitsError{where, fmt.Sprintf("%s is %q, not a number from 1 to 2^62, with K, M or G after it where wanted", name, text)}
		}
		changes = append(changes, func(d *DeviceInfo) { set(d, v) })
	}
	return func(d *DeviceInfo) {
		if len(changes) == 0 || d.Unusable != "" {
			return
		}
		for _, change := range changes {
			change(d)
		}
		if d.checkFloor(); d.Unusable != "" {
			d.Unusable += "; " + where + " makes it so: give more there, or leave it out"
		}
	}, nil
}

// limitNames lists what Options.Limits takes.
func limitNames() string {
	var names []string
	for n := range limitSetters {
		names = append(names, n+"=N")
	}
	for n := range featureSwitches {
		names = append(names, n+"=off")
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// parseSize reads a number above 0 with an optional binary unit.
func parseSize(s string) (int64, error) {
	shift := 0
	if i := strings.IndexAny(s, "KMG"); i >= 0 && i == len(s)-1 {
		shift = 10 * (1 + strings.IndexByte("KMG", s[i]))
		s = s[:i]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, err
	}
	if n <= 0 || n > 1<<62>>shift {
		return 0, strconv.ErrRange
	}
	return n << shift, nil
}

// checkFloor says why a device cannot be used, if it has less than kernels rely on.
func (d *DeviceInfo) checkFloor() {
	l := &d.Limits
	switch {
	case d.Unusable != "":
	case l.Invocations < floorInvocations:
		d.Unusable = fmt.Sprintf("its workgroups have at most %d threads (maxComputeWorkGroupInvocations), %d are needed", l.Invocations, floorInvocations)
	case l.GroupSize[0] < floorInvocations:
		d.Unusable = fmt.Sprintf("its workgroups have at most %d threads in a row (maxComputeWorkGroupSize), %d are needed", l.GroupSize[0], floorInvocations)
	case slices.Min(l.GroupCount[:]) < floorGroups:
		d.Unusable = fmt.Sprintf("its dispatches have at most %d workgroups in a row (maxComputeWorkGroupCount), %d are needed", slices.Min(l.GroupCount[:]), floorGroups)
	case l.Shared < floorShared:
		d.Unusable = fmt.Sprintf("its workgroups share at most %d bytes (maxComputeSharedMemorySize), %d are needed", l.Shared, floorShared)
	case l.Bindings < floorBindings:
		d.Unusable = fmt.Sprintf("its kernels see at most %d buffers (maxPerStageDescriptorStorageBuffers), %d are needed", l.Bindings, floorBindings)
	case l.BindBytes < floorBindBytes:
		d.Unusable = fmt.Sprintf("its kernels see at most %d bytes of a buffer (maxStorageBufferRange), %d are needed", l.BindBytes, floorBindBytes)
	case l.AllocBytes < floorAllocBytes:
		d.Unusable = fmt.Sprintf("its allocations have at most %d bytes (maxMemoryAllocationSize), %d are needed", l.AllocBytes, floorAllocBytes)
	case l.PushBytes < floorPushBytes:
		d.Unusable = fmt.Sprintf("it has %d bytes of push constants (maxPushConstantsSize), %d are needed", l.PushBytes, floorPushBytes)
	}
}
