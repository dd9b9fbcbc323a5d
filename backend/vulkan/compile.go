//go:build cgo

package vulkan

import (
	"errors"
	"fmt"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

// Compile plans a program, gives every tensor its place, builds the pipelines that are new, and records the command buffers of both
// slots. What does not fit is an error before anything is allocated; what the device has no kernel for is an UnsupportedError for each
// such node.
func (b *Backend) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	caps, err := b.choose(p)
	if err != nil {
		return nil, err
	}
	e, err := b.compile(p, s, caps, b.lower)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// choose settles which kernels a program gets: the tuner measures, and all that is chosen is tested. They are those that the program gets by the caps that
// come back.
func (b *Backend) choose(p *graph.Program) (*deviceCaps, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	if err := b.tuner.prepare(p); err != nil {
		return nil, err
	}
	return b.prove(p)
}

// capsNow is what lowerings may choose by: a copy, since other programs may find a kernel broken at the same time.
func (b *Backend) capsNow() *deviceCaps {
	caps := *b.caps
	b.mu.Lock()
	defer b.mu.Unlock()
	caps.broken = b.broken
	return &caps
}

func (b *Backend) compile(p *graph.Program, s backend.Store, caps *deviceCaps, lower lowerFunc) (*Executable, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	store, ok := s.(*Store)
	if !ok || store.b != b {
		return nil, fmt.Errorf("vulkan: program %s: the store is of another backend", p.Name())
	}
	if err := backend.CheckVars(p, store.vars); err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	launches, err := lowerProgram(caps, p, lower, b.lookup)
	if err != nil {
		return nil, err
	}
	if err := store.use(1); err != nil {
		return nil, err
	}
	e := &Executable{b: b, store: store, program: p, plan: backend.Plan(b, p), launches: launches}
	e.scratch = placeScratch(e.plan, launches, int64(b.memory.largest))
	e.handle = b.adopt(e.Close)
	if err := e.build(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if err := b.said(b.saveCache(false)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

var _ backend.Scratcher = (*Backend)(nil)

// ScratchBytes is what the kernels of a program need beside its arena, with the tables of launches that stand for many; 0 for one that Compile refuses. It depends
// on the kernels, so that those are chosen now, with Options.Tuning.
func (b *Backend) ScratchBytes(p *graph.Program) int64 {
	caps, err := b.choose(p)
	if err != nil {
		return 0 // Compile tells
	}
	scratch, tables := b.scratchBytes(p, caps, b.lower)
	return scratch + tables
}

// scratchBytes is the scratch memory, which executables over a store share, and the tables, which they do not.
func (b *Backend) scratchBytes(p *graph.Program, caps *deviceCaps, lower lowerFunc) (shared, tables int64) {
	launches, err := lowerProgram(caps, p, lower, b.lookup)
	if err != nil {
		return 0, 0
	}
	plan := backend.Plan(b, p)
	return placeScratch(plan, launches, int64(b.memory.largest)).bytes, b.tableBytes(p, plan, launches)
}

func (e *Executable) build() error {
	if err := e.allocate(); err != nil {
		return err
	}
	if err := e.merge(); err != nil {
		return err
	}
	pipelines, err := e.pipelines()
	if err != nil {
		return err
	}
	if err := e.makeSets(pipelines); err != nil {
		return fmt.Errorf("vulkan: program %s: %w", e.program.Name(), err)
	}
	return e.record()
}

func (e *Executable) pipelines() (map[pipelineKey]*pipeline, error) {
	keys := make([]pipelineKey, len(e.launches))
	for i, l := range e.launches {
		keys[i] = l.key
	}
	return e.b.pipelines.get(keys)
}

// record makes the commands of both slots, and what they need.
func (e *Executable) record() error {
	pipelines, err := e.pipelines()
	if err == nil {
		err = e.recordSlots(pipelines)
	}
	if err != nil {
		return fmt.Errorf("vulkan: program %s: %w", e.program.Name(), err)
	}
	return nil
}

// allocate compares what the program needs with what there is, and then takes it.
func (e *Executable) allocate() error {
	name := e.program.Name()
	m := e.b.memory
	e.inPlace = e.b.physical.Unified
	e.inputOffset = offsets(m, e.program.Inputs(), func(v *graph.Value) int { return v.Bytes() })
	e.outputOffset = offsets(m, e.program.Outputs(), func(o graph.Output) int { return o.Value.Bytes() })
	inputs, outputs := last(e.inputOffset), last(e.outputOffset)

	arena := int64(e.plan.ArenaBytes())
	device := e.store.missing(arena, e.scratch.bytes) + e.b.tableBytes(e.program, e.plan, e.launches)
	if e.inPlace { // the slots are in the same memory
		device += numSlots * (inputs + outputs)
	} else {
		device += inputs
	}
	if err := m.reserve("program "+name, onDevice, device); err != nil {
		return err
	}
	var err error
	take := func(to *allocation, what string, class memoryClass, size int64) {
		if err == nil && size > 0 {
			*to, err = m.allocate("the "+what+" of program "+name, class, size)
		}
	}
	if err := e.checkLargest(); err != nil {
		return err
	}
	join := func(to **sharedSpace, shared **sharedSpace, what string, size int64) {
		if err != nil {
			return
		}
		var made int64
		*to, made, err = e.store.join(shared, size, func() (space, error) { return m.pieces("the "+what+" of program "+name, size) })
		e.made += made
	}
	join(&e.arena, &e.store.arena, "arena", arena)
	join(&e.scratchSpace, &e.store.scratch, "scratch memory", e.scratch.bytes)
	if !e.inPlace {
		take(&e.inputs, "inputs", onDevice, inputs)
	}
	for i := range e.slots {
		take(&e.slots[i].inputs, "input slots", upload, inputs)
		take(&e.slots[i].outputs, "output slots", readback, outputs)
	}
	if err != nil {
		return err
	}
	return e.parts.plan(e)
}

// space is memory in as many allocations as it takes, of segment bytes each but the last.
type space struct {
	parts   []allocation
	segment int
}

// pieces allocates a space.
func (m *memoryPool) pieces(what string, size int64) (space, error) {
	s := space{segment: int(m.largest)}
	for ; size > 0; size -= int64(m.largest) {
		part, err := m.allocate(what, onDevice, min(size, int64(m.largest)))
		if err != nil {
			s.free()
			return space{}, err
		}
		s.parts = append(s.parts, part)
	}
	return s, nil
}

// part is a range that lies in one of the allocations.
func (s space) part(offset, n int) vkx.BufferRange {
	return s.parts[offset/s.segment].part(offset%s.segment, n)
}

func (s space) bytes() (n int64) {
	for _, p := range s.parts {
		n += int64(p.size)
	}
	return n
}

func (s *space) free() {
	for i := range s.parts {
		s.parts[i].free()
	}
	s.parts = nil
}

var _ backend.Planner = (*Backend)(nil)

// PlanOptions let the arena consist of several allocations where one would be too large.
func (b *Backend) PlanOptions() graph.PlanOptions {
	return graph.PlanOptions{Segment: int(min(b.memory.largest, 1<<62/graph.ArenaAlign*graph.ArenaAlign))}
}

// checkLargest refuses a temporary that no allocation can hold.
func (e *Executable) checkLargest() error {
	for _, v := range e.program.Values() {
		if size := uint64(storageBytes(v.Bytes())); v.Kind() == graph.KindTemp && size > e.b.memory.largest {
			return &backend.UnsupportedError{
				Device: e.b.caps.name, Node: "program " + e.program.Name(),
				Reason: fmt.Sprintf("tensor %q has %d bytes, one allocation at most %d (maxMemoryAllocationSize): use a smaller batch, sequence, or vocabulary",
					v.Name(), size, e.b.memory.largest),
			}
		}
	}
	return nil
}

// offsets places tensors one after another; the last entry is the end.
func offsets[T any](m *memoryPool, list []T, bytes func(T) int) []int64 {
	at := make([]int64, len(list)+1)
	for i, v := range list {
		at[i+1] = at[i] + int64(m.round(uint64(storageBytes(bytes(v)))))
	}
	return at
}

func last(at []int64) int64 { return at[len(at)-1] }

// place gives where a value lives, as the kernels and copies of a slot see it.
func (e *Executable) place(v *graph.Value, slot int) vkx.BufferRange {
	size := storageBytes(v.Bytes())
	base, offset := v.Base()
	if at, ok := e.scratch.offset[base]; ok {
		return e.scratchSpace.part(int(at)+offset, size)
	}
	switch v.Kind() {
	case graph.KindVar:
		return e.store.places[base.Name()].a.part(offset, size)
	case graph.KindInput:
		from := e.inputs
		if e.inPlace {
			from = e.slots[slot].inputs
		}
		return from.part(int(e.inputOffset[e.inputIndex(base)])+offset, size)
	default:
		return e.arena.part(e.plan.Offset(v), size)
	}
}

func (e *Executable) inputIndex(v *graph.Value) int {
	for i, in := range e.program.Inputs() {
		if in == v {
			return i
		}
	}
	panic("vulkan: not an input of the program")
}

// recordSlots makes the command buffers of both slots, and their fences.
func (e *Executable) recordSlots(pipelines map[pipelineKey]*pipeline) error {
	starts := e.parts.starts
	if err := e.parts.makeQueries(e); err != nil {
		return err
	}
	var err error
	e.commands, err = e.b.newCommandBuffers(len(e.slots) * len(starts))
	if err != nil {
		return err
	}
	for slot := range e.slots {
		r := recorder{e: e, slot: slot, pipelines: pipelines, sets: e.sets[slot]}
		for part := range starts {
			r.part(part)
			if err := e.commands.record(slot*len(starts)+part, r.commands, r.push); err != nil {
				return err
			}
			fence, err := e.b.newFence()
			if err != nil {
				return err
			}
			e.slots[slot].fences = append(e.slots[slot].fences, fence)
		}
	}
	return nil
}

// makeSets gives each launch its descriptor set, by slot. Launches that bind the same ranges share one.
func (e *Executable) makeSets(pipelines map[pipelineKey]*pipeline) error {
	dummy, err := e.b.dummyBuffer()
	if err != nil {
		return err
	}
	var layouts []vk.DescriptorSetLayout
	var writes []vkx.SetWrite
	buffers := 0
	index := map[string]int{}
	var which [numSlots][]int
	for slot := range which {
		absent := 0
		for _, l := range e.launches {
			ranges := make([]vkx.BufferRange, len(l.bind))
			e.bindMerged(ranges, &l)
			for i, v := range l.bind {
				if ranges[i].Size > 0 {
					continue
				}
				if v != nil {
					ranges[i] = e.place(v, slot)
					continue
				}
				ranges[i] = dummy.part(absent%dummyCount*dummyBytes, dummyBytes)
				absent++
			}
			key := fmt.Sprint(ranges)
			at, ok := index[key]
			if !ok {
				at = len(layouts)
				index[key] = at
				layouts = append(layouts, pipelines[l.key].layout.set)
				writes = append(writes, vkx.SetWrite{Buffers: ranges})
				buffers += len(ranges)
			}
			which[slot] = append(which[slot], at)
		}
	}
	if buffers == 0 {
		return nil
	}
	if e.pool, err = e.b.dev.NewDescriptorPool(len(layouts), buffers); err != nil {
		return err
	}
	made, err := e.b.dev.AllocateSets(e.pool, layouts)
	if err != nil {
		return err
	}
	for i := range writes {
		writes[i].Set = made[i]
	}
	for slot := range which {
		for _, at := range which[slot] {
			e.sets[slot] = append(e.sets[slot], made[at])
		}
	}
	return e.b.dev.UpdateSets(writes)
}
