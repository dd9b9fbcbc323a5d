//go:build cgo

package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/vktrain/vktrain/graph"
)

// Each pipeline of a matmul that a program is going to use is run once on a small product, on a device that has not run it before: compilers of
// drivers have got constants, shared memory and subgroups wrong. The operands are small whole numbers, so that the result is exact in every format and
// in whichever order it is summed.

// matMulUse is a kernel that a node gets.
type matMulUse struct {
	node   *graph.Node
	choice matMulChoice
}

// prove tests what a program would use, and takes away what fails, until all that is used by the caps that it gives is right.
func (b *Backend) prove(p *graph.Program) (*deviceCaps, error) {
	if _, ok := b.lookup("matmul_sum"); !ok || b.opts.Statistics {
		return b.capsNow(), nil
	}
	b.tests.mu.Lock()
	defer b.tests.mu.Unlock()
	for {
		failed, caps := false, b.capsNow()
		for _, u := range b.matMulUses(p, caps) {
			test := u.product()
			key, err := b.pipelineOf(test, u.choice)
			if err != nil {
				continue // Compile tells
			}
			why, err := b.tests.result("kernel "+key, func() (string, error) { return b.testMatMul(test, u.choice) })
			if err != nil {
				return nil, err
			}
			if why == "" {
				continue
			}
			name := u.choice.kernel.name
			if u.choice.kernel.matrix.width > 0 {
				name = u.choice.kernel.String()
			}
			if caps.broken[name] {
				return nil, fmt.Errorf("vulkan: %s: no kernel of matmul is left that gives right results: kernel %s: %s: update the driver", b.physical.Name, key, why)
			}
			b.breaks(name)
			failed = true
		}
		b.tests.finish()
		if !failed {
			return caps, nil
		}
	}
}

// breaks notes that a kernel is not to be used.
func (b *Backend) breaks(kernel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	broken := map[string]bool{kernel: true}
	maps.Copy(broken, b.broken)
	b.broken = broken
}

// matMulUses are the kernels that the matmuls of a program get by caps.
func (b *Backend) matMulUses(p *graph.Program, by *deviceCaps) []matMulUse {
	var list []matMulUse
	caps := *by
	caps.uses = func(n *graph.Node, c matMulChoice) { list = append(list, matMulUse{n, c}) }
	for _, n := range p.Nodes() {
		_, _ = b.lower(&caps, n) // an error is Compile's to tell
	}
	return list
}

// product is a small program of one node for which the kernel is compiled as for the node: whole tiles and parts of them, two steps of the inner dimension
// and more, and rows that are as much of vectors as the node's.
func (u matMulUse) product() *graph.Program {
	at := graph.AttrOf[graph.MatMulAttr](u.node)
	_, m, n, k := graph.MatMulDims(u.node)
	const vector = 8
	k2 := 2*max(u.choice.kernel.step, vector) + vector + k%vector
	if u.choice.parts > 1 {
		k2 *= 2
		k2 += (k - k2) % vector // twice may have changed the rest
	}
	m, n, k = u.choice.kernel.rows+vector+m%vector, u.choice.kernel.cols+vector+n%vector, k2
	b := graph.NewBuilder()
	operand := func(name string, like *graph.Value, rows, cols int, swap bool) *graph.Value {
		if like == nil {
			return nil
		}
		if swap {
			rows, cols = cols, rows
		}
		shape := []int{rows, cols}
		if at.Batched {
			shape = append([]int{2}, shape...)
		}
		return b.Var(name, like.DType(), shape...)
	}
	in := u.node.In
	b.MatMul(operand("a", in[0], m, k, at.TransA), operand("b", in[1], k, n, at.TransB), operand("addend", in[2], m, n, false),
		operand("c", u.node.Out[0], m, n, false), at)
	return b.Build("product")
}

// lowerChoice lowers a product by a kernel, in two parts where the kernel is used in parts.
func lowerChoice(c matMulChoice) lowerFunc {
	c.parts = min(c.parts, 2)
	return func(d *deviceCaps, n *graph.Node) ([]dispatch, error) { return d.matMul(n, c), nil }
}

