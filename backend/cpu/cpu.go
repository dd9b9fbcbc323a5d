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
	_ backend.Store       = (*store)(nil)
	_ backend.Executable  = (*executable)(nil)
	_ backend.Profiler    = (*executable)(nil)
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

// store keeps variables.
type store struct {
	b      *Backend
	vars   []graph.Var
	memory map[string][]float32

	mu     sync.Mutex
	closed bool
}

// NewStore makes room for variables, all zero.
func (b *Backend) NewStore(vars []graph.Var) (backend.Store, error) {
	s := &store{b: b, vars: vars, memory: make(map[string][]float32, len(vars))}
	for _, v := range vars {
		if _, ok := s.memory[v.Name]; ok {
			return nil, fmt.Errorf("cpu: the variable %q is there twice", v.Name)
		}
		s.memory[v.Name] = words(v.Bytes())
	}
	if err := b.after(s.touch); err != nil {
		return nil, err
	}
	return s, nil
}

// touch has each worker write first to about the part of the variables that the optimizer will give it, so that the system places those pages
// near it.
func (s *store) touch() {
	const chunk = 1 << 16
	var chunks [][]float32
	for _, v := range s.vars {
		for m := s.memory[v.Name]; len(m) > 0; m = m[min(chunk, len(m)):] {
			chunks = append(chunks, m[:min(chunk, len(m))])
		}
	}
	s.b.pool.For(len(chunks), func(_, i int) { clear(chunks[i]) })
}

// Vars lists the variables.
func (s *store) Vars() []graph.Var { return s.vars }

// DeviceBytes is the variables' size.
func (s *store) DeviceBytes() int64 {
	n := int64(0)
	for _, m := range s.memory {
		n += int64(4 * len(m))
	}
	return n
}

func (s *store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// access finds a variable's bytes and hands them to f once all earlier submissions have run.
func (s *store) access(name string, size int, f func(data []byte)) error {
	if s.isClosed() {
		return backend.ErrClosed
	}
	for _, v := range s.vars {
		if v.Name == name {
			if err := backend.CheckSize("variable", name, size, v.Bytes()); err != nil {
				return err
			}
			return s.b.after(func() { f(bytesOf(s.memory[name])[:size]) })
		}
	}
	return fmt.Errorf("cpu: the store has no variable %q", name)
}

// Read copies a variable to dst.
func (s *store) Read(name string, dst []byte) error {
	return s.access(name, len(dst), func(data []byte) { copy(dst, data) })
}

// Write copies src to a variable.
func (s *store) Write(name string, src []byte) error {
	return s.access(name, len(src), func(data []byte) { copy(data, src) })
}

// Close drops the variables.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
