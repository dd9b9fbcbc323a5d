package cpu

import (
	"math"

	"github.com/vktrain/vktrain/graph"
)

func cast(c *compiler, n *graph.Node) kernel {
	in, out := c.operands(n)
	x, y := n.In[0], n.Out[0]
	elems := y.Elems()
	var load func(i int) float32
	switch x.DType() {
	case graph.F32:
		load = func(i int) float32 { return in[0][i] }
	case graph.BF16:
		h := uint16s(in[0], elems)
		load = func(i int) float32 { return math.Float32frombits(uint32(h[i]) << 16) }
	case graph.F16:
		h := uint16s(in[0], elems)
		load = func(i int) float32 { return fromF16(h[i]) }
	}
	return c.overElems(elems, func(from, to int) {
		switch y.DType() {
		case graph.F32:
			for i := from; i < to; i++ {
				out[0][i] = load(i)
			}
		case graph.BF16:
			h := uint16s(out[0], elems)
			for i := from; i < to; i++ {
				h[i] = toBF16(load(i))
			}
		case graph.F16:
			h := uint16s(out[0], elems)
			for i := from; i < to; i++ {
				h[i] = toF16(load(i))
			}
		}
	})
}

// toBF16 rounds to nearest, ties to even. A NaN stays one: its quiet bit is set.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// toF16 rounds to nearest, ties to even; 65520 and more is inf.
func toF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, a := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case a > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(a>>13)&0x1ff
	case a >= 0x477ff000:
		return sign | 0x7c00
	case a >= 0x38800000: // normal; a carry goes into the exponent, as it should
		a -= 0x38000000
		return sign | uint16((a+0xfff+a>>13&1)>>13)
	case a < 0x33000000: // under half the smallest
		return sign
	}
	drop := 126 - a>>23 // bits between the float32's last and 2^-24
	m := a&0x7fffff | 0x800000
	return sign | uint16((m+1<<(drop-1)-1+m>>drop&1)>>drop)
}

func fromF16(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10)&31, uint32(h)&0x3ff
	switch e {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	case 0: // subnormal: m 2^-24, exact in float32
		f := float32(m) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
