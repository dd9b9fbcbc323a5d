package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm512 is tile for 32 vectors of 16: up to 12 rows by two panels of 16 columns, 24 sums. Each step of k takes 14 loads and 24 FMAs, 12 cycles
// of two FMA ports.
func gemm512() {
	const maxRows = 12
	TEXT("tileAVX512", NOSPLIT, "func(rows, panels, k int, a *float32, row, step int, b *float32, ldb, gap int, c *float32, ldc int, accumulate bool)")
	Pragma("noescape")
	Doc("tileAVX512 is tile with AVX-512, for up to 12 rows and one or two panels of b, gap elements apart.")
	t := wideTile{
		k: Load(Param("k"), GP64()), row: Load(Param("row"), GP64()), step: Load(Param("step"), GP64()),
		b: Load(Param("b"), GP64()), ldb: Load(Param("ldb"), GP64()), gap: Load(Param("gap"), GP64()),
		c: Load(Param("c"), GP64()), ldc: Load(Param("ldc"), GP64()),
	}
	for _, r := range []reg.Register{t.row, t.step, t.ldb, t.gap, t.ldc} {
		SHLQ(Imm(2), r)
	}
	t.a[0] = GP64()
	Load(Param("a"), t.a[0])
	for i := 1; i < len(t.a); i++ {
		t.a[i] = GP64()
		LEAQ(Mem{Base: t.a[i-1], Index: t.row, Scale: 2}, t.a[i])
		ADDQ(t.row, t.a[i])
	}
	rows := Load(Param("rows"), GP64())
	panels := NewParamAddr("panels", 8)
	CMPQ(panels, Imm(1))
	JE(LabelRef("single"))
	for n := 1; n < maxRows; n++ {
		CMPQ(rows, Imm(uint64(n)))
		JE(LabelRef(fmt.Sprintf("rows%dx2", n)))
	}
	JMP(LabelRef(fmt.Sprintf("rows%dx2", maxRows)))
	Label("single")
	for n := 1; n < maxRows; n++ {
		CMPQ(rows, Imm(uint64(n)))
		JE(LabelRef(fmt.Sprintf("rows%dx1", n)))
	}
	for p := 1; p <= 2; p++ {
		for n := maxRows; n > 0; n-- {
			t.rows(n, p)
		}
	}
}

// wideTile is the registers of tileAVX512. Rows of a are addressed from one register for three of them.
type wideTile struct {
	k, row, step, b, ldb, gap, c, ldc reg.Register
	a                                 [4]reg.GPVirtual
}

// at is the element of row i of a.
func (t wideTile) at(i int) Mem {
	switch i % 3 {
	case 1:
		return Mem{Base: t.a[i/3], Index: t.row, Scale: 1}
	case 2:
		return Mem{Base: t.a[i/3], Index: t.row, Scale: 2}
	}
	return Mem{Base: t.a[i/3]}
}

func (t wideTile) rows(n, panels int) {
	name := func(s string) string { return fmt.Sprintf("%s%dx%d", s, n, panels) }
	Label(name("rows"))
	row := GP64()
	MOVQ(t.c, row)
	acc := make([][]reg.VecVirtual, n)
	for i := range acc {
		for j := range panels {
			PREFETCHT0(Mem{Base: row, Disp: 64 * j})
			acc[i] = append(acc[i], ZMM())
			VPXORD(acc[i][j], acc[i][j], acc[i][j])
		}
		if i < n-1 {
			ADDQ(t.ldc, row)
		}
	}
	b := make([]reg.VecVirtual, panels)
	for j := range b {
		b[j] = ZMM()
	}
	x := [4]reg.VecVirtual{ZMM(), ZMM(), ZMM(), ZMM()}
	step := func() {
		VMOVUPS(Mem{Base: t.b}, b[0])
		if panels > 1 {
			VMOVUPS(Mem{Base: t.b, Index: t.gap, Scale: 1}, b[1])
		}
		ADDQ(t.ldb, t.b)
		for i := range acc {
			VBROADCASTSS(t.at(i), x[i%len(x)])
			for j := range b {
				VFMADD231PS(b[j], x[i%len(x)], acc[i][j])
			}
		}
		for i := 0; 3*i < n; i++ {
			ADDQ(t.step, t.a[i])
		}
	}
	unrolled := GP64()
	MOVQ(t.k, unrolled)
	SHRQ(Imm(1), unrolled)
	JZ(LabelRef(name("tail")))
	Label(name("loop"))
	step()
	step()
	DECQ(unrolled)
	JNZ(LabelRef(name("loop")))
	Label(name("tail"))
	ANDQ(Imm(1), t.k)
	JZ(LabelRef(name("store")))
	step()

	Label(name("store"))
	accumulate := Load(Param("accumulate"), GP8())
	TESTB(accumulate, accumulate)
	JZ(LabelRef(name("write")))
	MOVQ(t.c, row)
	for i := range acc {
		for j := range panels {
			VADDPS(Mem{Base: row, Disp: 64 * j}, acc[i][j], acc[i][j])
		}
		if i < n-1 {
			ADDQ(t.ldc, row)
		}
	}
	Label(name("write"))
	for i := range acc {
		for j := range panels {
			VMOVUPS(acc[i][j], Mem{Base: t.c, Disp: 64 * j})
		}
		if i < n-1 {
			ADDQ(t.ldc, t.c)
		}
	}
	VZEROUPPER()
	RET()
}
