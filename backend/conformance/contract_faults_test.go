package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// breaker is a backend that conforms but for what is set.
type breaker struct {
	backend.Backend
	store func(s backend.Store) backend.Store
	exe   func(p *graph.Program, e backend.Executable) backend.Executable
}

// storeFault changes calls of a store. Compile unwraps it for the backend that made it.
type storeFault struct {
	backend.Store
	read, write func(s backend.Store, name string, b []byte) error
}

func (s storeFault) Read(name string, dst []byte) error {
	if s.read != nil {
		return s.read(s.Store, name, dst)
	}
	return s.Store.Read(name, dst)
}

func (s storeFault) Write(name string, src []byte) error {
	if s.write != nil {
		return s.write(s.Store, name, src)
	}
	return s.Store.Write(name, src)
}

func (b breaker) NewStore(vars []graph.Var) (backend.Store, error) {
	s, err := b.Backend.NewStore(vars)
	if err == nil && b.store != nil {
		s = b.store(s)
	}
	return s, err
}

func (b breaker) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	if f, ok := s.(storeFault); ok {
		s = f.Store
	}
	e, err := b.Backend.Compile(p, s)
	if err == nil && b.exe != nil {
		e = b.exe(p, e)
	}
	return e, err
}

// exeFault changes calls of an executable.
type exeFault struct {
	backend.Executable
	feed   func(e backend.Executable, name string, src []byte) error
	submit func(e backend.Executable) (backend.Ticket, error)
	fetch  func(e backend.Executable, t backend.Ticket, name string, dst []byte) error
}

func (e *exeFault) Feed(name string, src []byte) error {
	if e.feed != nil {
		return e.feed(e.Executable, name, src)
	}
	return e.Executable.Feed(name, src)
}

func (e *exeFault) Submit() (backend.Ticket, error) {
	if e.submit != nil {
		return e.submit(e.Executable)
	}
	return e.Executable.Submit()
}

func (e *exeFault) Fetch(t backend.Ticket, name string, dst []byte) error {
	if e.fetch != nil {
		return e.fetch(e.Executable, t, name, dst)
	}
	return e.Executable.Fetch(t, name, dst)
}

type brokenContract struct {
	name, rule string
	broken     breaker
}

// brokenContracts break one rule each; the case of that rule must see it.
func brokenContracts() []brokenContract {
	b := reference.NewBackend()
	stores := func(f storeFault) breaker {
		return breaker{Backend: b, store: func(s backend.Store) backend.Store { f.Store = s; return f }}
	}
	exes := func(make func() *exeFault) breaker {
		return breaker{Backend: b, exe: func(_ *graph.Program, e backend.Executable) backend.Executable {
			f := make()
			f.Executable = e
			return f
		}}
	}
	return []brokenContract{
		{"a store takes any size", "wrong sizes and unknown names are errors, and harm nothing", stores(storeFault{write: func(s backend.Store, name string, src []byte) error {
			return s.Write(name, src[:min(len(src), 12)])
		}})},
		{"a store that is not zero", "a new store is zero", breaker{Backend: b, store: func(s backend.Store) backend.Store {
			if v := s.Vars(); len(v) > 0 {
				x := make([]byte, v[0].Bytes())
				x[0] = 1
				if err := s.Write(v[0].Name, x); err != nil {
					panic(err)
				}
			}
			return s
		}}},
		{"reading gives what was written, not what runs made of it", "reading and writing the store waits for runs", func() breaker {
			written := map[string][]byte{}
			return stores(storeFault{
				write: func(s backend.Store, name string, src []byte) error {
					written[name] = src
					return s.Write(name, src)
				},
				read: func(s backend.Store, name string, dst []byte) error {
					copy(dst, written[name])
					return nil
				}})
		}()},
		{"every ticket gives the last run", "runs in flight keep their inputs and outputs", exes(func() *exeFault {
			f := &exeFault{}
			last := backend.Ticket(0)
			f.submit = func(e backend.Executable) (t backend.Ticket, err error) {
				last, err = e.Submit()
				return last, err
			}
			f.fetch = func(e backend.Executable, t backend.Ticket, name string, dst []byte) error {
				return e.Fetch(max(t, last), name, dst)
			}
			return f
		})},
		{"an input that is kept by reference", "a caller's buffer is its own after the call", exes(func() *exeFault {
			f := &exeFault{}
			fed := map[string][]byte{}
			f.feed = func(e backend.Executable, name string, src []byte) error {
				fed[name] = src
				return e.Feed(name, src)
			}
			f.submit = func(e backend.Executable) (backend.Ticket, error) {
				for name, src := range fed {
					if err := e.Feed(name, src); err != nil {
						return 0, err
					}
				}
				return e.Submit()
			}
			return f
		})},
		{"an input that is forgotten", "an input keeps its value", exes(func() *exeFault {
			f := &exeFault{}
			sizes := map[string]int{}
			f.feed = func(e backend.Executable, name string, src []byte) error {
				sizes[name] = len(src)
				return e.Feed(name, src)
			}
			f.submit = func(e backend.Executable) (backend.Ticket, error) {
				t, err := e.Submit()
				for name, n := range sizes {
					if err := e.Feed(name, make([]byte, n)); err != nil {
						return 0, err
					}
				}
				return t, err
			}
			return f
		})},
		{"a submission that runs one late", "submissions over one store run in order", exes(func() *exeFault {
			f := &exeFault{}
			n := backend.Ticket(0)
			f.submit = func(e backend.Executable) (backend.Ticket, error) {
				if n++; n%2 == 1 {
					return n, nil
				}
				return e.Submit()
			}
			return f
		})},
	}
}

func TestKitSeesABrokenContract(t *testing.T) {
	for _, f := range brokenContracts() {
		t.Run(f.name, func(t *testing.T) {
			for _, c := range contractCases() {
				if c.Name == f.rule {
					require.NotEmpty(t, c.result(f.broken, Options{}).Error)
					return
				}
			}
			t.Fatalf("there is no case %q", f.rule)
		})
	}
}

// What the backend lacks fails unless that is allowed, and is told in the report.
func TestUnsupportedOperators(t *testing.T) {
	lacking := refusing{reference.NewBackend()}
	for _, allow := range []bool{false, true} {
		r, err := Check(t.Context(), lacking, Options{Only: []string{"cast", "add"}, AllowUnsupported: allow})
		if err != nil || r.Passed() != allow {
			t.Fatalf("allowed %t: passed %t, %v", allow, r.Passed(), err)
		}
		for _, res := range r.Results {
			if (res.Unsupported != "") != (res.Group == "cast") {
				t.Fatalf("%s %s: unsupported is %q", res.Group, res.Name, res.Unsupported)
			}
		}
	}
}

type refusing struct{ backend.Backend }

func (b refusing) Compile(p *graph.Program, s backend.Store) (backend.Executable, error) {
	for _, n := range p.Nodes() {
		if n.Op == graph.OpCast {
			return nil, &backend.UnsupportedError{Device: "test", Node: n.String(), Reason: "it has no casts"}
		}
	}
	return b.Backend.Compile(p, s)
}
