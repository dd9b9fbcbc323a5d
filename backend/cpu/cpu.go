package cpu

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Options says how the backend runs.
type Options struct {
	Threads int // workers; 0: DefaultThreads
}

// Backend runs programs on the processor.
type Backend struct {
	pool *pool
	jobs chan job
	quit chan struct{} // closed when the last job has run

	mu     sync.Mutex
	closed bool
}

// job is what the backend's goroutine runs: a submission, or a function.
type job struct {
	exec *executable
	slot int
	do   func()
}

var (
	_ backend.Backend     = (*Backend)(nil)
	_ backend.Planner     = (*Backend)(nil)
	_ backend.ArenaSharer = (*Backend)(nil)
	_ backend.PartStore   = (*store)(nil)
	_ backend.Executable  = (*executable)(nil)
	_ backend.Profiler    = (*executable)(nil)
	_ backend.Tracer      = (*executable)(nil)
	_ backend.MemoryStats = (*executable)(nil)
	_ backend.MemoryStats = (*store)(nil)
)

// New starts the workers.
func New(o Options) (*Backend, error) {
	if o.Threads < 0 || o.Threads > MaxThreads {
		return nil, fmt.Errorf("cpu: %d threads: use 1 to %d, or 0 for one a core", o.Threads, MaxThreads)
	}
	if o.Threads == 0 {
		o.Threads = DefaultThreads()
	}
	b := &Backend{pool: newPool(o.Threads), jobs: make(chan job, 64), quit: make(chan struct{})}
	go func() {
		for j := range b.jobs {
			if j.do != nil {
				j.do()
			} else {
				j.exec.run(j.slot)
			}
		}
		close(b.quit)
	}()
	return b, nil
}

// Info names the processor, the vector instructions that are used, and the number of workers.
func (b *Backend) Info() backend.Info {
	return backend.Info{
		Backend: "cpu", Name: describe(b.pool.workers), Vendor: "Go", Driver: runtime.Version(), Kind: backend.CPU,
		Memory: hostMemory(),
	}
}

// PlanOptions lets outputs take the place of inputs: kernels read a row of an input that the operator table allows this for before they
// write that row of the output.
func (b *Backend) PlanOptions() graph.PlanOptions { return graph.PlanOptions{InPlace: true} }

// SharedBytes is the size of arenas with what is behind them. Only one program runs at a time, so that those over one store share an arena.
func (b *Backend) SharedBytes(programs ...*graph.Program) int64 {
	sizes := make([]int64, len(programs))
	for i, p := range programs {
		sizes[i] = int64(backend.Plan(b, p).ArenaBytes()) + b.ScratchBytes(p)
	}
	return backend.Turns(sizes)
}

// Close stops the workers. Closing twice is fine.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	close(b.jobs)
	b.mu.Unlock()
	<-b.quit
	b.pool.close()
	return nil
}

func (b *Backend) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// enqueue hands a job over; jobs run in this order.
func (b *Backend) enqueue(j job) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	b.jobs <- j
	return nil
}

// after runs f when everything submitted before has run, and waits for it.
func (b *Backend) after(f func()) error {
	done := make(chan struct{})
	if err := b.enqueue(job{do: func() { f(); close(done) }}); err != nil {
		return err
	}
	<-done
	return nil
}
