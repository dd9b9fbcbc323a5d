//go:build cgo

package vulkan

import (
	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// recorder turns a program into the commands of one slot, part by part.
type recorder struct {
	e         *Executable
	slot      int
	pipelines map[pipelineKey]*pipeline
	sets      []vk.DescriptorSet // by launch
	apart     bool               // each node by itself: none of the launches that stand for several
	running   bool               // kernels were launched after the last barrier

	launch   int // next one
	commands []vkx.Command
	push     []byte

	bound     vk.Pipeline // what the command buffer has bound
	boundSet  vk.DescriptorSet
	boundWith vk.PipelineLayout
}

// part makes the commands of one submission. A barrier orders all that was submitted before it, whichever command buffer it is in: so the
// first part alone waits for the run before, and a cut needs no barrier of its own.
func (r *recorder) part(part int) {
	r.reset()
	nodes := len(r.e.program.Nodes())
	end := nodes
	if part+1 < len(r.e.parts.starts) {
		end = r.e.parts.starts[part+1]
	}
	queries := r.e.parts.queries[r.slot]
	if r.e.parts.timed() {
		r.add(vkx.ResetQueries(queries, uint32(2*part), 2))
		r.add(vkx.Timestamp(queries, uint32(2*part)))
	}
	if part == 0 {
		r.add(vkx.Barrier(anyWork, allReads))
		r.copyInputs()
	}
	for i := r.e.parts.starts[part]; i < end; i++ {
		if r.e.plan.Barrier(i) {
			r.wait()
		}
		r.node(i)
	}
	if end == nodes {
		r.copyOutputs()
	}
	r.mark(part)
	if r.e.parts.timed() {
		r.add(vkx.Timestamp(queries, uint32(2*part+1)))
	}
}

// reset starts a command buffer: none of what another one has bound is bound in it.
func (r *recorder) reset() {
	r.commands, r.push = nil, nil
	r.bound, r.boundSet, r.boundWith = nil, nil, nil
}

func (r *recorder) add(c vkx.Command) { r.commands = append(r.commands, c) }

// node adds the launches of node i, each after a barrier where it asks for one.
func (r *recorder) node(i int) {
	for ; r.launch < len(r.e.launches) && r.e.launches[r.launch].node == i; r.launch++ {
		l := &r.e.launches[r.launch]
		if l.covers > 0 && r.apart {
			continue
		}
		p := r.pipelines[l.key]
		if l.barrier {
			r.wait()
		}
		if r.bound != p.handle {
			r.add(vkx.BindPipeline(p.handle))
			r.bound = p.handle
		}
		if len(l.bind) > 0 && (r.boundSet != r.sets[r.launch] || r.boundWith != p.layout.pipeline) {
			r.add(vkx.BindSet(p.layout.pipeline, r.sets[r.launch]))
			r.boundSet, r.boundWith = r.sets[r.launch], p.layout.pipeline
		}
		if len(l.data) > 0 {
			r.add(vkx.Push(p.layout.pipeline, len(r.push), len(l.data)))
			r.push = append(r.push, l.data...)
		}
		r.add(vkx.Dispatch(l.groups[0], l.groups[1], l.groups[2]))
		r.running = true
		r.launch += l.covers
	}
}

// wait lets what comes see what the kernels before have written, if any run.
func (r *recorder) wait() {
	if r.running {
		r.add(vkx.Barrier(kernelWrites, kernelUses))
	}
	r.running = false
}

// copyInputs brings the slot's inputs to the device, if kernels do not read them where the host writes them.
func (r *recorder) copyInputs() {
	inputs := r.e.program.Inputs()
	if r.e.inPlace || len(inputs) == 0 {
		return
	}
	from := r.e.slots[r.slot].inputs.part(0, int(last(r.e.inputOffset)))
	to := r.e.inputs.part(0, int(from.Size))
	r.add(vkx.Copy(from.Buffer, from.Offset, to.Buffer, to.Offset, from.Size))
	r.add(vkx.Barrier(copyWrites, allReads))
}

// copyOutputs brings the outputs to where the host reads them, which the barrier after the mark lets it do.
func (r *recorder) copyOutputs() {
	outputs := r.e.program.Outputs()
	if len(outputs) == 0 {
		return
	}
	r.add(vkx.Barrier(anyWork, copyReads))
	for i, o := range outputs {
		from := r.e.place(o.Value, r.slot)
		to := r.e.slots[r.slot].outputs.part(int(r.e.outputOffset[i]), o.Value.Bytes())
		r.add(vkx.Copy(from.Buffer, from.Offset, to.Buffer, to.Offset, to.Size))
	}
}
