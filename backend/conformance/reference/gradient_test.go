package reference_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// gradientCase checks the gradient that graph emits against central differences, both in float64 on the reference interpreter.
type gradientCase struct {
	name  string
	build func(b *graph.Builder, v func(name string, shape ...int) *graph.Value) *graph.Value // v declares a variable to differentiate by
	ints  map[string][]int32                                                                  // inputs that build declares
}

func TestGradientsAgainstCentralDifferences(t *testing.T) {
	for _, c := range gradientCases() {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

// project is a random linear form of y, c2ᵀ y c1 with y as a matrix of rows: its gradient differs in every element.
func project(b *graph.Builder, y *graph.Value) *graph.Value {
	c1 := b.Var("c1", graph.F32, 1, y.Shape().Last())
	c2 := b.Var("c2", graph.F32, y.Shape().Rows(), 1)
	return b.MatMul(b.Linear(y, c1, nil), c2, nil, nil, graph.MatMulAttr{TransA: true})
}

// machine makes the program of a loss and its gradients, with random variables.
func (c gradientCase) machine(t *testing.T, into bool) (m *reference.Machine, vars []*graph.Value) {
	b := graph.NewBuilder()
	y := c.build(b, func(name string, shape ...int) *graph.Value {
		v := b.Var(name, graph.F32, shape...)
		vars = append(vars, v)
		return v
	})
	loss := y
	if y.Elems() > 1 {
		loss = project(b, y)
	}
	b.Output("loss", loss)
	acc := map[*graph.Value]*graph.Value{}
	if into {
		for _, v := range vars {
			acc[v] = b.Var("acc."+v.Name(), graph.F32, v.Shape()...)
		}
	}
	dy := b.Fill(b.Temp("dy", graph.F32, 1), 1)
	grads, err := b.Grad(loss, dy, vars, acc)
	require.NoError(t, err)
	for i, v := range vars {
		if into {
			require.Same(t, acc[v], grads[i])
		}
		b.Output("d"+v.Name(), grads[i])
	}
	p := b.Build(c.name)
	m = reference.New(p)
	for _, v := range p.VarValues() {
		h := fnv.New64a()
		h.Write([]byte(v.Name()))
		r := rand.New(rand.NewPCG(1, h.Sum64()))
		x := make([]float64, v.Elems())
		for i := range x {
			x[i] = r.NormFloat64()
		}
		m.Set(v.Name(), x)
	}
	for _, v := range p.Inputs() {
		m.Set(v.Name(), c.ints[v.Name()])
	}
	return m, vars
}

func (c gradientCase) check(t *testing.T) {
	m, vars := c.machine(t, false)
	loss := func() float64 {
		require.NoError(t, m.Run())
		return m.Get("loss")[0]
	}
	size := math.Abs(loss())
	got := map[string][]float64{}
	for _, v := range vars {
		got[v.Name()] = m.Get("d" + v.Name())
	}
	for _, v := range vars {
		x, grad := m.Get(v.Name()), got[v.Name()]
		largest := size
		for _, g := range grad {
			largest = max(largest, math.Abs(g))
		}
		for i := range x {
			const h = 1e-5
			at := x[i]
			x[i] = at + h
			m.Set(v.Name(), x)
			up := loss()
			x[i] = at - h
			m.Set(v.Name(), x)
			down := loss()
			x[i] = at
			m.Set(v.Name(), x)
			// The difference is off by h² f‴/6, some 1e-10, and by the rounding of f, 1e-16 / h.
			require.InDelta(t, (up-down)/(2*h), grad[i], 1e-8*max(1, largest), "d%s[%d]", v.Name(), i)
		}
	}
	c.checkInto(t, got)
}

// checkInto: accumulators receive the same gradients on top of what they hold.
func (c gradientCase) checkInto(t *testing.T, grads map[string][]float64) {
	m, vars := c.machine(t, true)
	before := map[string][]float64{}
	for _, v := range vars {
		before[v.Name()] = m.Get("acc." + v.Name())
	}
	require.NoError(t, m.Run())
	for _, v := range vars {
		for i, got := range m.Get("acc." + v.Name()) {
			want := before[v.Name()][i] + grads[v.Name()][i]
			require.InDelta(t, want, got, 1e-12*max(1, math.Abs(want)), "acc.%s[%d]", v.Name(), i)
		}
	}
}
