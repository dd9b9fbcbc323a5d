//go:build cgo

package vulkan

import (
	"sync"
	"time"

	vk "github.com/vulkan-go/vulkan"
)

// pause is how long a nice backend leaves the device alone between two submissions: what a display has waiting then runs before the next one.
const pause = time.Millisecond

// pacer submits runs for a backend that is nice: each part when the one before it is done, and after a pause. It does so in a goroutine, which is
// there as long as there is work, so that Submit does not wait.
type pacer struct {
	b       *Backend
	mu      sync.Mutex
	running bool
	queue   []*pacedRun
	last    *pacedRun
}

// pacedRun is a run that a pacer has got. What is below done is for whoever has seen it closed.
type pacedRun struct {
	e    *Executable
	slot int
	done chan struct{}

	submitted int             // parts
	submitErr error           // of the part after those
	waitErr   error           // of the last of those
	took      []time.Duration // of each part, as the host saw it
}

// hand gives the pacer a run, after all that it has.
func (p *pacer) hand(e *Executable, slot int) *pacedRun {
	r := &pacedRun{e: e, slot: slot, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue, p.last = append(p.queue, r), r
	if !p.running {
		p.running = true
		go p.work()
	}
	return r
}

func (p *pacer) work() {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		r := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()
		r.run(p.b)
		close(r.done)
		time.Sleep(pause)
	}
}

// run submits the parts. No other submission comes between them: only the first waits for what was before it.
func (r *pacedRun) run(b *Backend) {
	b.queueMu.Lock()
	defer b.queueMu.Unlock()
	parts := len(r.e.parts.starts)
	for part := range parts {
		if part > 0 {
			time.Sleep(pause)
		}
		fence := r.e.slots[r.slot].fences[part]
		began := time.Now()
		if r.submitErr = b.submit(r.e.commands.list[r.slot*parts+part], fence); r.submitErr != nil {
			return
		}
		r.submitted++
		if r.waitErr = b.await([]vk.Fence{fence}); r.waitErr != nil {
			return
		}
		r.took = append(r.took, time.Since(began))
	}
}

// drain waits until all that the pacer has got is done.
func (p *pacer) drain() {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	if last != nil {
		<-last.done
	}
}

// submitNow submits one command buffer after all runs that were submitted before.
func (b *Backend) submitNow(cb vk.CommandBuffer, fence vk.Fence) error {
	b.pacer.drain()
	b.queueMu.Lock()
	defer b.queueMu.Unlock()
	return b.submit(cb, fence)
}

// paced waits until the pacer is done with a slot's run, and takes over what came of it.
func (e *Executable) paced(s *slot) {
	r := s.paced
	if r == nil {
		return
	}
	<-r.done
	s.paced, s.pending = nil, r.submitted
	switch at := r.submitted; {
	case r.submitErr != nil:
		s.err = e.b.failed(r.submitErr, func() string { return e.work(at, at+1) })
	case r.waitErr != nil:
		s.err, s.pending = e.b.failed(r.waitErr, func() string { return e.work(at-1, at) }), 0
	case s.run == measuredRun && !e.parts.timed():
		e.parts.took = r.took
	}
}
