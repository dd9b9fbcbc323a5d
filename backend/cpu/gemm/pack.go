package gemm

import "github.com/vktrain/vktrain/backend/cpu/simd"

// packPanels is how many panels of b a task packs.
const packPanels = 4

// gap is the room behind a panel of a for the surplus of its last step, which is packed as 8 or 16 elements.
const gap = 16

// A packed block of b is, for each kc steps of k, its panels of 16 columns, each step by step.

// packTasks is the number of tasks that pack the current block of b: groups of panels, and blocks of k.
func (g *Mul) packTasks() (groups, blocks int) {
	nb := min(g.nc, g.n-g.jc)
	if !g.packB && nb%nr == 0 {
		return 0, 0
	}
	return ceil(ceil(nb, nr), packPanels), ceil(min(g.kg, g.k-g.pc), g.kc)
}

// panelB is the panel of b at column j of the current block, from step p of it, its rows' distance, and that of the next panel of its kind.
func (g *Mul) panelB(j, p, kb, nb int) (b []float32, ldb, apart int) {
	switch {
	case j >= nb:
		return nil, 0, 0
	case !g.packB && j+nr <= nb:
		return g.b.Data[(g.pc+p)*g.b.Row+g.jc+j:], g.b.Row, nr
	}
	return g.s.b[p*ceil(nb, nr)*nr+j*kb:], nr, nr * kb
}

// packBlock packs a few panels over one block of k.
func (g *Mul) packBlock(_, i int) {
	groups, _ := g.packTasks()
	nb := min(g.nc, g.n-g.jc)
	p := i / groups * g.kc
	kb := min(g.kc, min(g.kg, g.k-g.pc)-p)
	j := i % groups * packPanels * nr
	cols := min(packPanels*nr, nb-j)
	dst := g.s.b[p*ceil(nb, nr)*nr+j*kb:]
	at := (g.pc+p)*g.b.Row + (g.jc+j)*g.b.Col
	if g.b.Data == nil {
		packColumns(dst, g.b.BF16[at:], g.b, cols, kb)
	} else {
		packColumns(dst, g.b.Data[at:], g.b, cols, kb)
	}
}

// packColumns packs panels of 16 columns of b, whose first element is src[0], over k steps. Columns beyond the last hold anything.
func packColumns[T simd.Number](dst []float32, src []T, b Matrix, cols, k int) {
	for j := 0; j < cols; j += nr {
		d, have := dst[j*k:(j+nr)*k], min(nr, cols-j)
		if b.Col != 1 {
			s := src[j*b.Col:]
			simd.Transpose(d, nr, s, b.Col, min(8, have), k)
			if have > 8 {
				s = s[8*b.Col:]
			}
			simd.Transpose(d[8:], nr, s, b.Col, max(1, have-8), k)
			continue
		}
		s, l := src[j:], k
		if have < nr {
			l = fit(len(s), nr, b.Row, k)
		}
		if l > 0 {
			simd.Strided(d, nr, s, b.Row, nr, l)
		}
		for ; l < k; l++ {
			var last [nr]T
			copy(last[:], s[l*b.Row:l*b.Row+have])
			simd.Strided(d[l*nr:], nr, last[:], nr, nr, 1)
		}
	}
}

// packRows packs kb steps from pc of rows i0..i1-1 of a: panels of up to mr rows, each step by step.
func (g *Mul) packRows(dst []float32, i0, i1, pc, kb int) {
	at := i0*g.a.Row + pc*g.a.Col
	if g.a.Data == nil {
		packRows(dst, g.a.BF16[at:], g.a, i1-i0, kb)
	} else {
		packRows(dst, g.a.Data[at:], g.a, i1-i0, kb)
	}
}

func packRows[T simd.Number](dst []float32, src []T, a Matrix, m, k int) {
	panels := ceil(m, mr)
	if a.Col == 1 {
		for q := range panels {
			r0, r1 := q*m/panels, (q+1)*m/panels
			d, rows := dst[r0*k+gap*q:], r1-r0
			if rows > 8 { // first, since its surplus is overwritten by the rows before
				simd.Transpose(d[8:], rows, src[(r0+8)*a.Row:], a.Row, rows-8, k)
			}
			simd.Transpose(d, rows, src[r0*a.Row:], a.Row, min(8, rows), k)
		}
		return
	}
	// A few steps at a time, so that the panels that share a cache line find it.
	const steps = 32
	for l := 0; l < k; l += steps {
		n := min(steps, k-l)
		for q := range panels {
			r0, r1 := q*m/panels, (q+1)*m/panels
			packSteps(dst[r0*k+gap*q+l*(r1-r0):], r1-r0, src[l*a.Col+r0:], a.Col, n)
		}
	}
}

func packSteps[T simd.Number](dst []float32, rows int, src []T, ld, k int) {
	width := 8
	if rows > 8 {
		width = 16
	}
	l := fit(len(src), width, ld, k)
	if l > 0 {
		simd.Strided(dst, rows, src, ld, width, l)
	}
	for ; l < k; l++ {
		var last [16]T
		copy(last[:], src[l*ld:l*ld+rows])
		simd.Strided(dst[l*rows:], rows, last[:], 16, width, 1)
	}
}

// fit is how many of k steps, ld apart, may be read to a given width from size elements.
func fit(size, width, ld, k int) int {
	if size < width {
		return 0
	}
	return min(k, (size-width)/ld+1)
}
