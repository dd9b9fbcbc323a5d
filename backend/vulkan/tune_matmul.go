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
	if c.parts > 1 {
		return fmt.Sprintf("%s/%d", c.kernel, c.parts)
	}
	return c.kernel.String()
}

func (k matMulKernel) String() string {
	switch {
	case k.matrix.width > 0: // threads of a subgroup
		return fmt.Sprintf("%s@%d", k.name, k.matrix.width)
	case k.unroll != unrollOf(k.name):
		return fmt.Sprintf("%s~%d", k.name, k.unroll)
	}
	return k.name
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
	return s + " " + formats(n)
}

// formats names those of a node's operands, once if they are the same.
func formats(n *graph.Node) string {
	var list []string
	for _, v := range slices.Concat(n.In, n.Out) {
		if v != nil {
			list = append(list, v.DType().String())
		}
	}
	if same := slices.Compact(slices.Clone(list)); len(same) == 1 {
		list = same
	}
	return strings.Join(list, ",")
}

// pickMatMul chooses what was measured to be the fastest, or by rule.
func (d *deviceCaps) pickMatMul(n *graph.Node) matMulChoice {
	rule := d.ruleForMatMul(n)
	if d.chosen == nil {
		return rule
	}
	var names []string
	for _, c := range d.matMulCandidates(n, rule) {
		names = append(names, c.String())
	}
	if c, ok := d.matMulNamed(n, d.chosen(n, matMulShape(n), names)); ok {
		return c
	}
	return rule
}

// ruleForMatMul chooses by rule.
func (d *deviceCaps) ruleForMatMul(n *graph.Node) matMulChoice {
	if c, ok := d.chooseMatrices(n); ok {
		return c
	}
	return d.chooseMatMul(graph.MatMulDims(n))
}

// matMulNamed is the choice of a name, if the device can run it for a node.
func (d *deviceCaps) matMulNamed(n *graph.Node, name string) (matMulChoice, bool) {
	batch, m, cols, _ := graph.MatMulDims(n)
	elems := batch * m * cols
	for _, k := range d.matrixKernels(n) {
		kernel, text, split := strings.Cut(name, "/")
		parts, _ := strconv.Atoi(text)
		if k.String() == kernel && (!split || parts > 1 && parts <= maxParts && int64(parts)*int64(elems) <= d.maxBindBytes/4) {
			return matMulChoice{k, max(parts, 1)}, true
		}
	}
	for _, k := range matMulAll() {
		rest, ok := strings.CutPrefix(name, k.name)
		if !ok || !d.has(k.name) || k.subgroupSize > 0 && (k.subgroupSize != d.subgroupSize || graph.HasNarrow(n)) {
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
func (d *deviceCaps) matMulCandidates(node *graph.Node, rule matMulChoice) []matMulChoice {
	batch, m, n, k := graph.MatMulDims(node)
	list := []matMulChoice{rule}
	add := func(c matMulChoice) {
		if !slices.Contains(list, c) && d.has(c.kernel.name) {
			list = append(list, c)
		}
	}
	if rule.kernel.matrix.width > 0 {
		for _, kernel := range d.matrixKernels(node) {
			split := d.split(kernel, batch, m, n, k)
			add(split)
			add(matMulChoice{kernel, 1})
			add(matMulChoice{kernel, max(split.parts/2, 1)})
		}
		add(d.chooseMatMul(batch, m, n, k)) // without matrices
		return list
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
