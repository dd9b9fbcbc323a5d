package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func gemm() {
	tile()
	transposing("transposeF32AVX2", "float32", loadF32, 4)
	transposing("transposeBF16AVX2", "uint16", loadBF16, 2)
	strided("stridedF32AVX2", "float32", loadF32, 4)
	strided("stridedBF16AVX2", "uint16", loadBF16, 2)
	dots()
}

// tile keeps up to 6 rows of 2 vectors in 12 registers. Each step of k loads 2 vectors of b, broadcasts an element of each row of a,
// and does 12 FMAs, which is what two FMA ports can retire in the 6 cycles that its 8 loads take. Rows of a are addressed
// from two registers, three rows each, so any strides will do.
func tile() {
	TEXT("tileAVX2", NOSPLIT, "func(rows, k int, a *float32, row, step int, b *float32, ldb int, c *float32, ldc int, accumulate bool)")
	Pragma("noescape")
	Doc("tileAVX2 is tile with AVX2 and FMA.")
	t := tileRegs{
		k: Load(Param("k"), GP64()), a: Load(Param("a"), GP64()), row: Load(Param("row"), GP64()), step: Load(Param("step"), GP64()),
		b: Load(Param("b"), GP64()), ldb: Load(Param("ldb"), GP64()), c: Load(Param("c"), GP64()), ldc: Load(Param("ldc"), GP64()),
	}
	for _, r := range []reg.Register{t.row, t.step, t.ldb, t.ldc} {
		SHLQ(Imm(2), r)
	}
	t.a3 = GP64()
	LEAQ(Mem{Base: t.a, Index: t.row, Scale: 2}, t.a3)
	ADDQ(t.row, t.a3)
	rows := Load(Param("rows"), GP64())
	for n := 1; n < 6; n++ {
		CMPQ(rows, Imm(uint64(n)))
		JE(LabelRef(fmt.Sprintf("rows%d", n)))
	}
	for n := 6; n > 0; n-- {
		t.rows(n)
	}
}

type tileRegs struct{ k, a, a3, row, step, b, ldb, c, ldc reg.Register }

// at is the element of row i of a.
func (t tileRegs) at(i int) Mem {
	base := t.a
	if i > 2 {
		base = t.a3
	}
	switch i % 3 {
	case 1:
		return Mem{Base: base, Index: t.row, Scale: 1}
	case 2:
		return Mem{Base: base, Index: t.row, Scale: 2}
	}
	return Mem{Base: base}
}

func (t tileRegs) rows(n int) {
	const unroll = 4
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	Label(name("rows"))
	row := GP64()
	MOVQ(t.c, row)
	acc := make([][2]reg.VecVirtual, n)
	for i := range acc {
		PREFETCHT0(Mem{Base: row})
		PREFETCHT0(Mem{Base: row, Disp: 60})
		if i < n-1 {
			ADDQ(t.ldc, row)
		}
		acc[i] = [2]reg.VecVirtual{YMM(), YMM()}
		VXORPS(acc[i][0], acc[i][0], acc[i][0])
		VXORPS(acc[i][1], acc[i][1], acc[i][1])
	}
	b0, b1 := YMM(), YMM()
	x := [2]reg.VecVirtual{YMM(), YMM()}
	step := func() {
		VMOVUPS(Mem{Base: t.b}, b0)
		VMOVUPS(Mem{Base: t.b, Disp: 32}, b1)
		ADDQ(t.ldb, t.b)
		for i := range acc {
			VBROADCASTSS(t.at(i), x[i%2])
			VFMADD231PS(b0, x[i%2], acc[i][0])
			VFMADD231PS(b1, x[i%2], acc[i][1])
		}
		ADDQ(t.step, t.a)
		if n > 3 {
			ADDQ(t.step, t.a3)
		}
	}
	steps := GP64()
	MOVQ(t.k, steps)
	SHRQ(Imm(2), steps)
	JZ(LabelRef(name("tail")))
	Label(name("loop"))
	for range unroll {
		step()
	}
	DECQ(steps)
	JNZ(LabelRef(name("loop")))
	Label(name("tail"))
	ANDQ(U32(unroll-1), t.k)
	JZ(LabelRef(name("store")))
	Label(name("tailloop"))
	step()
	DECQ(t.k)
	JNZ(LabelRef(name("tailloop")))

	Label(name("store"))
	accumulate := Load(Param("accumulate"), GP8())
	TESTB(accumulate, accumulate)
	JZ(LabelRef(name("write")))
	MOVQ(t.c, row)
	for i := range acc {
		VADDPS(Mem{Base: row}, acc[i][0], acc[i][0])
		VADDPS(Mem{Base: row, Disp: 32}, acc[i][1], acc[i][1])
		if i < n-1 {
			ADDQ(t.ldc, row)
		}
	}
	Label(name("write"))
	for i := range acc {
		VMOVUPS(acc[i][0], Mem{Base: t.c})
		VMOVUPS(acc[i][1], Mem{Base: t.c, Disp: 32})
		if i < n-1 {
			ADDQ(t.ldc, t.c)
		}
	}
	VZEROUPPER()
	RET()
}

