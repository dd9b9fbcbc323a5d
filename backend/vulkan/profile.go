//go:build cgo

package vulkan

import (
	"fmt"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// profileNodes is how many nodes share a command buffer and a query pool while profiling: each submission stays short.
const profileNodes = 64

// Profile is Trace without the starts.
func (e *Executable) Profile() ([]float64, error) {
	spans, err := e.Trace()
	if err != nil {
		return nil, err
	}
	seconds := make([]float64, len(spans))
	for i, s := range spans {
		seconds[i] = s.Seconds
	}
	return seconds, nil
}

// Trace runs the program once over what was fed last, node after node with a barrier after each, and returns when each ran by the device's
// clock. It waits for what runs, and what it computes cannot be fetched; variables are updated as by any run.
func (e *Executable) Trace() ([]backend.Span, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	period := float64(e.b.physical.Limits.TimestampNanos)
	if period == 0 {
		return nil, fmt.Errorf("vulkan: %s has no timestamps on its compute queue", e.b.physical.Name)
	}
	for i := range e.slots {
		if s := &e.slots[i]; s.pending > 0 {
			if err := e.finish(s); err != nil {
				return nil, e.b.said(err)
			}
		}
	}
	next := int((e.runs + 1) % numSlots)
	if err := e.copyIn(&e.slots[next]); err != nil {
		return nil, err
	}
	spans, err := e.trace(next, period*1e-9)
	return spans, e.b.said(err)
}

func (e *Executable) trace(slot int, period float64) ([]backend.Span, error) {
	pipelines, err := e.pipelines()
	if err != nil {
		return nil, err
	}
	info := vk.QueryPoolCreateInfo{SType: vk.StructureTypeQueryPoolCreateInfo, QueryType: vk.QueryTypeTimestamp, QueryCount: profileNodes + 1}
	defer info.Free()
	var queries vk.QueryPool
	if r := vk.CreateQueryPool(e.b.dev.Handle, &info, nil, &queries); r != vk.Success {
		return nil, fmt.Errorf("vulkan: %w", vkx.Check("vkCreateQueryPool", r))
	}
	defer vk.DestroyQueryPool(e.b.dev.Handle, queries, nil)
	commands, err := e.b.newCommandBuffers(1)
	if err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	defer commands.close()
	fence, err := e.b.newFence()
	if err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	defer vk.DestroyFence(e.b.dev.Handle, fence, nil)

	nodes := len(e.program.Nodes())
	spans := make([]backend.Span, 0, nodes)
	var zero uint64 // the first node's start
	part := 0
	r := recorder{e: e, slot: slot, pipelines: pipelines, sets: e.sets[slot], apart: true}
	for from := 0; from < nodes; from += profileNodes {
		to := min(from+profileNodes, nodes)
		r.timed(from, to, queries)
		if err := commands.record(0, r.commands, r.push); err != nil {
			return nil, fmt.Errorf("vulkan: %w", err)
		}
		err := e.b.submitNow(commands.list[0], fence)
		if err == nil {
			err = e.b.wait([]vk.Fence{fence})
		}
		if err != nil {
			return nil, e.b.failed(err, func() string {
				return fmt.Sprintf("profiling nodes %d to %d of program %s", from, to-1, e.program.Name())
			})
		}
		stamps, err := e.b.timestamps(queries, to-from+1)
		if err != nil {
			return nil, err
		}
		if from == 0 {
			zero = stamps[0]
		}
		for i := range to - from {
			if part+1 < len(e.parts.starts) && e.parts.starts[part+1] == from+i {
				part++
			}
			spans = append(spans, backend.Span{
				Start: float64(stamps[i]-zero) * period, Seconds: float64(stamps[i+1]-stamps[i]) * period, Submission: part,
			})
		}
	}
	return spans, nil
}

// timed makes the commands of nodes from..to-1 with a timestamp before the first and after each.
func (r *recorder) timed(from, to int, queries vk.QueryPool) {
	r.reset()
	r.add(vkx.ResetQueries(queries, 0, uint32(to-from+1)))
	r.add(vkx.Barrier(anyWork, allReads))
	if from == 0 {
		r.copyInputs()
	}
	r.add(vkx.Timestamp(queries, 0))
	for i := from; i < to; i++ {
		r.node(i)
		r.add(vkx.Barrier(kernelWrites, kernelUses))
		r.add(vkx.Timestamp(queries, uint32(i-from+1)))
	}
}

func (b *Backend) timestamps(queries vk.QueryPool, n int) ([]uint64, error) {
	stamps := make([]uint64, n)
	const bytes = 8
	flags := vk.QueryResultFlags(vk.QueryResult64Bit | vk.QueryResultWaitBit)
	r := vk.GetQueryPoolResults(b.dev.Handle, queries, 0, uint32(n), uint(n*bytes), unsafe.Pointer(&stamps[0]), bytes, flags)
	if r != vk.Success {
		return nil, fmt.Errorf("vulkan: %w", vkx.Check("vkGetQueryPoolResults", r))
	}
	return stamps, nil
}
