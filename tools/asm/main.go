// Command asm generates the amd64 kernels of backend/cpu/simd, one family a file.
//
//	go generate ./backend/cpu/simd
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
)

// families of kernels, by the name of their file.
var families = map[string]func(){
	"gemm":      gemm,
	"gemm512":   gemm512,
	"vector":    vector,
	"norm":      norm,
	"pointwise": pointwise,
	"peak":      peak,
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
