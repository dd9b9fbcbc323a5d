package cpu

// mapFloor is the size in bytes from which storage is mapped from the system rather than taken from Go's heap: there the collector would let
// garbage of the size of a store and its arenas pile up before it runs.
const mapFloor = 1 << 20

// block is storage that is given back at once. Nothing may touch its words after free.
type block struct {
	words  []float32
	mapped []byte // nil on Go's heap
	users  int    // of an arena: the executables that have it
}

// newBlock makes zeroed storage for n bytes.
func newBlock(n int) *block {
	if n >= mapFloor {
		if m := mapMemory(n); m != nil {
			return &block{words: floats(m), mapped: m}
		}
	}
	return &block{words: words(n)}
}

func (b *block) free() {
	if b.mapped != nil {
		unmapMemory(b.mapped)
	}
	b.words, b.mapped = nil, nil
}
