//go:build cgo

package vulkan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

var (
	_ backend.Executable  = (*Executable)(nil)
	_ backend.MemoryStats = (*Executable)(nil)
	_ backend.Profiler    = (*Executable)(nil)
	_ backend.Tracer      = (*Executable)(nil)
	_ backend.Kernels     = (*Executable)(nil)
)

const numSlots = backend.MaxInFlight

// Executable is a program with all it needs on a device.
type Executable struct {
	b        *Backend
	store    *Store
	program  *graph.Program
	plan     *graph.Plan
	launches []launch
	handle   *handle
	closed   bool
	err      error // of recording anew: nothing can run after it

	arena        *sharedSpace // nil if nothing is in it
	tables       allocation   // of launches that stand for many
	scratch      scratch
	scratchSpace *sharedSpace
	made         int64      // bytes of both that no other executable had
	inputs       allocation // on the device, if the kernels do not read the slots' inputs in place
	inPlace      bool
	inputOffset  []int64 // in a slot's inputs, and the end
	outputOffset []int64

	pool     vk.DescriptorPool
	sets     [numSlots][]vk.DescriptorSet // by launch
	commands *commandBuffers              // by slot, then by part
	parts    submissions
	slots    [numSlots]slot
	runs     backend.Ticket // submitted so far

	fed     [][]byte // each input's present content, nil before it is first fed
	version []int    // of each input's content
}

// slot is what one run in flight has for itself.
type slot struct {
	inputs, outputs allocation
	fences          []vk.Fence // one a part
	version         []int      // of the inputs' content in the slot
	pending         int        // parts submitted and not yet waited for
	paced           *pacedRun  // nil once the pacer is done with it, or without one
	run             uint32     // the number of the run
	err             error      // of the run
}

func (e *Executable) usable() error {
	if e.closed {
		return backend.ErrClosed
	}
	return cmp.Or(e.b.usable(), e.err)
}

// Feed sets an input of the next Submit.
func (e *Executable) Feed(input string, src []byte) error {
	if err := e.usable(); err != nil {
		return err
	}
	v := e.program.Input(input)
	if v == nil {
		return fmt.Errorf("vulkan: program %s has no input %q", e.program.Name(), input)
	}
	if err := backend.CheckSize("input", input, len(src), v.Bytes()); err != nil {
		return err
	}
	if e.fed == nil {
		e.fed, e.version = make([][]byte, len(e.program.Inputs())), make([]int, len(e.program.Inputs()))
	}
	i := e.inputIndex(v)
	e.fed[i] = append(e.fed[i][:0], src...)
	e.version[i]++
	return nil
}

// Submit starts a run and does not wait for it. Only if the run before the last one is unfinished does it wait for that one.
func (e *Executable) Submit() (backend.Ticket, error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	ticket := e.runs + 1
	index := int(ticket % numSlots)
	s := &e.slots[index]
	if s.pending > 0 {
		if err := e.finish(s); err != nil {
			return 0, e.b.said(err)
		}
	}
	if ticket == measuredRun+1 && e.parts.limit > 0 {
		if err := e.correctCut(); err != nil {
			return 0, e.b.said(err)
		}
	}
	if err := e.copyIn(s); err != nil {
		return 0, err
	}
	s.err, s.run = nil, uint32(ticket)
	if err := e.parts.begin(index, s.run); err != nil {
		return 0, e.b.said(fmt.Errorf("vulkan: %w", err))
	}
	e.runs = ticket
	submit := e.submitParts
	if ticket == measuredRun && e.parts.limit > 0 {
		submit = e.submitTimed
	}
	if err := e.b.said(submit(index)); err != nil {
		return 0, err
	}
	return ticket, nil
}

func (e *Executable) submitParts(index int) error {
	s := &e.slots[index]
	if e.b.opts.Nice {
		s.pending, s.paced = len(e.parts.starts), e.b.pacer.hand(e, index)
		return nil
	}
	e.b.queueMu.Lock()
	defer e.b.queueMu.Unlock()
	for part := range e.parts.starts {
		if err := e.b.submit(e.commands.list[index*len(e.parts.starts)+part], s.fences[part]); err != nil {
			s.err = e.b.failed(err, func() string { return e.work(part, part+1) })
			return s.err
		}
		s.pending++
	}
	return nil
}

