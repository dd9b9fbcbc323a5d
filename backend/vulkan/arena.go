//go:build cgo

package vulkan

import (
	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

var _ backend.ArenaSharer = (*Backend)(nil)

// SharedBytes is the size of arenas, of scratch memory and of tables, of which each executable has its own. What it can't tell is where places that lie far
// apart split a table, which makes it some hundred bytes longer.
func (b *Backend) SharedBytes(programs ...*graph.Program) int64 {
	return b.sharedBytes(programs, b.choose, b.lower)
}

func (b *Backend) sharedBytes(programs []*graph.Program, choose func(*graph.Program) (*deviceCaps, error), lower lowerFunc) int64 {
	arenas, scratches, tables := make([]int64, len(programs)), make([]int64, len(programs)), int64(0)
	for i, p := range programs {
		arenas[i] = int64(backend.Plan(b, p).ArenaBytes())
		if caps, err := choose(p); err == nil { // else Compile tells
			scratch, table := b.scratchBytes(p, caps, lower)
			scratches[i], tables = scratch, tables+table
		}
	}
	return backend.Turns(arenas) + backend.Turns(scratches) + tables
}

// sharedSpace is memory that the executables over a store take turns in: runs follow one another, each behind a barrier over all that was submitted
// before, and leave nothing there that a later one reads.
type sharedSpace struct {
	space
	users int
}

// enough tells whether a space of so many bytes need not be made.
func (s *sharedSpace) enough(size int64) bool { return size == 0 || s != nil && s.bytes() >= size }

// join gives an executable the space that others have, if it is large enough, else one that take makes. made is the size of that.
func (s *Store) join(shared **sharedSpace, size int64, take func() (space, error)) (of *sharedSpace, made int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size == 0 {
		return nil, 0, nil
	}
	if !(*shared).enough(size) {
		made, err := take()
		if err != nil {
			return nil, 0, err
		}
		*shared = &sharedSpace{space: made}
		(*shared).users++
		return *shared, size, nil
	}
	(*shared).users++
	return *shared, 0, nil
}

// leave is the end of an executable in a space; the last one frees it.
func (s *Store) leave(shared **sharedSpace, of *sharedSpace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of == nil {
		return
	}
	if of.users--; of.users > 0 {
		return
	}
	if *shared == of {
		*shared = nil
	}
	of.free()
}

// missing is how much of a program's arena and scratch memory would have to be made.
func (s *Store) missing(arena, scratch int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := int64(0)
	if !s.arena.enough(arena) {
		total += arena
	}
	if !s.scratch.enough(scratch) {
		total += scratch
	}
	return total
}
