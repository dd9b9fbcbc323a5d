package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/train"
)

// checkTogether refuses workers side by side whose runs have no room together in the host's memory, which is known before any is started. A device with
// memory of its own has one run at a time, and a run that has no room even alone says so itself.
func (e *engine) checkTogether(groups []*group) error {
	var host backend.Info
	var all train.Memory
	running, fit := 0, 0
	for _, g := range groups {
		if !inHostMemory(g.info.Kind) || len(g.queue) == 0 {
			continue
		}
		if host.Memory == 0 || g.info.Kind == backend.CPU {
			host = g.info
		}
		needs, err := e.needs(g)
		if err != nil {
			return err
		}
		for _, need := range needs[:min(len(needs), len(g.workers))] { // the largest: any may be beside each other
			all = all.Plus(need)
			if running++; host.Memory > 0 && all.Total() <= host.Memory {
				fit = running
			}
		}
	}
	if running < 2 || host.Memory == 0 || all.Total() <= host.Memory {
		return nil
	}
	return fmt.Errorf("%d runs side by side: %w", running, &train.MemoryError{Need: all, Device: host, Remedy: fmt.Sprintf("use --jobs %d, or fewer devices", max(1, fit))})
}

// inHostMemory tells the devices that compute in the host's memory.
func inHostMemory(k backend.Kind) bool {
	return k == backend.CPU || k == backend.Software || k == backend.Integrated
}

// needs are what the group's runs need, the most first; those that have no room alone are left out.
func (e *engine) needs(g *group) ([]train.Memory, error) {
	var all []train.Memory
	by := map[int]train.Memory{} // combination
	for _, i := range g.queue {
		r := e.Runs[i]
		need, ok := by[r.Combination]
		if !ok {
			n, err := train.NeedOf(g.workers[0].dev, r.Config)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.ID, err)
			}
			need = n.Run
			by[r.Combination] = need
		}
		if need.Check(g.info) == nil {
			all = append(all, need)
		}
	}
	slices.SortStableFunc(all, func(a, b train.Memory) int { return cmp.Compare(b.Total(), a.Total()) })
	return all, nil
}
