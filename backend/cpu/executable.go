package cpu

import (
	"fmt"
	"sync"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// executable is a compiled program.
type executable struct {
	b       *Backend
	prog    *graph.Program
	kernels []kernel // one a node
	stages  []stage
	at      []place // by worker: the node that it runs
	outputs []output
	bytes   int64
	store   *store
	arena   *block

	inputs map[string]*input
	slots  [backend.MaxInFlight]slot
	last   backend.Ticket // of the newest Submit

	mu     sync.Mutex
	ended  sync.Cond
	runs   backend.Ticket // how many have ended
	closed bool
}

// input is an input of the program: what the host fed last, and what the kernels read.
type input struct {
	fed    []byte
	isFed  bool
	memory []float32
}

// output is an output of the program and where kernels leave it.
type output struct {
	name   string
	memory []byte
}

// slot holds the inputs and outputs of a run that may be unfinished.
type slot struct {
	inputs  map[string][]byte
	outputs map[string][]byte
	err     error
}

// Compile turns nodes into closures.
func (b *Backend) Compile(p *graph.Program, st backend.Store) (_ backend.Executable, err error) {
	s, ok := st.(*store)
	if !ok || s.b != b {
		return nil, fmt.Errorf("cpu: program %s: the store is of another backend", p.Name())
	}
	if s.isClosed() || b.isClosed() {
		return nil, backend.ErrClosed
	}
	if err = backend.CheckVars(p, s.vars); err != nil {
		return nil, err
	}
	plan := backend.Plan(b, p)
	arena, bytes, err := s.open(plan.ArenaBytes() + int(b.ScratchBytes(p)))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.release(arena)
		}
	}()
	c := &compiler{
		pool: b.pool, plan: plan, arena: arena.words, inputs: map[*graph.Value][]float32{}, store: s,
		scratch: newScratch(b.pool.workers), ropes: map[ropeKey][]float32{},
	}
	e := &executable{b: b, prog: p, inputs: map[string]*input{}, bytes: int64(bytes), store: s, arena: arena}
	e.ended.L = &e.mu
	for _, v := range p.Inputs() {
		m := words(v.Bytes())
		c.inputs[v] = m
		e.inputs[v.Name()] = &input{fed: make([]byte, v.Bytes()), memory: m}
		e.bytes += int64(v.Bytes())
	}
	for i := range e.slots {
		e.slots[i] = slot{inputs: map[string][]byte{}, outputs: map[string][]byte{}}
		for _, v := range p.Inputs() {
			e.slots[i].inputs[v.Name()] = make([]byte, v.Bytes())
		}
		for _, o := range p.Outputs() {
			e.slots[i].outputs[o.Name] = make([]byte, o.Value.Bytes())
		}
	}
	for _, n := range p.Nodes() {
		if kernels[n.Op] == nil {
			return nil, &backend.UnsupportedError{Device: "cpu", Node: n.String(), Reason: "no kernel"}
		}
		e.kernels = append(e.kernels, c.compile(n))
	}
	e.at = make([]place, b.pool.workers)
	e.stage(plan)
	for _, o := range p.Outputs() {
		e.outputs = append(e.outputs, output{o.Name, bytesOf(c.storage(o.Value))[:o.Value.Bytes()]})
	}
	return e, nil
}

// DeviceBytes is the size of the inputs, and of the arena and what is behind it unless another executable over the store had one.
func (e *executable) DeviceBytes() int64 { return e.bytes }

func (e *executable) check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return backend.ErrClosed
	}
	return nil
}

// Feed copies src; kernels see it from the next Submit on.
func (e *executable) Feed(name string, src []byte) error {
	if err := e.check(); err != nil {
		return err
	}
	in := e.inputs[name]
	if in == nil {
		return fmt.Errorf("cpu: program %s has no input %q", e.prog.Name(), name)
	}
	if err := backend.CheckSize("input", name, len(src), len(in.fed)); err != nil {
		return err
	}
	copy(in.fed, src)
	in.isFed = true
	return nil
}

