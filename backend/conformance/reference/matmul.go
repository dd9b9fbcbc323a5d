package reference

import "github.com/vktrain/vktrain/graph"

// c[i,j] = addend[i,j] + sum over l of op(a)[i,l] op(b)[l,j], for each matrix of the batch.
func matMul(n *graph.Node, in, out [][]float64) {
	a, b, addend, c := in[0], in[1], in[2], out[0]
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, rows, cols, inner := graph.MatMulDims(n)
	for z := range batch {
		az, bz := a[z*rows*inner:], b[z*inner*cols:]
		for i := range rows {
			for j := range cols {
				s := 0.0
				for l := range inner {
					ai, bi := i*inner+l, l*cols+j
					if at.TransA {
						ai = l*rows + i
					}
					if at.TransB {
						bi = j*inner + l
					}
					s += az[ai] * bz[bi]
				}
				k := (z*rows+i)*cols + j
				if addend != nil {
					s += addend[k]
				}
				c[k] = s
			}
		}
	}
}
