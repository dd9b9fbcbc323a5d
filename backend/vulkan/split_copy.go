package vulkan

import "github.com/vktrain/vktrain/graph"

// copySplit collects the launches of a node that goes over parts, columns of which are copied to scratch memory or from there. That memory serves one part after
// the other, so each launch waits for those before it where the parts have some.
type copySplit struct {
	d    *deviceCaps
	list []dispatch
	err  error
	odd  bool // a copy would have half words
}

func (s *copySplit) node(n *graph.Node, wait bool) {
	part, err := lowerNode(s.d, n)
	if err != nil {
		s.err = err
		return
	}
	part[0].barrier = part[0].barrier || wait && len(s.list) > 0
	s.list = append(s.list, part...)
}

type copyColumnsPush struct{ Count, Columns, FromRow, FromColumn, ToRow, ToColumn uint32 }

// copyColumns copies rows x columns elements from a matrix with rows of fromRow elements, from a column on, to another. A column past a row is in a later row. Where
// a matrix cannot be bound whole it copies some rows at a time.
func (s *copySplit) copyColumns(from *graph.Value, fromRow, fromColumn int, to *graph.Value, toRow, toColumn, rows, columns int) {
	size := from.DType().Size()
	per := 4 / size // elements a word
	for _, x := range []int{fromRow, fromColumn, toRow, toColumn, columns} {
		s.odd = s.odd || x%per != 0
	}
	words := func(x int) uint32 { return uint32(x / per) }
	spare := int(s.d.maxBindBytes)/size - graph.ViewAlign/size - columns // what can be bound beside the first row and what is before it
	most := max(min(rows, spare/max(fromRow, toRow)+1), 1)
	for row := 0; row < rows; row += most {
		count := min(most, rows-row)
		x, fromColumn := window(from, fromColumn+row*fromRow, (count-1)*fromRow+columns)
		y, toColumn := window(to, toColumn+row*toRow, (count-1)*toRow+columns)
		n := count * columns / per
		s.list = append(s.list, dispatch{
			kernel: "copy_columns",
			push:   copyColumnsPush{uint32(n), words(columns), words(fromRow), words(fromColumn), words(toRow), words(toColumn)},
			bind:   []*graph.Value{x, y}, groups: s.d.grid(ceilDiv(n, s.d.threads())), barrier: len(s.list) > 0,
		})
	}
}

// window is count elements of v from one on, with those before it to where v can be bound, and how many these are.
func window(v *graph.Value, from, count int) (part *graph.Value, before int) {
	before = from % (graph.ViewAlign / v.DType().Size())
	return graph.Part(v, from-before, before+count), before
}

// done gives the launches. Copies are of words: a node with odd rows of 16-bit elements is cut as one over float32 stand-ins.
func (s *copySplit) done(n *graph.Node) ([]dispatch, error) {
	if s.err == nil && s.odd {
		return s.d.lowerWide(n)
	}
	return s.list, s.err
}
