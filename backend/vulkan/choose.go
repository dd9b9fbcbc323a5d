package vulkan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vktrain/vktrain/backend"
)

// ErrNoDevice is in the chain of errors about a device that is not there.
var ErrNoDevice = errors.New("no such Vulkan device")

// rank orders kinds of devices, best first. A virtual GPU is most often a discrete one behind a hypervisor.
var rank = map[backend.Kind]int{backend.Discrete: 0, backend.Virtual: 1, backend.Integrated: 2, backend.Software: 3}

// order is that of Devices: by kind, best first, and then by UUID, so that an index means the same device in every process, whichever drivers
// the loader finds first.
func order(a, b *DeviceInfo) int {
	return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(a.UUID, b.UUID), cmp.Compare(a.DriverUUID, b.DriverUUID))
}

// Choose finds the device that Open would take from what Devices gave.
func Choose(devices []DeviceInfo, opts Options) (*DeviceInfo, error) {
	if len(devices) == 0 {
		return nil, fmt.Errorf("vulkan: %w: a Vulkan driver is installed but lists no device", ErrNoDevice)
	}
	if opts.Device != "" {
		return chooseNamed(devices, opts.Device)
	}
	var candidates []*DeviceInfo
	software := false
	for i := range devices {
		d := &devices[i]
		if d.Unusable != "" {
			continue
		}
		if d.Kind == backend.Software && !opts.Software {
			software = true
			continue
		}
		candidates = append(candidates, d)
	}
	if len(candidates) == 0 {
		why := "none is usable"
		if software {
			why = "only software drivers, which are slower than the CPU backend and are used only when asked for"
		}
		return nil, fmt.Errorf("vulkan: %w: no GPU (%s): %s", ErrNoDevice, why, list(devices))
	}
	return slices.MinFunc(candidates, func(a, b *DeviceInfo) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(b.DeviceBytes(), a.DeviceBytes()), cmp.Compare(a.Index, b.Index))
	}), nil
}

func chooseNamed(devices []DeviceInfo, name string) (*DeviceInfo, error) {
	found, several := -1, false
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 0 && n < len(devices) {
			found = n
		}
	} else {
		plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }
		found = slices.IndexFunc(devices, func(d DeviceInfo) bool { return plain(d.UUID) == plain(name) })
		if found < 0 {
			named := func(d DeviceInfo) bool { return strings.Contains(strings.ToLower(d.Name), strings.ToLower(name)) }
			if found = slices.IndexFunc(devices, named); found >= 0 {
				several = slices.ContainsFunc(devices[found+1:], named)
			}
		}
	}
	if several {
		return nil, fmt.Errorf("vulkan: more than one device has %q in its name: %s; take an index or a UUID from `vktrain devices`", name, list(devices))
	}
	if found < 0 {
		return nil, fmt.Errorf("vulkan: %w as %q: %s; take an index, a UUID or a part of a name from `vktrain devices`", ErrNoDevice, name, list(devices))
	}
	d := &devices[found]
	if d.Unusable != "" {
		return nil, fmt.Errorf("vulkan: device %d (%s) cannot be used: %s", d.Index, d.Name, d.Unusable)
	}
	return d, nil
}

// list names devices in a message.
func list(devices []DeviceInfo) string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = fmt.Sprintf("vulkan:%d is %s (%s)", d.Index, d.Name, d.Kind)
		if d.Unusable != "" {
			names[i] += ", unusable: " + d.Unusable
		}
	}
	return strings.Join(names, "; ")
}
