package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
)

func TestQuirks(t *testing.T) {
	amd := func(driver string) DeviceInfo {
		d := large()
		d.VendorID, d.Driver = vendorAMD, driver
		return d
	}
	names := func(d DeviceInfo) (list []string) {
		for _, q := range d.Quirks {
			list = append(list, q.Name)
		}
		return list
	}
	for _, driver := range []string{"radv Mesa 25.0.7", "AMD proprietary driver 25.3.1"} {
		d := amd(driver)
		d.applyQuirks()
		require.Empty(t, d.Quirks, driver)
		require.Equal(t, "discrete", d.KindName)
		require.Equal(t, large().Limits, d.Limits)
	}
	d := amd("MoltenVK 1.2.9")
	d.applyQuirks()
	require.Equal(t, []string{"moltenvk-amd"}, names(d))
	require.Empty(t, d.Features.SubgroupOps)
	require.False(t, d.caps(false).subgroupBallot)
	require.True(t, d.Features.Float16, "the rest is as it was")
	d.VendorID = 0x106B
	d.Quirks, d.Features = nil, large().Features
	d.applyQuirks()
	require.Empty(t, d.Quirks, "Apple's own")

	d = amd("AMD open-source driver 2025.Q1.1 (LLPC)")
	d.applyQuirks()
	require.Equal(t, []string{"amdvlk-alloc", "amdvlk-matrix"}, names(d))
	require.EqualValues(t, 2<<30, d.Limits.AllocBytes)
	require.EqualValues(t, 2<<30, d.Limits.BindBytes)
	require.True(t, d.noMatrices)

	d = DeviceInfo{Name: "SwiftShader Device (Subzero)", Kind: backend.Virtual}
	d.applyQuirks()
	require.Equal(t, []string{"software"}, names(d))
	require.Equal(t, "software", d.KindName)
	d = DeviceInfo{Name: "llvmpipe (LLVM 15.0.6, 256 bits)", Kind: backend.Software}
	d.applyQuirks()
	require.Empty(t, d.Quirks, "it says so itself")
	require.Equal(t, "software", d.KindName)
	for _, q := range quirks {
		require.NotContains(t, []string{q.Name, q.Change, q.Why, q.Source}, "")
	}
}
