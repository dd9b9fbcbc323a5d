//go:build cgo

package vulkan

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// openStats opens a device whose driver has pipeline statistics.
func openStats(t *testing.T, opts Options) *Backend {
	t.Helper()
	openTest(t, Options{}) // there is Vulkan, or this skips
	opts.Statistics, opts.Software, opts.NoCache = true, true, true
	b, err := Open(opts)
	if errors.Is(err, ErrNoStatistics) && os.Getenv("VKTRAIN_REQUIRE_STATISTICS") != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestPipelineStats(t *testing.T) {
	b := openStats(t, Options{})
	b.useArith()
	b.submit = nil // to run anything would be a crash
	stats, err := b.PipelineStats(chain(100, 3), chain(50, 1))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(stats), 2, "add and fill, once each whatever their sizes")
	for _, s := range stats {
		require.Equal(t, "arith", s.Kernel)
		require.Len(t, s.Constants, 2)
		t.Logf("%s %v (%s, subgroup %d): %v", s.Kernel, s.Constants, s.Executable, s.Subgroup, s.Statistics)
	}
}

func TestSpills(t *testing.T) {
	s := KernelStats{Statistics: []Statistic{{Name: "Spilled SGPRs", Value: 2}, {Name: "VGPRs", Value: 64}, {Name: "Spilled VGPRs", Value: 3}}}
	n, known := s.Spills()
	require.True(t, known)
	require.Equal(t, 5.0, n)
	vgprs, ok := s.Find("vgprs")
	require.True(t, ok)
	require.Equal(t, 64.0, vgprs)
	_, known = (&KernelStats{Statistics: []Statistic{{Name: "Instructions"}}}).Spills()
	require.False(t, known)
}
