// Package gemm multiplies float32 matrices on the CPU: panels are packed for the micro-kernel of package simd, and blocks are sized for
// the caches (Goto & van de Geijn 2008). Products of few rows or columns are dot products, without packing.
//
// The order in which a product's terms are added depends on its shape alone: blocks of k are added in order, and no block of
// k is split over workers. So the result has the same bits for any number of workers.
package gemm

import (
	"github.com/vktrain/vktrain/backend/cpu/simd"
)

const (
	nr = simd.NR
	// pair is how many panels of b a tile takes where the processor has the registers.
	pair = 2

	// maxKC is the most steps of k that a tile goes through before its sums are added to c: a panel of b (kc x 16) stays in the L1.
	maxKC = 384
	// maxMC is the most rows of a block of a (mc x kc), which stays in a core's L2.
	maxMC = 120
	// sharedB is how many elements of b are packed at once, for all workers.
	sharedB = 1 << 20
	// wideB is how many columns of b are packed at once when there is a choice: for fewer, packing a costs more.
	wideB = 4096
	// minTask is the least number of multiplications worth handing out.
	minTask = 1 << 17
)

var mr = simd.MR

// Matrix is a strided view: element (i, j) is at Data[i*Row+j*Col], or at BF16 if Data is nil. One of the strides is 1.
type Matrix struct {
	Data     []float32
	Row, Col int
	BF16     []uint16 // bfloat16 bits
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
	s       *Scratch

	kc, kg, nc int // steps of k in a tile, in a packed block of b; columns in a packed block of b
	rowTasks   int // a task is a block of rows and of columns of the current block of b
	colTasks   int
	packA      bool
	packB      bool

	jc, pc int // origin of the current block of b
	skinny bool
	pack   func(worker, i int)
	task   func(worker, i int)
	dot    func(worker, i int)
}

// Scratch is the memory for packed blocks. Multiplications that do not run at the same time share one.
type Scratch struct {
	b       []float32
	workers []workerScratch
}

type workerScratch struct {
	a    []float32
	edge [simd.MaxMR * pair * nr]float32
}

// NewScratch makes scratch memory for a pool of workers.
func NewScratch(workers int) *Scratch {
	return &Scratch{workers: make([]workerScratch, workers)}
}

// New prepares c = addend + a b, with a (m, k), b (k, n), and c and addend (m, n) with rows ldc apart.
func New(m, n, k int, a, b Matrix, c []float32, ldc int, addend []float32, s *Scratch) *Mul {
	g := &Mul{}
	g.init(s)
	g.set(m, n, k, a, b, c, ldc, addend)
	return g
}

func (g *Mul) init(s *Scratch) {
	g.s = s
	g.pack = g.packBlock
	g.task = func(worker, i int) { g.tiles(&g.s.workers[worker], i) }
	g.dot = g.dots
}

func ceil(x, y int) int { return (x + y - 1) / y }

// set plans a multiplication and makes sure of its memory.
func (g *Mul) set(m, n, k int, a, b Matrix, c []float32, ldc int, addend []float32) {
	g.m, g.n, g.k, g.a, g.b, g.c, g.ldc, g.addend = m, n, k, a, b, c, ldc, addend
	if g.skinny = g.isSkinny(); g.skinny {
		g.splitSkinny(len(g.s.workers))
		return
	}
	g.kc = min(k, ceil(ceil(k, ceil(k, maxKC)), 8)*8)
	g.nc = min(n, max(sharedB/k, wideB)/nr*nr)
	g.kg = min(k, max(1, sharedB/(ceil(g.nc, nr)*nr)/g.kc)*g.kc)
	g.packB = b.Data == nil || b.Col != 1 || m > 2*mr
	g.split(len(g.s.workers))
	mb, cols := ceil(ceil(m, mr), g.rowTasks)*mr, ceil(ceil(g.nc, nr), g.colTasks)*nr
	g.packA = a.Data == nil || a.Col != 1 && cols > 4*nr
	grow(&g.s.b, ceil(g.nc, nr)*nr*g.kg)
	if g.packA {
		for i := range g.s.workers {
			grow(&g.s.workers[i].a, mb*(g.kc+gap))
		}
	}
}

// grow makes sure of n elements, in steps, so that a buffer soon stays as it is.
func grow(x *[]float32, n int) {
	const step = 1 << 14
	if len(*x) < n {
		*x = make([]float32, ceil(n, step)*step)
	}
}

