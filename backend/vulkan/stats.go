//go:build cgo

package vulkan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/graph"
)

// PipelineStats compiles the kernels that programs need on this device and reads what the driver tells of each, sorted by
// kernel. Nothing runs and no tensor gets memory, so it works on a driver without hardware. It needs Options.Statistics.
func (b *Backend) PipelineStats(programs ...*graph.Program) ([]KernelStats, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	if !b.opts.Statistics {
		return nil, fmt.Errorf("vulkan: pipeline statistics need Options.Statistics")
	}
	var launches []launch
	for _, p := range programs {
		l, err := b.mayLaunch(p)
		if err != nil {
			return nil, err
		}
		launches = append(launches, l...)
	}
	return b.launchStats(launches)
}

// mayLaunch is what a program may launch, wherever its tensors come to lie.
func (b *Backend) mayLaunch(p *graph.Program) ([]launch, error) {
	l, err := lowerProgram(b.capsNow(), p, b.lower, b.lookup)
	if err != nil {
		return nil, err
	}
	return combine(b.caps, p, graph.NewPlan(p).Barrier, l, anywhere, b.lookup)
}

func (b *Backend) launchStats(launches []launch) ([]KernelStats, error) {
	var keys []pipelineKey
	seen := map[pipelineKey]int{} // launches
	for _, l := range launches {
		l.key.statistics = true
		if seen[l.key]++; seen[l.key] == 1 {
			keys = append(keys, l.key)
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
			s := KernelStats{Kernel: k.kernel, Constants: k.constants(), Launches: seen[k], Executable: e.Name, Subgroup: e.SubgroupSize}
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
