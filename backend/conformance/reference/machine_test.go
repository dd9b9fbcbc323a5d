package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

func TestMachineRunsMatMulInEachOrientation(t *testing.T) {
	a := []float64{1, 2, 3, 4, 5, 6} // (2, 3) or (3, 2)
	b := []float64{7, 8, 9, 10, 11, 12}
	for _, tc := range []struct {
		transA, transB bool
		a, b           []int
		want           []float64
	}{
		{false, false, []int{2, 3}, []int{3, 2}, []float64{58, 64, 139, 154}},
		{false, true, []int{2, 3}, []int{2, 3}, []float64{50, 68, 122, 167}},
		{true, false, []int{3, 2}, []int{3, 2}, []float64{89, 98, 116, 128}},
		{true, true, []int{3, 2}, []int{2, 3}, []float64{76, 103, 100, 136}},
	} {
		g := graph.NewBuilder()
		x, y := g.Input("a", graph.F32, tc.a...), g.Input("b", graph.F32, tc.b...)
		g.Output("c", g.MatMul(x, y, nil, nil, graph.MatMulAttr{TransA: tc.transA, TransB: tc.transB}))
		m := reference.New(g.Build("matmul"))
		m.Set("a", a)
		m.Set("b", b)
		require.NoError(t, m.Run())
		require.Equal(t, tc.want, m.Get("c"), "%+v", tc)
	}
}

func TestViewsShareStorage(t *testing.T) {
	g := graph.NewBuilder()
	v := g.Var("v", graph.F32, 192)
	part := g.View(v, 64, 64)
	g.Fill(part, 2)
	g.Add(part, part, part)
	m := reference.New(g.Build("views"))
	require.NoError(t, m.Run())
	got := m.Get("v")
	require.Equal(t, []float64{0, 4, 4, 0}, []float64{got[63], got[64], got[127], got[128]})
}

func TestMachinesShareVars(t *testing.T) {
	program := func(value float32) *graph.Program {
		g := graph.NewBuilder()
		v := g.Var("v", graph.F32, 3)
		f := g.Fill(g.Temp("f", graph.F32, 3), value)
		g.Add(v, f, v)
		return g.Build("add")
	}
	vars := reference.Vars{}
	for _, m := range []*reference.Machine{reference.NewOver(program(1), vars), reference.NewOver(program(2), vars)} {
		require.NoError(t, m.Run())
	}
	require.Equal(t, []float64{3, 3, 3}, vars["v"])
}

func TestRounding(t *testing.T) {
	for _, tc := range []struct {
		round    func(float64) float64
		in, want float64
	}{
		{reference.ToBF16, 1 + 1.0/256, 1}, // a tie goes to even
		{reference.ToBF16, 1 + 3.0/256, 1 + 2.0/128},
		{reference.ToBF16, -1.00001, -1},
		{reference.ToBF16, 0x1p-133, 0x1p-133},
		{reference.ToBF16, 0x1p-135, 0},
		{reference.ToBF16, math.MaxFloat32, math.Inf(1)},
		{reference.ToF16, 65504, 65504},
		{reference.ToF16, 65519, 65504},
		{reference.ToF16, -65520, math.Inf(-1)},
		{reference.ToF16, 1 + 1.0/2048, 1},
		{reference.ToF16, 0x1.8p-24, 0x1p-23},
		{reference.ToF16, 0x1p-25, 0},
		{reference.ToF16, math.Inf(1), math.Inf(1)},
	} {
		require.Equal(t, tc.want, tc.round(tc.in), "%g", tc.in)
	}
	require.True(t, math.IsNaN(reference.ToF16(math.NaN())))
}
