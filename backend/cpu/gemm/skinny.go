package gemm

import "github.com/vktrain/vktrain/backend/cpu/simd"

// maxFew is the most rows or columns of a product that is made of dot products, without packing.
const maxFew = 4

// isSkinny tells whether a product has few rows or columns, of operands that are contiguous along k: then each is read once, as it is.
func (g *Mul) isSkinny() bool {
	return min(g.m, g.n) <= maxFew && g.a.Data != nil && g.b.Data != nil && g.a.Col == 1 && g.b.Row == 1
}

// splitSkinny cuts the longer side into tasks.
func (g *Mul) splitSkinny(workers int) {
	g.rowTasks = 1
	if workers > 1 {
		g.rowTasks = min(4*workers, g.m*g.n*g.k/minTask+1, ceil(max(g.m, g.n), simd.DotCols))
	}
}

// dots computes task i of a skinny product.
func (g *Mul) dots(_, i int) {
	few, x, ldx, row := g.m, g.a.Data, g.a.Row, g.ldc
	many, y, ldy, col := g.n, g.b.Data, g.b.Col, 1
	if g.m > g.n {
		few, x, ldx, row, many, y, ldy, col = many, y, ldy, col, few, x, ldx, row
	}
	groups := ceil(many, simd.DotCols)
	j1 := min(many, (i+1)*groups/g.rowTasks*simd.DotCols)
	for j := i * groups / g.rowTasks * simd.DotCols; j < j1; j += simd.DotCols {
		cols := min(simd.DotCols, j1-j)
		for r := 0; r < few; r += simd.DotRows {
			rows := min(simd.DotRows, few-r)
			c := g.c[r*row+j*col:]
			if g.addend != nil && &g.addend[0] != &g.c[0] {
				for u := range rows {
					for v := range cols {
						c[u*row+v*col] = g.addend[(r+u)*row+(j+v)*col]
					}
				}
			}
			simd.Dots(rows, cols, g.k, x[r*ldx:], ldx, y[j*ldy:], ldy, c, row, col, g.addend != nil)
		}
	}
}
