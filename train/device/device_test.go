package device

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan"
)

func TestAutoTakesAGPUOrElseTheCPU(t *testing.T) {
	list := func(kinds ...backend.Kind) []vulkan.DeviceInfo {
		var all []vulkan.DeviceInfo
		for i, k := range kinds {
			all = append(all, vulkan.DeviceInfo{Index: i, Name: k.String(), Kind: k})
		}
		return all
	}
	for _, c := range []struct {
		devices []vulkan.DeviceInfo
		err     error
		want    string
		why     string
	}{
		{list(backend.Software, backend.Integrated, backend.Discrete), nil, "vulkan:2", "discrete is a GPU (discrete), the best of 3 Vulkan devices"},
		{list(backend.Integrated), nil, "vulkan:0", "integrated is a GPU (integrated)"},
		{list(backend.Software), nil, "cpu", "software"},
		{nil, nil, "cpu", "no device"},
		{nil, errors.New("no driver"), "cpu", "there is no Vulkan device: no driver"},
	} {
		got := choose(c.devices, c.err)
		require.Equal(t, c.want, got.Device)
		require.Contains(t, got.Why, c.why)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"auto", "cpu", "vulkan", "vulkan:0", "vulkan:01234567-89ab-cdef-0123-456789abcdef"} {
		require.NoError(t, CheckName(name), name)
	}
	for _, name := range []string{"", "gpu", "vulkan:", "cuda:0", "CPU"} {
		require.ErrorAs(t, CheckName(name), new(*NameError), name)
		_, _, err := Open(name, Options{})
		require.ErrorAs(t, err, new(*NameError), name)
	}
}

func TestCPUOpens(t *testing.T) {
	dev, why, err := Open(CPU, Options{Threads: 3})
	require.NoError(t, err)
	require.Empty(t, why)
	require.Equal(t, backend.CPU, dev.Info().Kind)
	require.NoError(t, dev.Close())
	s, err := Look(Options{})
	require.NoError(t, err)
	require.NotEmpty(t, s.CPU.Name)
	require.NotEmpty(t, s.Auto.Why)
	if s.VulkanErr != nil {
		require.Equal(t, CPU, s.Auto.Device)
	}
}

// A limit that is no limit is not passed over by taking the CPU.
func TestWrongLimitsAreRefused(t *testing.T) {
	if _, err := vulkan.Devices(); err != nil {
		t.Skip(err)
	}
	t.Setenv("VKTRAIN_LIMITS", "foo=1")
	_, _, err := Open(Auto, Options{})
	require.ErrorContains(t, err, `VKTRAIN_LIMITS: no limit is named "foo"`)
	_, err = Look(Options{})
	require.ErrorContains(t, err, `"foo"`)
}
