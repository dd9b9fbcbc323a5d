package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func peak() {
	fmaLoop("fmaLoopAVX2", "AVX2 and FMA", YMM, 32)
	fmaLoop("fmaLoopAVX512", "AVX-512", ZMM, 64)
	triad()
}

// fmaLoop is nothing but FMAs: 12 vectors of sums hide a latency of up to 6 cycles on two ports, and each has numbers of its own.
func fmaLoop(name, with string, vector func() reg.VecVirtual, bytes int) {
	const vectors = 12
	TEXT(name, NOSPLIT, "func(n int, acc *float32, x float32)")
	Doc(name + " is fmaLoop with " + with + ", of 12 vectors.")
	n := Load(Param("n"), GP64())
	base := Load(Param("acc"), GP64())
	x := vector()
	VBROADCASTSS(NewParamAddr("x", 16), x)
	acc := make([]reg.VecVirtual, vectors)
	for i := range acc {
		acc[i] = vector()
		VMOVUPS(Mem{Base: base, Disp: bytes * i}, acc[i])
	}
	TESTQ(n, n)
	JZ(LabelRef("store"))
	Label("loop")
	for i := range acc {
		VFMADD213PS(acc[i], x, acc[i])
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("store")
	for i := range acc {
		VMOVUPS(acc[i], Mem{Base: base, Disp: bytes * i})
	}
	VZEROUPPER()
	RET()
}

// triad moves 12 bytes for each FMA, so that memory is all that it waits for. Its stores are plain ones, as those of the other kernels are.
func triad() {
	const unroll = 4
	TEXT("triadAVX2", NOSPLIT, "func(blocks int, a, b, c *float32, s float32)")
	Doc("triadAVX2 is triad with AVX2 and FMA, in blocks of 32 elements.")
	blocks := Load(Param("blocks"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64())
	s := YMM()
	VBROADCASTSS(NewParamAddr("s", 32), s)
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	Label("loop")
	for i := range unroll {
		x := YMM()
		VMOVUPS(Mem{Base: b, Disp: 32 * i}, x)
		VFMADD231PS(Mem{Base: c, Disp: 32 * i}, s, x)
		VMOVUPS(x, Mem{Base: a, Disp: 32 * i})
	}
	ADDQ(Imm(32*unroll), a)
	ADDQ(Imm(32*unroll), b)
	ADDQ(Imm(32*unroll), c)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}