// pipelineOf names what is tested: the kernel as it is compiled, and whether in parts.
func (b *Backend) pipelineOf(p *graph.Program, c matMulChoice) (string, error) {
	launches, err := lowerProgram(b.capsNow(), p, lowerChoice(c), b.lookup)
	if err != nil {
		return "", err
	}
	l := launches[0]
	key := fmt.Sprintf("%s %v", c.kernel, l.spec)
	if len(launches) > 1 {
		key += fmt.Sprintf(" and %s %v", launches[1].kernel, launches[1].spec)
	}
	return key, nil
}

// testMatMul says what is wrong with what a kernel makes of a product, "" if nothing is.
func (b *Backend) testMatMul(p *graph.Program, c matMulChoice) (why string, err error) {
	return b.testLowered(p, lowerChoice(c))
}

// testLowered is testMatMul of a product that is lowered in some way.
func (b *Backend) testLowered(p *graph.Program, lower lowerFunc) (why string, err error) {
	s, err := b.NewStore(p.Vars())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	node := p.Nodes()[0]
	values := map[*graph.Value][]float32{}
	for i, v := range append(node.In[:3:3], node.Out[0]) {
		if v == nil {
			continue
		}
		x := make([]float32, v.Elems())
		for k := range x {
			x[k] = float32((uint32(4*k+i)*2654435761)>>15%3) - 1 // -1, 0 or 1, without any symmetry
			if i == 3 {
				x[k] = float32(math.NaN()) // c is written whole
			}
		}
		values[v] = x
		if err := s.Write(v.Name(), encode(x, v.DType())); err != nil {
			return "", err
		}
	}
	e, err := b.compile(p, s, b.capsNow(), lower)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if _, err := e.Submit(); err != nil {
		return "", err
	}
	out := node.Out[0]
	got, want := make([]byte, out.Bytes()), encode(multiply(node, values), out.DType())
	if err := s.Read(out.Name(), got); err != nil {
		return "", err
	}
	size := out.DType().Size()
	for k := 0; k < len(want); k += size {
		if g, w := string(got[k:k+size]), string(want[k:k+size]); g != w {
			return fmt.Sprintf("element %d of a product is %x, want %x", k/size, g, w), nil
		}
	}
	return "", nil
}

// multiply is a plain product.
func multiply(node *graph.Node, values map[*graph.Value][]float32) []float32 {
	at := graph.AttrOf[graph.MatMulAttr](node)
	batch, m, n, k := graph.MatMulDims(node)
	x, y, addend := values[node.In[0]], values[node.In[1]], values[node.In[2]]
	rowX, stepX, rowY, stepY := k, 1, 1, n
	if at.TransA {
		rowX, stepX = 1, m
	}
	if at.TransB {
		rowY, stepY = k, 1
	}
	c := make([]float32, batch*m*n)
	for i := range c {
		z, row, col := i/(m*n), i/n%m, i%n
		if addend != nil {
			c[i] = addend[i]
		}
		for l := range k {
			c[i] += x[z*m*k+row*rowX+l*stepX] * y[z*n*k+col*rowY+l*stepY]
		}
	}
	return c
}

// encode writes whole numbers that every format has, up to 256.
func encode(x []float32, d graph.DType) []byte {
	var out []byte
	for _, v := range x {
		bits := math.Float32bits(v)
		switch {
		case d == graph.F32:
			out = binary.NativeEndian.AppendUint32(out, bits)
		case d == graph.BF16:
			out = binary.NativeEndian.AppendUint16(out, uint16(bits>>16))
		case v == 0:
			out = binary.NativeEndian.AppendUint16(out, 0)
		case v != v:
			out = binary.NativeEndian.AppendUint16(out, 0x7e00)
		default:
			out = binary.NativeEndian.AppendUint16(out, uint16(bits>>16&0x8000|(bits>>13-112<<10)&0x7fff))
		}
	}
	return out
}
