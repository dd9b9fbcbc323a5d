//go:build cgo

package vulkan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/graph"
)

// KernelStats is what a driver's compiler tells of one kernel.
type KernelStats struct {
	Kernel     string
	Constants  []uint32 // specialization constants
	Executable string   // the driver's name for what it made
	Subgroup   uint32   // threads a subgroup
	Statistics []Statistic
}

// Statistic is one number, under the driver's own name for it.
type Statistic struct {
	Name, Description string
	Value             float64
}

// Find gives the statistic of a name, in any case of letters.
func (k *KernelStats) Find(name string) (float64, bool) {
	for _, s := range k.Statistics {
		if strings.EqualFold(s.Name, name) {
			return s.Value, true
		}
	}
	return 0, false
}

// Spills is the number of registers that did not fit and went to memory, and whether the driver says so at all.
func (k *KernelStats) Spills() (n float64, known bool) {
	for _, s := range k.Statistics {
		if name := strings.ToLower(s.Name); strings.Contains(name, "spill") {
			n += s.Value
			known = true
		}
	}
	return n, known
}

// PipelineStats compiles the kernels that programs need on this device and reads what the driver tells of each, sorted by
// kernel. Nothing runs and no tensor gets memory, so it works on a driver without hardware. It needs Options.Statistics.
func (b *Backend) PipelineStats(programs ...*graph.Program) ([]KernelStats, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	if !b.opts.Statistics {
		return nil, fmt.Errorf("vulkan: pipeline statistics need Options.Statistics")
	}
	var keys []pipelineKey
	for _, p := range programs {
		launches, err := lowerProgram(b.caps, p, b.lower, b.lookup)
		if err != nil {
			return nil, err
		}
		for _, l := range launches {
			l.key.statistics = true
			if !slices.Contains(keys, l.key) {
				keys = append(keys, l.key)
			}
		}
	}
	pipelines, err := b.pipelines.get(keys)
	if err != nil {
		return nil, b.said(err)
	}
	var stats []KernelStats
	for _, k := range keys {
		executables, err := b.dev.Executables(pipelines[k].handle)
		if err != nil {
			return nil, b.said(fmt.Errorf("vulkan: kernel %s: %w", k.kernel, err))
		}
		for _, e := range executables {
			s := KernelStats{Kernel: k.kernel, Constants: k.constants(), Executable: e.Name, Subgroup: e.SubgroupSize}
			for _, stat := range e.Statistics {
				s.Statistics = append(s.Statistics, Statistic(stat))
			}
			stats = append(stats, s)
		}
	}
	slices.SortStableFunc(stats, func(a, b KernelStats) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), slices.Compare(a.Constants, b.Constants))
	})
	return stats, b.said(nil)
}
