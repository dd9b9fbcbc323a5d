//go:build cgo

package vulkan

import (
	"fmt"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
	"github.com/vktrain/vktrain/graph"
)

var (
	_ backend.Store       = (*Store)(nil)
	_ backend.MemoryStats = (*Store)(nil)
)

// Store holds variables in device memory.
type Store struct {
	b      *Backend
	vars   []graph.Var
	places map[string]place
	handle *handle

	mu     sync.Mutex
	closed bool
	users  int // executables that are open

	arena, scratch *sharedSpace // of the executables that were compiled last
}

type place struct {
	v graph.Var
	a allocation
}

// NewStore makes room for variables, all zero. It is a *MemoryError if they do not fit.
func (b *Backend) NewStore(vars []graph.Var) (backend.Store, error) {
	return b.NewHostStore(vars, func(graph.Var) bool { return false })
}

var _ backend.HostStorer = (*Backend)(nil)

// HostMemory is what the host's memory has for variables. Where the device has no memory of its own there is none: all variables are there.
func (b *Backend) HostMemory() (int64, error) {
	if len(b.memory.types[onHost]) == 0 {
		return 0, fmt.Errorf("%s lists no memory beside its own that kernels may use", b.caps.name)
	}
	return b.memory.available(onHost), nil
}

// NewHostStore is NewStore with some variables in the host's memory.
func (b *Backend) NewHostStore(vars []graph.Var, isHost func(v graph.Var) bool) (backend.Store, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	need := map[memoryClass]int64{}
	classOf := func(v graph.Var) memoryClass {
		if isHost(v) {
			return onHost
		}
		return onDevice
	}
	for _, v := range vars {
		need[classOf(v)] += int64(b.memory.round(uint64(storageBytes(v.Bytes()))))
	}
	what := fmt.Sprintf("a store of %d variables", len(vars))
	for _, class := range []memoryClass{onDevice, onHost} {
		if need[class] == 0 {
			continue
		}
		if err := b.memory.reserve(what+" in "+class.String(), class, need[class]); err != nil {
			return nil, err
		}
	}
	s := &Store{b: b, vars: append([]graph.Var(nil), vars...), places: map[string]place{}}
	if err := s.allocate(classOf); err != nil {
		s.free()
		return nil, b.said(err)
	}
	s.handle = b.adopt(s.Close)
	return s, b.said(nil)
}

func (s *Store) allocate(classOf func(v graph.Var) memoryClass) error {
	var zero []vkx.BufferRange
	for _, v := range s.vars {
		if _, twice := s.places[v.Name]; twice {
			return fmt.Errorf("vulkan: the store has two variables named %q", v.Name)
		}
		a, err := s.b.memory.allocate(fmt.Sprintf("variable %q", v.Name), classOf(v), int64(storageBytes(v.Bytes())))
		if err != nil {
			return err
		}
		s.places[v.Name] = place{v, a}
		zero = append(zero, a.part(0, int(a.size)))
	}
	if len(zero) == 0 {
		return nil
	}
	if err := s.b.transfer.fill(zero); err != nil {
		return s.b.failed(err, func() string { return "zeroing a store" })
	}
	return nil
}

func (s *Store) free() {
	for name, p := range s.places {
		p.a.free()
		delete(s.places, name)
	}
}

// Vars lists the variables in the order in which NewStore was given them.
func (s *Store) Vars() []graph.Var { return append([]graph.Var(nil), s.vars...) }

// DeviceBytes is what the variables take on the device.
func (s *Store) DeviceBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	for _, p := range s.places {
		if p.a.block.class == onDevice {
			n += int64(p.a.size)
		}
	}
	return n
}

// find gives a variable's place after checking that it may be used.
func (s *Store) find(name string, bytes int) (place, error) {
	if err := s.b.usable(); err != nil {
		return place{}, err
	}
	if s.closed {
		return place{}, backend.ErrClosed
	}
	p, ok := s.places[name]
	if !ok {
		return place{}, fmt.Errorf("vulkan: the store has no variable %q", name)
	}
	return p, backend.CheckSize("variable", name, bytes, p.v.Bytes())
}

// Read copies a variable to dst, after all that was submitted before.
func (s *Store) Read(name string, dst []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(name, len(dst))
	if err != nil {
		return err
	}
	if direct := p.a.bytes(); direct != nil && p.a.cached() {
		if err = s.b.transfer.settle(); err == nil {
			err = p.a.invalidate()
		}
		if err == nil {
			copy(dst, direct)
		}
	} else {
		err = s.b.transfer.read(dst, p.a.part(0, len(dst)))
	}
	if err != nil {
		err = s.b.failed(err, func() string { return fmt.Sprintf("reading variable %q, or what was submitted before", name) })
	}
	return s.b.said(err)
}

// Write copies src to a variable, after all that was submitted before.
func (s *Store) Write(name string, src []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(name, len(src))
	if err != nil {
		return err
	}
	if direct := p.a.bytes(); direct != nil {
		if err = s.b.transfer.settle(); err == nil {
			copy(direct, src)
			err = p.a.flush()
		}
	} else {
		err = s.b.transfer.write(p.a.part(0, len(src)), src)
	}
	if err != nil {
		err = s.b.failed(err, func() string { return fmt.Sprintf("writing variable %q, or what was submitted before", name) })
	}
	return s.b.said(err)
}

// use notes an executable that binds the variables.
func (s *Store) use(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && n > 0 {
		return backend.ErrClosed
	}
	s.users += n
	return nil
}

// Close frees the variables. It is an error while an executable over the store is open.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.users > 0 {
		return fmt.Errorf("vulkan: the store is in use by %d executables: close them first", s.users)
	}
	s.closed = true
	s.free()
	s.b.disown(s.handle)
	return s.b.said(nil)
}