// transpose8 turns 8 vectors, the rows of a square, into its columns. It uses as many registers again.
func transpose8(r [8]reg.VecVirtual) [8]reg.VecVirtual {
	var s, t [8]reg.VecVirtual
	for i := range s {
		s[i] = YMM()
	}
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(r[i+1], r[i], s[i])
		VUNPCKHPS(r[i+1], r[i], s[i+1])
	}
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			VSHUFPS(Imm(0x44), s[i+j+2], s[i+j], r[i+2*j])
			VSHUFPS(Imm(0xee), s[i+j+2], s[i+j], r[i+2*j+1])
		}
	}
	for i := range 4 {
		t[i], t[i+4] = s[i], s[i+4]
		VPERM2F128(Imm(0x20), r[i+4], r[i], t[i])
		VPERM2F128(Imm(0x31), r[i+4], r[i], t[i+4])
	}
	return t
}

// transposing packs rows that are contiguous along k: squares of 8 by 8. Rows beyond the last one in use are read from the last.
func transposing(name, element string, load func(m Mem, x reg.VecVirtual), size int) {
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *float32, width int, src *%s, ld, rows, k int)", element))
	Pragma("noescape")
	Doc(name + " writes dst[l*width+i] = src[i*ld+l] for i < 8 and l < k, k a multiple of 8; rows >= rows repeat the last.")
	dst := Load(Param("dst"), GP64())
	width := Load(Param("width"), GP64())
	SHLQ(Imm(2), width)
	ld := Load(Param("ld"), GP64())
	for n := size; n > 1; n /= 2 {
		ADDQ(ld, ld)
	}
	rows := Load(Param("rows"), GP64())
	var p [8]reg.GPVirtual
	p[0] = GP64()
	Load(Param("src"), p[0])
	for i := 1; i < 8; i++ {
		p[i] = GP64()
		MOVQ(p[i-1], p[i])
		next := fmt.Sprintf("row%d", i)
		CMPQ(rows, Imm(uint64(i)))
		JLE(LabelRef(next))
		ADDQ(ld, p[i])
		Label(next)
	}
	offset := GP64()
	XORQ(offset, offset)
	k := ld // no longer needed
	MOVQ(NewParamAddr("k", 40), k)
	SHRQ(Imm(3), k)
	Label("loop")
	var r [8]reg.VecVirtual
	for i := range r {
		r[i] = YMM()
		load(Mem{Base: p[i], Index: offset, Scale: uint8(size)}, r[i])
	}
	for _, x := range transpose8(r) {
		VMOVUPS(x, Mem{Base: dst})
		ADDQ(width, dst)
	}
	ADDQ(Imm(8), offset)
	DECQ(k)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func loadF32(m Mem, x reg.VecVirtual) { VMOVUPS(m, x) }

// loadBF16 widens 8 of them.
func loadBF16(m Mem, x reg.VecVirtual) {
	VPMOVZXWD(m, x)
	VPSLLD(Imm(16), x, x)
}

