package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// constants and labels that were made, so that names are unique in a file.
var (
	constants = map[string]Mem{}
	loops     int
)

// bits is a vector of 8 equal words in read-only memory, an operand as good as a register.
func bits(v uint32) Mem {
	name := fmt.Sprintf("word%08x", v)
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, 8|16) // RODATA|NOPTR
		for i := range 8 {
			DATA(4*i, U32(v))
		}
		constants[name] = m
	}
	return m
}

func float(v float32) Mem { return bits(math.Float32bits(v)) }

// masks holds 8 words of ones and 8 of zeros: read at 32 - 4 n, it is a mask of the first n lanes.
func masks() Mem {
	m, ok := constants["masks"]
	if !ok {
		m = GLOBL("masks", 8|16)
		for i := range 8 {
			DATA(4*i, U32(math.MaxUint32))
		}
		for i := range 8 {
			DATA(32+4*i, U32(0))
		}
		constants["masks"] = m
	}
	return m
}

// lanes is where a loop's body is: the same 8 elements of each operand, in the tail only those under the mask.
type lanes struct {
	index reg.GPVirtual
	disp  int
	mask  reg.VecVirtual // nil outside the tail
}

func (l lanes) at(p reg.Register) Mem { return Mem{Base: p, Index: l.index, Scale: 1, Disp: l.disp} }

// load gives a register of its own; lanes that are not there are 0.
func (l lanes) load(p reg.Register) reg.VecVirtual {
	y := YMM()
	if l.mask == nil {
		VMOVUPS(l.at(p), y)
	} else {
		VMASKMOVPS(l.at(p), l.mask, y)
	}
	return y
}

// operand is memory where an instruction may read it, a register in the tail.
func (l lanes) operand(p reg.Register) Op {
	if l.mask == nil {
		return l.at(p)
	}
	return l.load(p)
}

func (l lanes) store(y reg.VecVirtual, p reg.Register) {
	if l.mask == nil {
		VMOVUPS(y, l.at(p))
	} else {
		VMASKMOVPS(y, l.mask, l.at(p))
	}
}

// keep zeroes the lanes that are not there, before a sum.
func (l lanes) keep(y reg.VecVirtual) {
	if l.mask != nil {
		VANDPS(l.mask, y, y)
	}
}

// forLanes runs body over n elements: unroll vectors a turn, then one, then a masked tail. u counts the vectors of a turn.
func forLanes(n reg.Register, unroll int, body func(l lanes, u int)) {
	loops++
	label := func(s string) string { return fmt.Sprintf("%s%d", s, loops) }
	index, left := GP64(), GP64()
	XORQ(index, index)
	MOVQ(n, left)
	for turn := unroll; ; turn = 1 {
		name := label(fmt.Sprintf("by%d_", turn))
		SUBQ(U32(uint32(8*turn)), left)
		JL(LabelRef(name + "end"))
		Label(name)
		for u := range turn {
			body(lanes{index: index, disp: 32 * u}, u)
		}
		ADDQ(U32(uint32(32*turn)), index)
		SUBQ(U32(uint32(8*turn)), left)
		JGE(LabelRef(name))
		Label(name + "end")
		ADDQ(U32(uint32(8*turn)), left)
		if turn == 1 {
			break
		}
	}
	JZ(LabelRef(label("end")))
	table, mask := GP64(), YMM()
	LEAQ(masks().Offset(32), table)
	SHLQ(Imm(2), left)
	SUBQ(left, table)
	VMOVUPS(Mem{Base: table}, mask)
	body(lanes{index: index, mask: mask}, 0)
	Label(label("end"))
}

// broadcast fills a vector with a float32 parameter.
func broadcast(name string) reg.VecVirtual {
	y := YMM()
	VBROADCASTSS(place(Param(name)), y)
	return y
}

// place is where a parameter or result lies: Load and Store would use instructions older than AVX, which mix badly with it.
func place(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func pointer(name string) reg.Register { return Load(Param(name).Base(), GP64()) }
func length(name string) reg.Register  { return Load(Param(name).Len(), GP64()) }

// zeros are n vectors of 0, to accumulate in.
func zeros(n int) []reg.VecVirtual {
	acc := make([]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = YMM()
		VXORPS(acc[i], acc[i], acc[i])
	}
	return acc
}

// fold reduces vectors to their first lane, always in the same order.
func fold(acc []reg.VecVirtual, op func(ops ...Op)) reg.VecVirtual {
	for n := len(acc); n > 1; n = (n + 1) / 2 {
		for i := range n / 2 {
			op(acc[n-1-i], acc[i], acc[i])
		}
	}
	y, high := acc[0], XMM()
	x := y.AsX()
	VEXTRACTF128(Imm(1), y, high)
	op(high, x, x)
	VPERMILPS(Imm(0x4e), x, high)
	op(high, x, x)
	VPERMILPS(Imm(0xb1), x, high)
	op(high, x, x)
	return y
}

// returnSum stores the sum of the accumulators' lanes and returns.
func returnSum(acc []reg.VecVirtual) {
	returnFold(acc, VADDPS)
}

func returnFold(acc []reg.VecVirtual, op func(ops ...Op)) {
	VMOVSS(fold(acc, op).AsX(), place(ReturnIndex(0)))
	done()
}

func done() {
	VZEROUPPER()
	RET()
}
