// Package gemm multiplies float32 matrices on the CPU: panels are packed for the micro-kernel of package simd, and blocks are sized for
// the caches (Goto & van de Geijn 2008).
//
// The order in which a product's terms are added depends on its shape alone: blocks of k are added in order, and no block of
// k is split over workers. So the result has the same bits for any number of workers.
package gemm

import (
	"github.com/vktrain/vktrain/backend/cpu/simd"
)

// Block sizes in elements: a packed block of a (mc x kc) stays in a core's L2 and a panel of b (kc x 16) in its L1; a packed block of
// b (kc x nc) is shared by the workers and stays in the L3.
const (
	kc = 256
	mc = 96
	nc = 2048
)

// Matrix is a strided view: element (i, j) is at Data[i*Row+j*Col]. One of the strides is 1.
type Matrix struct {
	Data     []float32
	Row, Col int
}

// Pool runs work on workers.
type Pool interface {
	// Workers is the number of workers.
	Workers() int
	// For calls f(worker, i) for each i in 0..n-1 and returns when all have. Calls with one worker number do not overlap.
	For(n int, f func(worker, i int))
}

// Mul is a multiplication with its sizes and scratch memory, made once and run many times.
type Mul struct {
	m, n, k int
	a, b    Matrix
	c       []float32
	ldc     int
	addend  []float32 // c's layout; may be c; nil for zero

	s         *Scratch
	jc, pc    int // origin of the current block of b
	packB     func(worker, i int)
	macro     func(worker, i int)
	rowBlocks int
	mb        int // rows in a block
}

// Scratch is the memory for packed blocks. Multiplications that do not run at the same time share one.
type Scratch struct {
	b       []float32
	workers []workerScratch
}

type workerScratch struct {
	a    []float32
	edge [simd.MR * simd.NR]float32
}

// NewScratch makes scratch memory for a pool of workers.
func NewScratch(workers int) *Scratch {
	s := &Scratch{b: make([]float32, kc*nc), workers: make([]workerScratch, workers)}
	for i := range s.workers {
		s.workers[i].a = make([]float32, kc*mc)
	}
	return s
}

// New prepares c = addend + a b, with a (m, k), b (k, n), and c and addend (m, n) with rows ldc apart.
func New(m, n, k int, a, b Matrix, c []float32, ldc int, addend []float32, s *Scratch) *Mul {
	g := &Mul{m: m, n: n, k: k, a: a, b: b, c: c, ldc: ldc, addend: addend, s: s}
	// Small products get smaller blocks of rows, so that every worker has some.
	g.mb = mc
	for g.mb > simd.MR && (m+g.mb-1)/g.mb < 2*len(s.workers) {
		g.mb -= simd.MR
	}
	g.rowBlocks = (m + g.mb - 1) / g.mb
	g.packB = func(_, i int) { g.packPanelB(i) }
	g.macro = func(worker, i int) { g.block(&g.s.workers[worker], i) }
	return g
}

// Run multiplies.
func (g *Mul) Run(p Pool) {
	for g.jc = 0; g.jc < g.n; g.jc += nc {
		for g.pc = 0; g.pc < g.k; g.pc += kc {
			p.For((min(nc, g.n-g.jc)+simd.NR-1)/simd.NR, g.packB)
			p.For(g.rowBlocks, g.macro)
		}
	}
}

// packPanelB packs panel i of the current block of b: columns i*16.. as kb rows of 16, zero beyond n.
func (g *Mul) packPanelB(i int) {
	kb := min(kc, g.k-g.pc)
	j0 := g.jc + i*simd.NR
	cols := min(simd.NR, g.n-j0)
	pack(g.s.b[i*simd.NR*kb:(i+1)*simd.NR*kb], g.b.Data[j0*g.b.Col+g.pc*g.b.Row:], g.b.Col, g.b.Row, simd.NR, cols, kb)
}

// pack writes dst[l*width+i] = src[i*lane+l*step] for i < used, l < k, and 0 for used <= i < width.
func pack(dst, src []float32, lane, step, width, used, k int) {
	if used < width {
		clear(dst)
	}
	if lane == 1 {
		for l := range k {
			copy(dst[l*width:l*width+used], src[l*step:l*step+used])
		}
		return
	}
	for i := range used {
		s := src[i*lane:]
		d := dst[i:]
		if step == 1 {
			s = s[:k]
			for l, o := 0, 0; l < len(s) && o < len(d); l, o = l+1, o+width {
				d[o] = s[l]
			}
			continue
		}
		for l := range k {
			d[l*width] = s[l*step]
		}
	}
}

// block computes the rows of block i against the current block of b.
func (g *Mul) block(w *workerScratch, i int) {
	kb := min(kc, g.k-g.pc)
	nb := min(nc, g.n-g.jc)
	i0 := i * g.mb
	rows := min(g.mb, g.m-i0)
	for p := 0; p < rows; p += simd.MR {
		pack(w.a[p*kb:(p+simd.MR)*kb], g.a.Data[(i0+p)*g.a.Row+g.pc*g.a.Col:], g.a.Row, g.a.Col, simd.MR, min(simd.MR, rows-p), kb)
	}
	accumulate := g.pc > 0 || g.addend != nil
	if g.pc == 0 && g.addend != nil && &g.addend[0] != &g.c[0] {
		for r := i0; r < i0+rows; r++ {
			copy(g.c[r*g.ldc+g.jc:r*g.ldc+g.jc+nb], g.addend[r*g.ldc+g.jc:])
		}
	}
	for j := 0; j < nb; j += simd.NR {
		b := g.s.b[j*kb : (j+simd.NR)*kb]
		cols := min(simd.NR, nb-j)
		for p := 0; p < rows; p += simd.MR {
			a := w.a[p*kb : (p+simd.MR)*kb]
			tile := min(simd.MR, rows-p)
			c := g.c[(i0+p)*g.ldc+g.jc+j:]
			if tile == simd.MR && cols == simd.NR {
				simd.Gemm6x16(kb, a, b, c, g.ldc, accumulate)
				continue
			}
			simd.Gemm6x16(kb, a, b, w.edge[:], simd.NR, false)
			for r := range tile {
				dst, src := c[r*g.ldc:r*g.ldc+cols], w.edge[r*simd.NR:]
				if accumulate {
					for x := range dst {
						dst[x] += src[x]
					}
				} else {
					copy(dst, src[:cols])
				}
			}
		}
	}
}
