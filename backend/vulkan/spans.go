package vulkan

import (
	"cmp"
	"slices"
)

// spans keeps the free parts of a block: sorted by offset, never empty, never touching one another.
type spans struct {
	free []freeSpan
	size uint64
}

type freeSpan struct{ offset, size uint64 }

func newSpans(size uint64) spans { return spans{free: []freeSpan{{0, size}}, size: size} }

// take finds room for size bytes in the smallest part that has it. Offsets stay multiples of what all sizes are multiples of.
func (s *spans) take(size uint64) (offset uint64, ok bool) {
	best := -1
	for i, f := range s.free {
		if f.size >= size && (best < 0 || f.size < s.free[best].size) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	f := &s.free[best]
	offset = f.offset
	f.offset += size
	f.size -= size
	if f.size == 0 {
		s.free = slices.Delete(s.free, best, best+1)
	}
	return offset, true
}

// give returns what take handed out.
func (s *spans) give(offset, size uint64) {
	i, found := slices.BinarySearchFunc(s.free, offset, func(f freeSpan, o uint64) int { return cmp.Compare(f.offset, o) })
	if found || i > 0 && s.free[i-1].offset+s.free[i-1].size > offset || i < len(s.free) && offset+size > s.free[i].offset || offset+size > s.size {
		panic("vulkan: memory freed twice")
	}
	s.free = slices.Insert(s.free, i, freeSpan{offset, size})
	if i+1 < len(s.free) && offset+size == s.free[i+1].offset {
		s.free[i].size += s.free[i+1].size
		s.free = slices.Delete(s.free, i+1, i+2)
	}
	if i > 0 && s.free[i-1].offset+s.free[i-1].size == offset {
		s.free[i-1].size += s.free[i].size
		s.free = slices.Delete(s.free, i, i+1)
	}
}

// empty tells whether nothing is handed out.
func (s *spans) empty() bool { return len(s.free) == 1 && s.free[0].size == s.size }
