package vulkan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// String names a choice, in tables and in the file of what was measured: matmul_tile_64, matmul_tile_64/4 in four parts, matmul_tile_64~1 with its inner
// loop rolled.
func (c matMulChoice) String() string {
	var s strings.Builder
	s.WriteString(c.kernel.name)
	if c.kernel.unroll != unrollOf(c.kernel.name) {
		fmt.Fprintf(&s, "~%d", c.kernel.unroll)
	}
	if c.parts > 1 {
		fmt.Fprintf(&s, "/%d", c.parts)
	}
	return s.String()
}

// unrollOf is what a kernel's row in the tables says.
func unrollOf(name string) int {
	for _, k := range matMulAll() {
		if k.name == name {
			return k.unroll
		}
	}
	return 0
}

func matMulAll() []matMulKernel {
	return slices.Concat(matMulTiles, []matMulKernel{matMulSkinny}, matMulSubgroups)
}

// matMulShape names all that the time of a matmul depends on.
func matMulShape(n *graph.Node) string {
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, m, cols, inner := graph.MatMulDims(n)
	letter := func(trans bool) string {
		if trans {
			return "T"
		}
		return "N"
	}
	s := letter(at.TransA) + letter(at.TransB) + " "
	if batch > 1 {
		s += fmt.Sprintf("%d of ", batch)
	}
	s += fmt.Sprintf("%dx%dx%d", m, cols, inner)
	if n.In[2] != nil {
		s += " + addend"
	}
	formats := []string{}
	for _, v := range []*graph.Value{n.In[0], n.In[1], n.In[2], n.Out[0]} {
		if v != nil {
			formats = append(formats, v.DType().String())
		}
	}
	if same := slices.Compact(slices.Clone(formats)); len(same) == 1 {
		formats = same
	}
	return s + " " + strings.Join(formats, ",")
}

// pickMatMul chooses what was measured to be the fastest, or by rule.
func (d *deviceCaps) pickMatMul(n *graph.Node) matMulChoice {
	batch, m, cols, inner := graph.MatMulDims(n)
	rule := d.chooseMatMul(batch, m, cols, inner)
	if d.chosen == nil {
		return rule
	}
	var names []string
	for _, c := range d.matMulCandidates(rule, batch, m, cols, inner) {
		names = append(names, c.String())
	}
	if c, ok := d.matMulNamed(d.chosen(n, matMulShape(n), names), batch*m*cols); ok {
		return c
	}
	return rule
}

// matMulNamed is the choice of a name, if the device can run it for an output of so many elements.
func (d *deviceCaps) matMulNamed(name string, elems int) (matMulChoice, bool) {
	for _, k := range matMulAll() {
		rest, ok := strings.CutPrefix(name, k.name)
		if !ok || !d.has(k.name) || k.subgroupSize > 0 && k.subgroupSize != d.subgroupSize {
			continue
		}
		c := matMulChoice{k, 1}
		unroll, parts, split := strings.Cut(rest, "/")
		if text, ok := strings.CutPrefix(unroll, "~"); ok {
			c.kernel.unroll, _ = strconv.Atoi(text)
		}
		if split {
			c.parts, _ = strconv.Atoi(parts)
		}
		fits := c.parts >= 1 && c.parts <= maxParts && int64(c.parts)*int64(elems) <= d.maxBindBytes/4
		if fits && c.kernel.unroll >= 0 && c.kernel.unroll <= max(k.unroll, 1) && c.String() == name {
			return c, true
		}
	}
	return matMulChoice{}, false
}

// matMulCandidates are the rule's choice and those worth a measurement beside it: other tiles, other numbers of parts, loops that are rolled, which
// has been a gain on Apple's GPUs (llama.cpp#24663).
func (d *deviceCaps) matMulCandidates(rule matMulChoice, batch, m, n, k int) []matMulChoice {
	list := []matMulChoice{rule}
	add := func(c matMulChoice) {
		if !slices.Contains(list, c) && d.has(c.kernel.name) {
			list = append(list, c)
		}
	}
	for _, kernel := range matMulAll() {
		if kernel.subgroupSize > 0 {
			if kernel.subgroupSize == d.subgroupSize && d.kind == backend.Software {
				add(matMulChoice{kernel, 1})
			}
			continue
		}
		if 2*m <= kernel.rows && kernel.rows > matMulSkinny.rows && len(list) > 1 || m > 8*matMulSkinny.rows && kernel == matMulSkinny {
			continue // most of a tile would lie outside, or there would be far more tiles than for another
		}
		split := d.split(kernel, batch, m, n, k)
		add(split)
		if split.parts > 1 {
			add(matMulChoice{split.kernel, 1})
			add(matMulChoice{split.kernel, max(split.parts/2, 1)})
		}
		if split.kernel.unroll > 1 {
			rolled := split
			rolled.kernel.unroll = 1
			add(rolled)
		}
	}
	return list
}