// Submit queues a run.
func (e *executable) Submit() (backend.Ticket, error) {
	if err := e.check(); err != nil {
		return 0, err
	}
	for _, v := range e.prog.Inputs() {
		if !e.inputs[v.Name()].isFed {
			return 0, fmt.Errorf("cpu: program %s: the input %q was never fed", e.prog.Name(), v.Name())
		}
	}
	e.mu.Lock()
	for !e.closed && e.last-e.runs >= backend.MaxInFlight {
		e.ended.Wait()
	}
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return 0, backend.ErrClosed
	}
	t := e.last + 1
	i := int(t % backend.MaxInFlight)
	for name, in := range e.inputs {
		copy(e.slots[i].inputs[name], in.fed)
	}
	if err := e.b.enqueue(job{exec: e, slot: i}); err != nil {
		return 0, err
	}
	e.last = t
	return t, nil
}

// run is a submission, on the backend's goroutine.
func (e *executable) run(i int) {
	s := &e.slots[i]
	s.err = e.runNodes(s)
	e.mu.Lock()
	e.runs++
	e.ended.Broadcast()
	e.mu.Unlock()
}

func (e *executable) runNodes(s *slot) error {
	for name, data := range s.inputs {
		copy(bytesOf(e.inputs[name].memory), data)
	}
	if err := e.runKernels(nil); err != nil {
		return err
	}
	for _, o := range e.outputs {
		copy(s.outputs[o.name], o.memory)
	}
	return nil
}

// runKernels runs every node; a panic is an error that names its node. spans gets each node's time, one node running at a time, unless it is
// nil.
func (e *executable) runKernels(spans []backend.Span) (err error) {
	defer func() {
		if r := recover(); r != nil {
			worker := 0
			if t, ok := r.(taskPanic); ok {
				worker, r = t.worker, t.value
			}
			err = fmt.Errorf("cpu: program %s: %s: %v", e.prog.Name(), e.prog.Nodes()[e.at[worker].node], r)
		}
	}()
	if spans == nil {
		for i := range e.stages {
			e.runStage(&e.stages[i])
		}
		return nil
	}
	zero := time.Now()
	for i, k := range e.kernels {
		start := time.Now()
		e.runStage(e.single(i, k))
		spans[i] = backend.Span{Start: start.Sub(zero).Seconds(), Seconds: time.Since(start).Seconds()}
	}
	return nil
}

// Fetch waits for a run and copies an output.
func (e *executable) Fetch(t backend.Ticket, name string, dst []byte) error {
	if err := e.check(); err != nil {
		return err
	}
	if t == 0 || t > e.last {
		return fmt.Errorf("cpu: program %s: ticket %d was never given", e.prog.Name(), t)
	}
	if t+backend.MaxInFlight <= e.last {
		return backend.ErrStale
	}
	s := &e.slots[t%backend.MaxInFlight]
	data, ok := s.outputs[name]
	if !ok {
		return fmt.Errorf("cpu: program %s has no output %q", e.prog.Name(), name)
	}
	if err := backend.CheckSize("output", name, len(dst), len(data)); err != nil {
		return err
	}
	e.wait(t)
	if s.err != nil {
		return s.err
	}
	copy(dst, data)
	return nil
}

// wait returns when run t has ended.
func (e *executable) wait(t backend.Ticket) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.runs < t {
		e.ended.Wait()
	}
}

// Profile is Trace without the starts.
func (e *executable) Profile() ([]float64, error) {
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

// Trace runs the program once on the inputs that were fed last and times each node.
func (e *executable) Trace() ([]backend.Span, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	for _, v := range e.prog.Inputs() {
		if !e.inputs[v.Name()].isFed {
			return nil, fmt.Errorf("cpu: program %s: the input %q was never fed", e.prog.Name(), v.Name())
		}
	}
	spans := make([]backend.Span, len(e.kernels))
	var failed error
	err := e.b.after(func() {
		for _, in := range e.inputs {
			copy(bytesOf(in.memory), in.fed)
		}
		failed = e.runKernels(spans)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return spans, nil
}

// Close waits for what runs.
func (e *executable) Close() error {
	e.wait(e.last)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		e.store.release(e.arena)
	}
	return nil
}
