package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAlone(t *testing.T) {
	b := NewBuilder()
	x, w, acc := b.Input("x", BF16, 2, 3, 8), b.Var("w", BF16, 64, 8), b.Var("acc", F32, 6, 16)
	y := b.MatMul(x, b.View(w, 128, 16, 8), acc, acc, MatMulAttr{TransB: true})
	b.Output("sum", b.Add(y, y, nil))
	p := b.Build("p")
	alone := Alone(p.Nodes()[0])
	require.Equal(t, "%operand2 = matmul(%operand0, %operand1, %operand2) TransB=true", alone.Nodes()[0].String())
	require.Equal(t, []Var{
		{"operand0", BF16, Shape{2, 3, 8}}, {"operand1", BF16, Shape{16, 8}}, {"operand2", F32, Shape{6, 16}},
	}, alone.Vars())
	require.Equal(t, "%operand1 = add(%operand0, %operand0)", Alone(p.Nodes()[1]).Nodes()[0].String())
}
