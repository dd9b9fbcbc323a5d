// Command asm generates the amd64 kernels of backend/cpu/simd, one family a file.
//
//	go generate ./backend/cpu/simd
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// families of kernels, by the name of their file.
var families = map[string]func(){
	"gemm":   gemm6x16,
	"vector": vector,
}

func main() {
	family := flag.String("family", "", "the kernels to generate")
	flag.Parse()
	emit := families[*family]
	if emit == nil {
		fmt.Fprintf(os.Stderr, "asm: no family %q\n", *family)
		os.Exit(2)
	}
	ConstraintExpr("amd64")
	emit()
	Generate()
}

// gemm6x16 keeps a tile of 6 rows and 2 vectors in 12 registers; each step of k loads 2 vectors of b, broadcasts 6 elements
// of a, and does 12 FMAs, which is what two FMA ports can retire in the 6 cycles that its 8 loads take.
func gemm6x16() {
	const rows, unroll = 6, 4
	TEXT("gemm6x16AVX2", NOSPLIT, "func(k int, a, b, c *float32, ldc int, accumulate bool)")
	Doc("gemm6x16AVX2 is gemm6x16 with AVX2 and FMA.")
	k := Load(Param("k"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	accumulate := Load(Param("accumulate"), GP8())
	SHLQ(Imm(2), ldc)

	acc := make([][2]reg.VecVirtual, rows)
	for i := range acc {
		acc[i] = [2]reg.VecVirtual{YMM(), YMM()}
		VXORPS(acc[i][0], acc[i][0], acc[i][0])
		VXORPS(acc[i][1], acc[i][1], acc[i][1])
	}
	b0, b1 := YMM(), YMM()
	bc := [2]reg.VecVirtual{YMM(), YMM()}
	step := func(u int) {
		VMOVUPS(Mem{Base: b, Disp: 64 * u}, b0)
		VMOVUPS(Mem{Base: b, Disp: 64*u + 32}, b1)
		for i := range acc {
			x := bc[i%2]
			VBROADCASTSS(Mem{Base: a, Disp: 4 * (rows*u + i)}, x)
			VFMADD231PS(b0, x, acc[i][0])
			VFMADD231PS(b1, x, acc[i][1])
		}
	}
	steps := GP64()
	MOVQ(k, steps)
	SHRQ(Imm(2), steps)
	JZ(LabelRef("tail"))
	Label("loop")
	PREFETCHT0(Mem{Base: a, Disp: 4 * rows * unroll * 8})
	for u := range unroll {
		step(u)
	}
	ADDQ(U32(4*rows*unroll), a)
	ADDQ(U32(64*unroll), b)
	DECQ(steps)
	JNZ(LabelRef("loop"))
	Label("tail")
	ANDQ(U32(3), k)
	JZ(LabelRef("store"))
	Label("tailloop")
	step(0)
	ADDQ(U32(4*rows), a)
	ADDQ(U32(64), b)
	DECQ(k)
	JNZ(LabelRef("tailloop"))

	Label("store")
	CMPB(accumulate, Imm(0))
	JE(LabelRef("write"))
	row := GP64()
	MOVQ(c, row)
	for i := range acc {
		VADDPS(Mem{Base: row}, acc[i][0], acc[i][0])
		VADDPS(Mem{Base: row, Disp: 32}, acc[i][1], acc[i][1])
		if i < rows-1 {
			ADDQ(ldc, row)
		}
	}
	Label("write")
	for i := range acc {
		VMOVUPS(acc[i][0], Mem{Base: c})
		VMOVUPS(acc[i][1], Mem{Base: c, Disp: 32})
		if i < rows-1 {
			ADDQ(ldc, c)
		}
	}
	VZEROUPPER()
	RET()
}