// strided packs rows that are contiguous across: a vector or two a step.
func strided(name, element string, load func(m Mem, x reg.VecVirtual), size int) {
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *float32, width int, src *%s, ld, cols, k int)", element))
	Pragma("noescape")
	Doc(name + " writes dst[l*width+i] = src[l*ld+i] for i < cols and l < k; cols is 8 or 16, and k >= 1.")
	dst := Load(Param("dst"), GP64())
	width := Load(Param("width"), GP64())
	SHLQ(Imm(2), width)
	src := Load(Param("src"), GP64())
	ld := Load(Param("ld"), GP64())
	for n := size; n > 1; n /= 2 {
		ADDQ(ld, ld)
	}
	cols := Load(Param("cols"), GP64())
	k := Load(Param("k"), GP64())
	x, y := YMM(), YMM()
	CMPQ(cols, Imm(16))
	JE(LabelRef("two"))
	Label("one")
	load(Mem{Base: src}, x)
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(ld, src)
	ADDQ(width, dst)
	DECQ(k)
	JNZ(LabelRef("one"))
	VZEROUPPER()
	RET()
	Label("two")
	load(Mem{Base: src}, x)
	load(Mem{Base: src, Disp: 8 * size}, y)
	VMOVUPS(x, Mem{Base: dst})
	VMOVUPS(y, Mem{Base: dst, Disp: 32})
	ADDQ(ld, src)
	ADDQ(width, dst)
	DECQ(k)
	JNZ(LabelRef("two"))
	VZEROUPPER()
	RET()
}

// dots keeps the sums of up to 3 rows of a with 4 of b in 12 registers. A vector of b is read once for all rows.
func dots() {
	TEXT("dotsAVX2", NOSPLIT, "func(rows, k int, a *float32, lda int, b *float32, ldb int, out *float32)")
	Pragma("noescape")
	Doc("dotsAVX2 writes out[(i*4+j)*8+x] = sum of a[i*lda+l] * b[j*ldb+l] over l = x mod 8, for i < rows <= 3, j < 4, l < k, k a multiple of 8.")
	k := Load(Param("k"), GP64())
	lda := Load(Param("lda"), GP64())
	ldb := Load(Param("ldb"), GP64())
	SHLQ(Imm(2), lda)
	SHLQ(Imm(2), ldb)
	a, b, b3, out := Load(Param("a"), GP64()), Load(Param("b"), GP64()), GP64(), Load(Param("out"), GP64())
	LEAQ(Mem{Base: b, Index: ldb, Scale: 2}, b3)
	ADDQ(ldb, b3)
	rows := Load(Param("rows"), GP64())
	for n := 1; n < 3; n++ {
		CMPQ(rows, Imm(uint64(n)))
		JE(LabelRef(fmt.Sprintf("rows%d", n)))
	}
	for n := 3; n > 0; n-- {
		Label(fmt.Sprintf("rows%d", n))
		var acc [3][4]reg.VecVirtual
		var x [3]reg.VecVirtual
		for i := range n {
			x[i] = YMM()
			for j := range acc[i] {
				acc[i][j] = YMM()
				VXORPS(acc[i][j], acc[i][j], acc[i][j])
			}
		}
		y, steps := YMM(), GP64()
		MOVQ(k, steps)
		loop, end := fmt.Sprintf("loop%d", n), fmt.Sprintf("end%d", n)
		SHRQ(Imm(3), steps)
		JZ(LabelRef(end))
		Label(loop)
		for i, m := range []Mem{{Base: a}, {Base: a, Index: lda, Scale: 1}, {Base: a, Index: lda, Scale: 2}}[:n] {
			VMOVUPS(m, x[i])
		}
		for j, m := range []Mem{{Base: b}, {Base: b, Index: ldb, Scale: 1}, {Base: b, Index: ldb, Scale: 2}, {Base: b3}} {
			VMOVUPS(m, y)
			for i := range n {
				VFMADD231PS(y, x[i], acc[i][j])
			}
		}
		ADDQ(Imm(32), a)
		ADDQ(Imm(32), b)
		ADDQ(Imm(32), b3)
		DECQ(steps)
		JNZ(LabelRef(loop))
		Label(end)
		for i := range n {
			for j := range 4 {
				VMOVUPS(acc[i][j], Mem{Base: out, Disp: 32 * (4*i + j)})
			}
		}
		VZEROUPPER()
		RET()
	}
}
