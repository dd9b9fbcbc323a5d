package reference

import (
	"fmt"
	"slices"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Backend is a device without hardware: it runs programs on a Machine, synchronously, and rounds what each node writes to its
// format. It is more accurate than any float32 device, and slow.
type Backend struct {
	// Hook is given to the machine of every program compiled afterwards; see Machine.Hook. Rounding comes after it.
	Hook func(n *graph.Node, in, out [][]float64, run Kernel)

	mu sync.Mutex // one submission, read or write at a time
}

var (
	_ backend.Backend    = (*Backend)(nil)
	_ backend.Store      = (*store)(nil)
	_ backend.Executable = (*executable)(nil)
)

// NewBackend returns the device.
func NewBackend() *Backend { return &Backend{} }

// Info describes it.
func (b *Backend) Info() backend.Info {
	return backend.Info{Backend: "reference", Name: "float64 interpreter, results rounded", Kind: backend.CPU}
}

// Close does nothing.
func (b *Backend) Close() error { return nil }

// NewStore makes room for variables.
func (b *Backend) NewStore(vars []graph.Var) (backend.Store, error) {
	s := &store{b: b, vars: slices.Clone(vars), byName: map[string]graph.Var{}, data: Vars{}}
	for _, v := range vars {
		if _, ok := s.data[v.Name]; ok {
			return nil, fmt.Errorf("reference: two variables are named %q", v.Name)
		}
		s.byName[v.Name] = v
		s.data[v.Name] = make([]float64, v.Elems())
	}
	return s, nil
}

type store struct {
	b      *Backend
	vars   []graph.Var
	byName map[string]graph.Var
	data   Vars
	closed bool
}

func (s *store) Vars() []graph.Var { return s.vars }

// variable checks an access of size bytes.
func (s *store) variable(name string, size int) (graph.Var, error) {
	if s.closed {
		return graph.Var{}, backend.ErrClosed
	}
	v, ok := s.byName[name]
	if !ok {
		return v, fmt.Errorf("reference: the store has no variable %q", name)
	}
	return v, backend.CheckSize("variable", name, size, v.Bytes())
}

func (s *store) Read(name string, dst []byte) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	v, err := s.variable(name, len(dst))
	if err == nil {
		Encode(dst, s.data[name], v.DType)
	}
	return err
}

func (s *store) Write(name string, src []byte) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	v, err := s.variable(name, len(src))
	if err == nil {
		Decode(s.data[name], src, v.DType)
	}
	return err
}

func (s *store) Close() error {
	s.closed = true
	return nil
}

// Compile makes a machine over the store's variables.
func (b *Backend) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	st, ok := s.(*store)
	if !ok {
		return nil, fmt.Errorf("reference: the store is a %T of another backend", s)
	}
	if st.closed {
		return nil, backend.ErrClosed
	}
	if err := backend.CheckVars(p, st.vars); err != nil {
		return nil, err
	}
	m := NewOver(p, st.data)
	hook := b.Hook
	m.Hook = func(n *graph.Node, in, out [][]float64, run Kernel) {
		if hook != nil {
			hook(n, in, out, run)
		} else {
			run(n, in, out)
		}
		for i, v := range n.Out {
			if v != nil && v.DType() == graph.F32 {
				roundAll(out[i], graph.F32)
			}
		}
	}
	return &executable{b: b, m: m}, nil
}

type executable struct {
	b      *Backend
	m      *Machine
	runs   [backend.MaxInFlight][][]float64 // the outputs of the last runs, by ticket modulo their number
	last   backend.Ticket
	closed bool
}

func (e *executable) Feed(input string, src []byte) error {
	if e.closed {
		return backend.ErrClosed
	}
	v := e.m.prog.Input(input)
	if v == nil {
		return fmt.Errorf("reference: program %s has no input %q", e.m.prog.Name(), input)
	}
	if err := backend.CheckSize("input", input, len(src), v.Bytes()); err != nil {
		return err
	}
	Decode(e.m.storage[v.ID()], src, v.DType())
	return nil
}

func (e *executable) Submit() (backend.Ticket, error) {
	if e.closed {
		return 0, backend.ErrClosed
	}
	e.b.mu.Lock()
	defer e.b.mu.Unlock()
	if err := e.m.Run(); err != nil {
		return 0, err
	}
	e.last++
	outputs := make([][]float64, len(e.m.prog.Outputs()))
	for i, o := range e.m.prog.Outputs() {
		outputs[i] = slices.Clone(e.m.storage[o.Value.ID()])
	}
	e.runs[e.last%backend.MaxInFlight] = outputs
	return e.last, nil
}

func (e *executable) Fetch(t backend.Ticket, output string, dst []byte) error {
	switch {
	case e.closed:
		return backend.ErrClosed
	case t == 0 || t > e.last:
		return fmt.Errorf("reference: there is no run %d", t)
	case t+backend.MaxInFlight <= e.last:
		return backend.ErrStale
	}
	for i, o := range e.m.prog.Outputs() {
		if o.Name == output {
			if err := backend.CheckSize("output", output, len(dst), o.Value.Bytes()); err != nil {
				return err
			}
			Encode(dst, e.runs[t%backend.MaxInFlight][i], o.Value.DType())
			return nil
		}
	}
	return fmt.Errorf("reference: program %s has no output %q", e.m.prog.Name(), output)
}

func (e *executable) Close() error {
	e.closed = true
	return nil
}
