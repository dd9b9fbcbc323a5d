//go:build cgo

package vulkan

import (
	"sync"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// transferBytes is the size of each of the two staging buffers through which variables are read and written.
const transferBytes = floorAllocBytes

// Scopes of barriers: who must be done, and who may then begin.
var (
	anyWork  = vkx.Scope{Stages: stageCompute | stageTransfer, Access: accessShaderWrite | accessTransferWrite}
	allReads = vkx.Scope{
		Stages: stageCompute | stageTransfer,
		Access: accessShaderRead | accessShaderWrite | accessTransferRead | accessTransferWrite,
	}
	kernelWrites  = vkx.Scope{Stages: stageCompute, Access: accessShaderWrite}
	kernelUses    = vkx.Scope{Stages: stageCompute, Access: accessShaderRead | accessShaderWrite}
	copyWrites    = vkx.Scope{Stages: stageTransfer, Access: accessTransferWrite}
	copyReads     = vkx.Scope{Stages: stageTransfer, Access: accessTransferRead}
	copyBoth      = vkx.Scope{Stages: stageTransfer, Access: accessTransferRead | accessTransferWrite}
	hostReads     = vkx.Scope{Stages: vk.PipelineStageHostBit, Access: vk.AccessHostReadBit}
	hostReadWrite = vkx.Scope{Stages: vk.PipelineStageHostBit, Access: vk.AccessHostReadBit | vk.AccessHostWriteBit}
)

const (
	stageCompute        = vk.PipelineStageComputeShaderBit
	stageTransfer       = vk.PipelineStageTransferBit
	accessShaderRead    = vk.AccessShaderReadBit
	accessShaderWrite   = vk.AccessShaderWriteBit
	accessTransferRead  = vk.AccessTransferReadBit
	accessTransferWrite = vk.AccessTransferWriteBit
)

// transfer moves variables between the host and the device, in order with everything submitted. What it needs is
// made at its first use.
type transfer struct {
	b        *Backend
	mu       sync.Mutex
	commands *commandBuffers // two
	fences   [2]vk.Fence
	pending  [2]bool
	staging  [numClasses][2]allocation // upload and readback
}

func (t *transfer) start() error {
	if t.commands != nil {
		return nil
	}
	commands, err := t.b.newCommandBuffers(2)
	if err != nil {
		return err
	}
	t.commands = commands
	for i := range t.fences {
		if t.fences[i], err = t.b.newFence(); err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) stagingBuffers(class memoryClass) error {
	for i := range t.staging[class] {
		if t.staging[class][i].block == nil {
			a, err := t.b.memory.allocate("staging", class, transferBytes)
			if err != nil {
				return err
			}
			t.staging[class][i] = a
		}
	}
	return nil
}

// run records commands into half i and submits them.
func (t *transfer) run(i int, commands []vkx.Command) error {
	if err := t.commands.record(i, commands, nil); err != nil {
		return err
	}
	err := t.b.submitNow(t.commands.list[i], t.fences[i])
	if err == nil {
		t.pending[i] = true
	}
	return err
}

func (t *transfer) finish(i int) error {
	if !t.pending[i] {
		return nil
	}
	t.pending[i] = false
	return t.b.wait(t.fences[i : i+1])
}

// finishAll waits for both halves; the first error counts.
func (t *transfer) finishAll(err error) error {
	for i := range t.pending {
		if e := t.finish(i); err == nil {
			err = e
		}
	}
	return err
}

// fill writes zeros to ranges of whole words.
func (t *transfer) fill(ranges []vkx.BufferRange) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(); err != nil {
		return err
	}
	commands := []vkx.Command{vkx.Barrier(anyWork, allReads)}
	for _, r := range ranges {
		commands = append(commands, vkx.Fill(r.Buffer, r.Offset, r.Size, 0))
	}
	commands = append(commands, vkx.Barrier(copyWrites, hostReadWrite))
	return t.finishAll(t.run(0, commands))
}

// settle waits until all that was submitted is done, and its writes can be seen by the host.
func (t *transfer) settle() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(); err != nil {
		return err
	}
	return t.finishAll(t.run(0, []vkx.Command{vkx.Barrier(anyWork, hostReadWrite)}))
}

// write copies src to a range, through two staging buffers that take turns.
func (t *transfer) write(dst vkx.BufferRange, src []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(); err != nil {
		return err
	}
	if err := t.stagingBuffers(upload); err != nil {
		return err
	}
	var err error
	for at, i := 0, 0; at < len(src) && err == nil; at, i = at+transferBytes, 1-i {
		err = t.writePart(i, dst, at, src[at:min(at+transferBytes, len(src))])
	}
	return t.finishAll(err)
}

func (t *transfer) writePart(i int, dst vkx.BufferRange, at int, src []byte) error {
	if err := t.finish(i); err != nil {
		return err
	}
	s := t.staging[upload][i]
	copy(s.bytes(), src)
	if err := s.flush(); err != nil {
		return err
	}
	from := s.part(0, len(src))
	return t.run(i, []vkx.Command{
		vkx.Barrier(anyWork, allReads),
		vkx.Copy(from.Buffer, from.Offset, dst.Buffer, dst.Offset+uint64(at), from.Size),
	})
}

// read copies a range to dst; the next part is on its way while one is copied out.
func (t *transfer) read(dst []byte, src vkx.BufferRange) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(); err != nil {
		return err
	}
	if err := t.stagingBuffers(readback); err != nil {
		return err
	}
	var parts [][]byte
	for at := 0; at < len(dst); at += transferBytes {
		parts = append(parts, dst[at:min(at+transferBytes, len(dst))])
	}
	var err error
	for k := 0; k <= len(parts) && err == nil; k++ {
		if k < len(parts) {
			to := t.staging[readback][k%2].part(0, len(parts[k]))
			err = t.run(k%2, []vkx.Command{
				vkx.Barrier(anyWork, allReads),
				vkx.Copy(src.Buffer, src.Offset+uint64(k)*transferBytes, to.Buffer, to.Offset, to.Size),
				vkx.Barrier(copyWrites, hostReads),
			})
		}
		if k > 0 && err == nil {
			err = t.readPart(1-k%2, parts[k-1])
		}
	}
	return t.finishAll(err)
}

func (t *transfer) readPart(i int, dst []byte) error {
	if err := t.finish(i); err != nil {
		return err
	}
	s := t.staging[readback][i]
	if err := s.invalidate(); err != nil {
		return err
	}
	copy(dst, s.bytes())
	return nil
}

func (t *transfer) close() {
	t.commands.close()
	for _, f := range t.fences {
		vk.DestroyFence(t.b.dev.Handle, f, nil) // a null fence is allowed
	}
	for class := range t.staging {
		for i := range t.staging[class] {
			t.staging[class][i].free()
		}
	}
	*t = transfer{b: t.b}
}
