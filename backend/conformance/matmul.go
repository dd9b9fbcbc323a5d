package conformance

import (
	"math/rand/v2"

	"github.com/vktrain/vktrain/graph"
)

// matMulSizes are (M, N, K): ones, primes, sizes on both sides of the tiles that kernels use, and multiples of 4 that are no multiples of a tile.
var matMulSizes = [][3]int{{1, 1, 1}, {1, 129, 7}, {3, 2, 257}, {17, 31, 33}, {63, 65, 17}, {64, 64, 64}, {129, 33, 65}, {127, 1, 63}, {132, 68, 20}}

var orientations = []struct {
	name           string
	transA, transB bool
}{{"NN", false, false}, {"NT", false, true}, {"TN", true, false}, {"TT", true, true}}

func matMulCases() []opCase {
	var list []opCase
	mode := noAddend
	for _, o := range orientations[:3] {
		for _, s := range matMulSizes {
			c := matMulCase(o.name, graph.MatMulAttr{TransA: o.transA, TransB: o.transB}, nil, s, mode)
			if s[0] == 17 {
				c.special = true
				c.extra = matMulExtremes(s[2])
			}
			list = append(list, c)
			mode = (mode + 1) % 3
		}
		list = append(list,
			matMulCase(o.name, graph.MatMulAttr{TransA: o.transA, TransB: o.transB, Batched: true}, []int{3}, [3]int{5, 7, 11}, mode),
			matMulCase(o.name, graph.MatMulAttr{TransA: o.transA, TransB: o.transB, Batched: true}, []int{2, 3}, [3]int{33, 65, 31}, (mode+1)%3))
	}
	tt := graph.MatMulAttr{TransA: true, TransB: true}
	list = append(list, matMulCase("TT", tt, nil, [3]int{33, 17, 65}, separate))
	tt.Batched = true
	list = append(list, matMulCase("TT", tt, []int{5}, [3]int{7, 13, 3}, inPlace))
	return append(list, ranks()...)
}

func matMulCase(name string, attr graph.MatMulAttr, batch []int, mnk [3]int, mode addendMode) opCase {
	m, n, k := mnk[0], mnk[1], mnk[2]
	shape := func(rows, cols int, swap bool) []int {
		if swap {
			rows, cols = cols, rows
		}
		return append(append([]int{}, batch...), rows, cols)
	}
	c := opCase{attr: attr,
		in:  []tensor{f32(shape(m, k, attr.TransA)...), f32(shape(k, n, attr.TransB)...), {}},
		out: []tensor{f32(shape(m, n, false)...)}}
	if batch != nil {
		name = "batch " + dims(batch...) + " " + name
	}
	c.name = name + " " + dims(m, n, k) + mode.String()
	c.addend(mode, 2)
	return c
}

// ranks reads operands of other ranks as matrices, such as x (B, T, K) and W (N, K), and has a batch over two dimensions or more than
// one dispatch may count.
func ranks() []opCase {
	linear := graph.MatMulAttr{TransB: true}
	return []opCase{
		{name: "NT of rank 1", attr: linear, in: []tensor{f32(19), f32(23, 19), {}}, out: []tensor{f32(23)}},
		{name: "NT of rank 3 and addend", attr: linear, in: []tensor{f32(2, 5, 19), f32(23, 19), f32(2, 5, 23)}, out: []tensor{f32(2, 5, 23)}},
		{name: "TN of rank 4", attr: graph.MatMulAttr{TransA: true}, in: []tensor{f32(2, 1, 5, 19), f32(10, 23), {}}, out: []tensor{f32(19, 23)}},
		matMulCase("NN", graph.MatMulAttr{Batched: true}, []int{66000}, [3]int{2, 1, 3}, noAddend),
	}
}

func matMulExtremes(k int) []variant {
	return []variant{
		{name: "products of 1e30 and 1e-30", set: func(in [][]float64, r *rand.Rand) {
			scaleBy(1e30, 0)(in, r)
			scaleBy(1e-30, 1)(in, r)
		}},
		{name: "subnormal products", set: scaleBy(1e-20, 0, 1)},
		{name: "sums that cancel", set: func(in [][]float64, _ *rand.Rand) {
			for i := range in[0] {
				in[0][i] = float64(1 - i/(1+len(in[0])/k)%2*2)
			}
		}},
	}
}

// The bound of an element is u (K + 1) sum over l of |a b|, whatever the order of the sum.
func matMulBound(n *graph.Node, in, out [][]num) {
	at := graph.AttrOf[graph.MatMulAttr](n)
	batch, rows, cols, inner := graph.MatMulDims(n)
	a, b := make([]num, inner), make([]num, inner)
	for z := range batch {
		az, bz := in[0][z*rows*inner:], in[1][z*inner*cols:]
		for i := range rows {
			for l := range inner {
				if at.TransA {
					a[l] = az[l*rows+i]
				} else {
					a[l] = az[i*inner+l]
				}
			}
			for j := range cols {
				for l := range inner {
					if at.TransB {
						b[l] = bz[j*inner+l]
					} else {
						b[l] = bz[l*cols+j]
					}
				}
				at := (z*rows+i)*cols + j
				out[0][at] = dotPlus(in[2], at, a, b)
			}
		}
	}
}

// dotPlus is a dot product to which an addend may be added first, last or between.
func dotPlus(addend []num, i int, a, b []num) num {
	if addend == nil {
		return dotNum(a, b)
	}
	one := exact(1)
	return dotNum(append(a[:len(a):len(a)], addend[i]), append(b[:len(b):len(b)], one))
}
