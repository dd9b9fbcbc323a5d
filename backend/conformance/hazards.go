package conformance

import (
	"fmt"
	"math/rand/v2"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// hazardCases run programs whose nodes read what was just written, write what was just read, write twice, and reuse the arena, through
// views as well: a missing barrier or a wrong place in the arena gives other numbers.
func hazardCases() []testCase {
	var list []testCase
	for i := range 3 {
		list = append(list, scenarioCase("hazards", fmt.Sprintf("fixed program %d", i+1), func() (scenario, error) { return tangle(uint64(i)), nil }))
	}
	return append(list, testCase{Case{"hazards", "fresh program"}, func(b backend.Backend, seed uint64) outcome {
		return tangle(seed).check(b)
	}})
}

const (
	tangleNodes = 60
	tangleRows  = 33
	tangleCols  = 64
)

// tangle is a random program over matrices that are variables' views and temporaries.
func tangle(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 14))
	b := graph.NewBuilder()
	var pool []*graph.Value
	const elems = tangleRows * tangleCols
	for i := range 3 {
		v := b.Var(fmt.Sprint("v", i), graph.F32, 2, tangleRows, tangleCols)
		pool = append(pool, b.View(v, 0, tangleRows, tangleCols), b.View(v, elems, tangleRows, tangleCols))
	}
	weights := b.Var("w", graph.F32, tangleCols, tangleCols)
	pick := func() *graph.Value { return pool[r.IntN(len(pool))] }
	for range tangleNodes {
		x, y, dst := pick(), pick(), pick()
		switch r.IntN(7) {
		case 0:
			b.Fill(dst, float32(r.IntN(5))-2)
		case 1, 2: // into one of its operands, or a new value
			if r.IntN(3) == 0 {
				dst = nil
			} else if r.IntN(2) == 0 {
				dst = x
			} else {
				dst = y
			}
			pool = append(pool, b.Add(x, y, dst))
		case 3:
			pool = append(pool, b.RMSNorm(x, nil, y, 1e-3))
		case 4:
			pool = append(pool, b.SoftCap(x, 3))
		case 5: // accumulates in place
			if x != dst {
				b.MatMul(x, weights, dst, dst, graph.MatMulAttr{})
			}
		case 6: // a new value, which is what every later node may take
			pool = append(pool, b.MatMul(x, weights, nil, nil, graph.MatMulAttr{TransB: true}))
		}
		if len(pool) > 12 { // old values die, and their places in the arena are taken by new ones
			pool = append(pool[:6], pool[len(pool)-6:]...)
		}
	}
	for i, v := range pool {
		b.Output(fmt.Sprint("y", i), v)
	}
	p := b.Build("tangle")
	run := func(m []machine, see func(string, []float64)) {
		r := rand.New(rand.NewPCG(seed, 15))
		for _, v := range p.Vars() {
			x := make([]float32, v.Elems())
			for i := range x {
				x[i] = float32(r.NormFloat64() / 8)
			}
			m[0].Set(v.Name, x)
		}
		for i := range 2 { // the second time over what the first has left
			must(m[0].Run())
			for _, o := range p.Outputs() {
				see(fmt.Sprintf("%s of run %d", o.Name, i+1), m[0].Get(o.Name))
			}
		}
		for _, v := range p.Vars() {
			see(v.Name, m[0].Get(v.Name))
		}
	}
	return scenario{programs: []*graph.Program{p}, run: run}
}
