package cpu

import (
	"fmt"
	"sync"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// store keeps variables, and the arena of the programs over them.
type store struct {
	b      *Backend
	vars   []graph.Var
	memory map[string][]float32 // parts of block
	bytes  int64

	mu     sync.Mutex
	block  *block
	arena  *block // the last that was made, nil without users
	execs  int    // that are open
	closed bool
}

// NewStore makes room for variables, all zero.
func (b *Backend) NewStore(vars []graph.Var) (backend.Store, error) {
	s := &store{b: b, vars: vars, memory: make(map[string][]float32, len(vars))}
	const align = graph.ArenaAlign / 4
	size := 0
	for _, v := range vars {
		size += (v.Bytes()/4 + align) / align * align
	}
	s.block = newBlock(4 * size)
	at := 0
	for _, v := range vars {
		if _, ok := s.memory[v.Name]; ok {
			s.block.free()
			return nil, fmt.Errorf("cpu: the variable %q is there twice", v.Name)
		}
		n := (v.Bytes() + 3) / 4
		s.memory[v.Name] = s.block.words[at : at+n : at+n]
		at += (v.Bytes()/4 + align) / align * align
		s.bytes += int64(4 * n)
	}
	if err := b.after(s.touch); err != nil {
		s.block.free()
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
func (s *store) DeviceBytes() int64 { return s.bytes }

// open counts an executable in and gives it an arena: the one that others have, if it is large enough, since runs follow one another and
// leave nothing in it that a later run reads. made is the size of a new one.
func (s *store) open(bytes int) (arena *block, made int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, backend.ErrClosed
	}
	if s.arena == nil || 4*len(s.arena.words) < bytes {
		s.arena, made = newBlock(bytes), bytes
	}
	s.execs++
	s.arena.users++
	return s.arena, made, nil
}

// release is the end of an executable, which has no run left.
func (s *store) release(arena *block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if arena.users--; arena.users == 0 {
		if s.arena == arena {
			s.arena = nil
		}
		arena.free()
	}
	s.execs--
	s.freeUnused()
}

// freeUnused drops the variables of a closed store once no executable is left.
func (s *store) freeUnused() {
	if s.closed && s.execs == 0 {
		s.block.free()
	}
}

func (s *store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// access hands bytes from..from+size-1 of a variable to f once all earlier submissions have run.
func (s *store) access(v graph.Var, from, size int, f func(data []byte)) error {
	closed := false
	err := s.b.after(func() {
		if closed = s.isClosed(); !closed {
			f(bytesOf(s.memory[v.Name])[from : from+size])
		}
	})
	if closed {
		return backend.ErrClosed
	}
	return err
}

func (s *store) variable(name string) (graph.Var, error) {
	if s.isClosed() {
		return graph.Var{}, backend.ErrClosed
	}
	for _, v := range s.vars {
		if v.Name == name {
			return v, nil
		}
	}
	return graph.Var{}, fmt.Errorf("cpu: the store has no variable %q", name)
}

// accessAll is access to the whole variable, whose size must be size.
func (s *store) accessAll(name string, size int, f func(data []byte)) error {
	v, err := s.variable(name)
	if err == nil {
		err = backend.CheckSize("variable", name, size, v.Bytes())
	}
	if err != nil {
		return err
	}
	return s.access(v, 0, size, f)
}

// accessPart is access to a part, which must lie in the variable.
func (s *store) accessPart(name string, from, size int, f func(data []byte)) error {
	v, err := s.variable(name)
	if err == nil && (from < 0 || size > v.Bytes()-from) {
		err = fmt.Errorf("cpu: %d bytes from %d on of the variable %q, which has %d", size, from, name, v.Bytes())
	}
	if err != nil {
		return err
	}
	return s.access(v, from, size, f)
}

// Read copies a variable to dst.
func (s *store) Read(name string, dst []byte) error {
	return s.accessAll(name, len(dst), func(data []byte) { copy(dst, data) })
}

// Write copies src to a variable.
func (s *store) Write(name string, src []byte) error {
	return s.accessAll(name, len(src), func(data []byte) { copy(data, src) })
}

// ReadAt copies a part of a variable to dst.
func (s *store) ReadAt(name string, dst []byte, offset int) error {
	return s.accessPart(name, offset, len(dst), func(data []byte) { copy(dst, data) })
}

// WriteAt copies src to a part of a variable.
func (s *store) WriteAt(name string, src []byte, offset int) error {
	return s.accessPart(name, offset, len(src), func(data []byte) { copy(data, src) })
}

// Close drops the variables, once the executables over them are closed. Closing twice is fine.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.freeUnused()
	}
	return nil
}