// copyIn puts what was fed since the slot's last run into the slot.
func (e *Executable) copyIn(s *slot) error {
	inputs := e.program.Inputs()
	if len(inputs) == 0 {
		return nil
	}
	if s.version == nil {
		s.version = make([]int, len(inputs))
	}
	changed := false
	for i, v := range inputs {
		if e.fed == nil || e.fed[i] == nil {
			return fmt.Errorf("vulkan: program %s: input %q was never fed", e.program.Name(), v.Name())
		}
		if s.version[i] != e.version[i] {
			copy(s.inputs.bytes()[e.inputOffset[i]:], e.fed[i])
			s.version[i] = e.version[i]
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return s.inputs.flush()
}

// finish waits for a slot's run.
func (e *Executable) finish(s *slot) error {
	e.paced(s)
	if s.pending == 0 {
		return s.err
	}
	done := s.pending
	s.pending = 0
	if err := e.b.wait(s.fences[:done]); err != nil {
		from := 0
		for from < done-1 && vk.GetFenceStatus(e.b.dev.Handle, s.fences[from]) == vk.Success {
			from++ // this part was done; the fault is behind it
		}
		s.err = e.b.failed(err, func() string { return e.work(from, done) })
		return s.err
	}
	index := int(s.run % numSlots)
	switch part, err := e.parts.skipped(index, done, s.run); {
	case err != nil:
		s.err = fmt.Errorf("vulkan: %w", err)
	case part >= 0:
		s.err = e.b.lose(errSkipped, e.work(part, part+1))
	}
	return s.err
}

// work names the nodes of parts from..to-1.
func (e *Executable) work(from, to int) string {
	nodes := e.program.Nodes()
	first, end := e.parts.starts[from], len(nodes)
	if to < len(e.parts.starts) {
		end = e.parts.starts[to]
	}
	s := "program " + e.program.Name()
	switch {
	case end == first:
		return s + ", which has no nodes"
	case end == first+1:
		return fmt.Sprintf("%s, node %d of %d: %s", s, first, len(nodes), nodes[first])
	}
	return fmt.Sprintf("%s, nodes %d to %d of %d: %s ... %s", s, first, end-1, len(nodes), nodes[first], nodes[end-1])
}

// Fetch waits for a run and copies one of its outputs.
func (e *Executable) Fetch(t backend.Ticket, output string, dst []byte) error {
	if err := e.usable(); err != nil {
		return err
	}
	switch {
	case t == 0 || t > e.runs:
		return fmt.Errorf("vulkan: program %s has no run %d", e.program.Name(), t)
	case t+numSlots <= e.runs:
		return backend.ErrStale
	}
	i := -1
	for k, o := range e.program.Outputs() {
		if o.Name == output {
			i = k
		}
	}
	if i < 0 {
		return fmt.Errorf("vulkan: program %s has no output %q", e.program.Name(), output)
	}
	if err := backend.CheckSize("output", output, len(dst), e.program.Outputs()[i].Value.Bytes()); err != nil {
		return err
	}
	s := &e.slots[t%numSlots]
	if err := e.finish(s); err != nil {
		return e.b.said(err)
	}
	if err := s.outputs.invalidate(); err != nil {
		return e.b.said(fmt.Errorf("vulkan: %w", err))
	}
	copy(dst, s.outputs.bytes()[e.outputOffset[i]:])
	return e.b.said(nil)
}

// DeviceBytes is the arena, the kernels' scratch memory, the tables of launches that stand for many, and the inputs where they have a place of their own on the
// device.
func (e *Executable) DeviceBytes() int64 {
	return e.made + int64(e.tables.size) + int64(e.inputs.size)
}

// Kernels names, for each node, the kernels that it runs.
func (e *Executable) Kernels() []string {
	names := make([]string, len(e.program.Nodes()))
	for _, l := range e.launches {
		name := cmp.Or(l.label, l.kernel)
		switch had := names[l.node]; {
		case had == "":
			names[l.node] = name
		case !strings.Contains(had, name):
			names[l.node] = had + ", " + name
		}
	}
	return names
}

// Submissions is the number of parts that a run is cut into.
func (e *Executable) Submissions() int { return len(e.parts.starts) }

// closeCommands frees what record made; nothing of it may be in flight.
func (e *Executable) closeCommands() {
	for i := range e.slots {
		for _, f := range e.slots[i].fences {
			vk.DestroyFence(e.b.dev.Handle, f, nil)
		}
		e.slots[i].fences = nil
	}
	e.commands.close()
	e.parts.closeQueries(e)
}

// Close waits for what runs and frees what the program has. The store stays.
func (e *Executable) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	for i := range e.slots {
		s := &e.slots[i]
		if told := s.err != nil || e.b.isLost(); s.pending > 0 {
			if err := e.finish(s); !told {
				errs = append(errs, err)
			}
		}
		s.inputs.free()
		s.outputs.free()
	}
	e.closeCommands()
	e.parts.close(e)
	if e.pool != vk.NullDescriptorPool {
		vk.DestroyDescriptorPool(e.b.dev.Handle, e.pool, nil)
	}
	e.store.leave(&e.store.arena, e.arena)
	e.tables.free()
	e.store.leave(&e.store.scratch, e.scratchSpace)
	e.inputs.free()
	e.b.disown(e.handle)
	return e.b.said(errors.Join(append(errs, e.store.use(-1))...))
}
