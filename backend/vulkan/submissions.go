//go:build cgo

package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// errSkipped is why a device counts as lost whose driver reports success for work that was not done: drivers have been seen to recover from a
// hang in that way, with wrong results from there on.
var errSkipped = errors.New("the driver reports success, but the last command of the submission was not run (a hang that it recovered from?)")

// measuredRun is the run whose submissions are timed: the one before it may have compiled kernels and raised clocks.
const measuredRun = 2

// submissions is how a program is cut, what tells that each part was done, and how long each took.
type submissions struct {
	limit    time.Duration   // of a part; 0: never cut, never timed
	estimate []time.Duration // of each node
	starts   []int           // the first node of each part
	queries  [numSlots]vk.QueryPool
	took     []time.Duration // of each part of the measured run, where the queue has no timestamps

	// The last command of a part copies its slot's word of run to its own word of done.
	run, done allocation
	stride    int // of a slot in done, in bytes
}

const wordBytes = 4

// plan makes the first cut, by estimates, and room for the words of as many parts as there could be.
func (s *submissions) plan(e *Executable) error {
	nodes := e.program.Nodes()
	kind := e.b.physical.Kind
	s.limit = submitLimit(e.b.opts, kind)
	s.estimate = make([]time.Duration, len(nodes))
	for i, n := range nodes {
		s.estimate[i] = estimate(kind, n)
	}
	s.starts = cut(s.estimate, s.limit)
	s.stride = wordBytes * max(len(nodes), 1)
	name := " of program " + e.program.Name()
	var err error
	if s.run, err = e.b.memory.allocate("the run number"+name, upload, numSlots*wordBytes); err != nil {
		return err
	}
	if s.done, err = e.b.memory.allocate("the marks"+name, readback, int64(numSlots*s.stride)); err != nil {
		return err
	}
	clear(s.done.bytes()) // runs are numbered from 1
	return s.done.flush()
}

// begin writes the number of a slot's run for the device to copy.
func (s *submissions) begin(slot int, run uint32) error {
	binary.NativeEndian.PutUint32(s.run.bytes()[slot*wordBytes:], run)
	return s.run.flush()
}

// skipped finds the first of a slot's parts that did not copy the run's number, -1 if all did.
func (s *submissions) skipped(slot, parts int, run uint32) (int, error) {
	if err := s.done.invalidate(); err != nil {
		return 0, err
	}
	for part := range parts {
		if binary.NativeEndian.Uint32(s.done.bytes()[slot*s.stride+part*wordBytes:]) != run {
			return part, nil
		}
	}
	return -1, nil
}

// mark makes the last command of a part, after all others are done.
func (r *recorder) mark(part int) {
	s := &r.e.parts
	from, to := s.run.part(r.slot*wordBytes, wordBytes), s.done.part(r.slot*s.stride+part*wordBytes, wordBytes)
	r.add(vkx.Barrier(anyWork, copyBoth))
	r.add(vkx.Copy(from.Buffer, from.Offset, to.Buffer, to.Offset, to.Size))
	r.add(vkx.Barrier(copyWrites, hostReads))
}

// timed tells whether the device's clock times parts.
func (s *submissions) timed() bool { return s.queries[0] != vk.NullQueryPool }

// makeQueries gives each slot two timestamps a part, where the program may be cut again and the queue has them.
func (s *submissions) makeQueries(e *Executable) error {
	if s.limit == 0 || e.b.physical.Limits.TimestampNanos == 0 {
		return nil
	}
	info := vk.QueryPoolCreateInfo{SType: vk.StructureTypeQueryPoolCreateInfo, QueryType: vk.QueryTypeTimestamp, QueryCount: uint32(2 * len(s.starts))}
	defer info.Free()
	for slot := range s.queries {
		var pool vk.QueryPool
		if r := vk.CreateQueryPool(e.b.dev.Handle, &info, nil, &pool); r != vk.Success {
			return vkx.Check("vkCreateQueryPool", r)
		}
		s.queries[slot] = pool
	}
	return nil
}

func (s *submissions) closeQueries(e *Executable) {
	for slot, pool := range s.queries {
		vk.DestroyQueryPool(e.b.dev.Handle, pool, nil) // a null one is allowed
		s.queries[slot] = vk.NullQueryPool
	}
}

func (s *submissions) close(e *Executable) {
	s.closeQueries(e)
	s.run.free()
	s.done.free()
}

// measure gives how long each part of a slot's last run took by the device's clock, or nil where the clock went back.
func (s *submissions) measure(e *Executable, slot int) ([]time.Duration, error) {
	stamps, err := e.b.timestamps(s.queries[slot], 2*len(s.starts))
	if err != nil {
		return nil, err
	}
	took := make([]time.Duration, len(s.starts))
	for part := range took {
		if stamps[2*part+1] < stamps[2*part] {
			return nil, nil
		}
		took[part] = time.Duration(float64(stamps[2*part+1]-stamps[2*part]) * float64(e.b.physical.Limits.TimestampNanos))
	}
	return took, nil
}

// recut corrects the estimates by what the parts took, and records the program anew if they were off by more than a factor of two and another
// cut follows from that. No slot may be in flight.
func (e *Executable) recut(took []time.Duration) error {
	s := &e.parts
	corrected, off := correct(s.estimate, s.starts, took)
	starts := cut(corrected, s.limit)
	if !off || fmt.Sprint(starts) == fmt.Sprint(s.starts) {
		return nil
	}
	s.estimate, s.starts = corrected, starts
	e.closeCommands()
	return e.record()
}

// correctCut is called once, before the run after the measured one.
func (e *Executable) correctCut() error {
	for i := range e.slots {
		if s := &e.slots[i]; s.pending > 0 {
			if err := e.finish(s); err != nil {
				return err
			}
		}
	}
	took := e.parts.took
	if e.slots[measuredRun%numSlots].err != nil {
		return nil
	}
	if e.parts.timed() {
		var err error
		if took, err = e.parts.measure(e, measuredRun%numSlots); err != nil {
			return err
		}
	}
	if took == nil {
		return nil
	}
	e.err = e.recut(took)
	return e.err
}

// submitTimed submits a slot's run and, where the queue has no timestamps, waits for it and notes when each fence was signalled.
func (e *Executable) submitTimed(index int) error {
	if e.parts.timed() || e.b.opts.Nice { // the pacer times parts by itself
		return e.submitParts(index)
	}
	if other := &e.slots[1-index]; other.pending > 0 {
		if err := e.finish(other); err != nil {
			return err
		}
	}
	last := time.Now()
	if err := e.submitParts(index); err != nil {
		return err
	}
	took := make([]time.Duration, len(e.parts.starts))
	for part, fence := range e.slots[index].fences {
		if e.b.await([]vk.Fence{fence}) != nil {
			return nil // finish will have the same error, and names the nodes
		}
		now := time.Now()
		took[part], last = now.Sub(last), now
	}
	e.parts.took = took
	return nil
}
