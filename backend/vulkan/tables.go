//go:build cgo

package vulkan

import (
	"encoding/binary"
	"fmt"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

// merge adds the launches that stand for several, and brings their tables to the device. Everything must have its place.
func (e *Executable) merge() error {
	buffers := map[vk.Buffer]uint64{}
	place := func(v *graph.Value) interval {
		r := e.place(v, 0) // not an input: the same in each slot
		if _, ok := buffers[r.Buffer]; !ok {
			buffers[r.Buffer] = uint64(len(buffers))
		}
		return interval{buffers[r.Buffer], int64(r.Offset), int64(r.Offset) + int64(r.Size)}
	}
	launches, err := combine(e.b.caps, e.program, e.plan.Barrier, e.launches, place, e.b.lookup)
	if err != nil {
		return fmt.Errorf("vulkan: program %s: %w", e.program.Name(), err)
	}
	e.launches = launches
	size := e.b.placeTables(launches)
	if size == 0 {
		return nil
	}
	what := "the tables of program " + e.program.Name()
	if e.tables, err = e.b.memory.allocate(what, onDevice, size); err != nil {
		return err
	}
	data := make([]byte, size)
	for _, l := range launches {
		for i, w := range l.table {
			binary.NativeEndian.PutUint32(data[l.tableAt+int64(4*i):], w)
		}
	}
	if err := e.b.transfer.write(e.tables.part(0, len(data)), data); err != nil {
		return e.b.failed(err, func() string { return "writing " + what })
	}
	return nil
}

// placeTables puts the tables of launches one after another, and gives the end.
func (b *Backend) placeTables(launches []launch) (size int64) {
	for i, l := range launches {
		if len(l.table) > 0 {
			launches[i].tableAt = size
			size += int64(b.memory.round(uint64(4 * len(l.table))))
		}
	}
	return size
}

// tableBytes is the size of a program's tables before anything has its place, 0 where Compile gives an error. Places that lie far apart may make a few launches more,
// each with some hundred bytes.
func (b *Backend) tableBytes(p *graph.Program, plan *graph.Plan, launches []launch) int64 {
	all, err := combine(b.caps, p, plan.Barrier, launches, anywhere, b.lookup)
	if err != nil {
		return 0
	}
	return b.placeTables(all)
}

// bindMerged gives a launch over many tensors its windows and its table.
func (e *Executable) bindMerged(ranges []vkx.BufferRange, l *launch) {
	if len(l.table) == 0 {
		return
	}
	for i, values := range l.windows {
		for k, v := range values {
			r := e.place(v, 0)
			if k > 0 {
				w := ranges[i]
				from, to := min(w.Offset, r.Offset), max(w.Offset+w.Size, r.Offset+r.Size)
				r.Offset, r.Size = from, to-from
			}
			ranges[i] = r
		}
	}
	ranges[len(ranges)-1] = e.tables.part(int(l.tableAt), 4*len(l.table))
}
