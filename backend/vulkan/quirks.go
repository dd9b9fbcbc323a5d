package vulkan

import (
	"strings"

	"github.com/vktrain/vktrain/backend"
)

// Quirk is a correction of what a driver says of a device.
type Quirk struct {
	Name   string `json:"name"`
	Change string `json:"change"`
	Why    string `json:"why"`
	Source string `json:"source"` // where that was seen
}

// quirks are all corrections, in the order in which they are applied.
var quirks = []struct {
	Quirk
	match  func(d *DeviceInfo) bool
	change func(d *DeviceInfo)
}{
	{
		Quirk{"software", "its kind is software", "it runs on the CPU and does not say so", "the driver's name"},
		func(d *DeviceInfo) bool {
			of := func(name string) bool { return strings.Contains(d.Name, name) }
			return d.Kind != backend.Software && (of("llvmpipe") || of("lavapipe") || of("SwiftShader"))
		},
		func(d *DeviceInfo) { d.Kind = backend.Software },
	},
	{
		Quirk{"moltenvk-amd", "no subgroup operations", "they are advertised, and have given wrong results", "llama.cpp#15846, llama.cpp#20029"},
		func(d *DeviceInfo) bool { return d.VendorID == vendorAMD && strings.HasPrefix(d.Driver, "MoltenVK") },
		withoutSubgroups,
	},
	{
		Quirk{"amdvlk-alloc", "allocations of at most 2 GiB", "larger buffers have failed there", "AMDVLK#413"},
		func(d *DeviceInfo) bool { return isAMDVLK(d) },
		func(d *DeviceInfo) {
			d.Limits.AllocBytes = min(d.Limits.AllocBytes, 2<<30)
			d.Limits.BindBytes = min(d.Limits.BindBytes, 2<<30)
		},
	},
	{
		Quirk{"amdvlk-matrix", "its cooperative matrices are not asked for", "the driver has crashed in the query", "AMDVLK#422"},
		func(d *DeviceInfo) bool { return isAMDVLK(d) },
		withoutMatrices,
	},
}

// Vendors' numbers, as PCI or Khronos has them.
const (
	vendorAMD      = 0x1002
	vendorApple    = 0x106B
	vendorArm      = 0x13B5
	vendorIntel    = 0x8086
	vendorQualcomm = 0x5143
)

// isAMDVLK tells AMD's open-source driver from RADV and from its proprietary one.
func isAMDVLK(d *DeviceInfo) bool {
	return d.VendorID == vendorAMD && strings.HasPrefix(d.Driver, "AMD open-source driver")
}

func withoutSubgroups(d *DeviceInfo) {
	d.Features.SubgroupOps, d.Features.SubgroupSizeControl, d.Features.FullSubgroups = nil, false, false
}

func withoutMatrices(d *DeviceInfo) {
	d.Features.CooperativeMatrix, d.Features.matrices, d.Features.BFloat16 = nil, nil, false
	d.noMatrices = true
}

// applyQuirks corrects what is known to be wrong, and notes it.
func (d *DeviceInfo) applyQuirks() {
	for _, q := range quirks {
		if q.match(d) {
			q.change(d)
			d.Quirks = append(d.Quirks, q.Quirk)
		}
	}
	d.KindName = d.Kind.String()
}