// split cuts a block of the product into tasks: enough that the workers end together, but no smaller than is worth it.
func (g *Mul) split(workers int) {
	units := ceil(g.m, mr)
	g.rowTasks, g.colTasks = ceil(g.m, maxMC), 1
	if workers == 1 {
		return
	}
	want := min(4*workers, g.m*g.nc*g.kg/minTask+1)
	if g.rowTasks < want {
		g.rowTasks = min(want, max(g.rowTasks, units/8))
		g.colTasks = min(ceil(want, g.rowTasks), ceil(g.nc, 4*nr))
	}
	if tail := g.rowTasks * g.colTasks % workers; tail != 0 && g.colTasks == 1 {
		g.rowTasks = min(units, g.rowTasks+workers-tail)
	}
}

// Run multiplies.
func (g *Mul) Run(p Pool) {
	if g.skinny {
		p.For(g.rowTasks, g.dot)
		return
	}
	for g.jc = 0; g.jc < g.n; g.jc += g.nc {
		for g.pc = 0; g.pc < g.k; g.pc += g.kg {
			if panels, blocks := g.packTasks(); panels > 0 {
				p.For(panels*blocks, g.pack)
			}
			p.For(g.rowTasks*g.colTasks, g.task)
		}
	}
}

// run multiplies on the calling goroutine.
func (g *Mul) run() {
	if g.skinny {
		for i := range g.rowTasks {
			g.dots(0, i)
		}
		return
	}
	for g.jc = 0; g.jc < g.n; g.jc += g.nc {
		for g.pc = 0; g.pc < g.k; g.pc += g.kg {
			panels, blocks := g.packTasks()
			for i := range panels * blocks {
				g.packBlock(0, i)
			}
			for i := range g.rowTasks * g.colTasks {
				g.tiles(&g.s.workers[0], i)
			}
		}
	}
}

// tiles computes task i: its rows against its columns of the current block of b.
func (g *Mul) tiles(w *workerScratch, i int) {
	kg, nb := min(g.kg, g.k-g.pc), min(g.nc, g.n-g.jc)
	units := ceil(g.m, mr)
	i0, i1 := i/g.colTasks*units/g.rowTasks*mr, min(g.m, (i/g.colTasks+1)*units/g.rowTasks*mr)
	panels := ceil(nb, nr)
	j0, j1 := i%g.colTasks*panels/g.colTasks*nr, min(nb, (i%g.colTasks+1)*panels/g.colTasks*nr)
	if i0 >= i1 || j0 >= j1 {
		return
	}
	accumulate := g.pc > 0 || g.addend != nil
	if g.pc == 0 && g.addend != nil && &g.addend[0] != &g.c[0] {
		for r := i0; r < i1; r++ {
			copy(g.c[r*g.ldc+g.jc+j0:r*g.ldc+g.jc+j1], g.addend[r*g.ldc+g.jc+j0:])
		}
	}
	for p := 0; p < kg; p += g.kc {
		g.block(w, i0, i1, j0, j1, p, min(g.kc, kg-p), accumulate)
		accumulate = true
	}
}

// block multiplies rows i0..i1-1 by columns j0..j1-1 of the packed block of b, over the kb steps from p of it.
func (g *Mul) block(w *workerScratch, i0, i1, j0, j1, p, kb int, accumulate bool) {
	a, row, step := g.a.Data, g.a.Row, g.a.Col
	if g.packA {
		g.packRows(w.a, i0, i1, g.pc+p, kb)
	}
	nb := min(g.nc, g.n-g.jc)
	panels := ceil(i1-i0, mr)
	for j := j0; j < j1; {
		b, ldb, apart := g.panelB(j, p, kb, nb)
		cols := min(nr, j1-j)
		if _, _, next := g.panelB(j+nr, p, kb, nb); j+nr < j1 && next == apart {
			cols = min(pair*nr, j1-j)
		}
		for q := range panels {
			r0, r1 := i0+q*(i1-i0)/panels, i0+(q+1)*(i1-i0)/panels
			rows := r1 - r0
			var x []float32
			if g.packA {
				x, row, step = w.a[(r0-i0)*kb+gap*q:], 1, rows
			} else {
				x = a[r0*row+(g.pc+p)*step:]
			}
			c := g.c[r0*g.ldc+g.jc+j:]
			if cols%nr == 0 {
				simd.Tile(rows, cols/nr, kb, x, row, step, b, ldb, apart, c, g.ldc, accumulate)
				continue
			}
			simd.Tile(rows, ceil(cols, nr), kb, x, row, step, b, ldb, apart, w.edge[:], pair*nr, false)
			for r := range rows {
				dst, src := c[r*g.ldc:r*g.ldc+cols], w.edge[r*pair*nr:]
				if accumulate {
					for x := range dst {
						dst[x] += src[x]
					}
				} else {
					copy(dst, src[:cols])
				}
			}
		}
		j += cols
	}
}
