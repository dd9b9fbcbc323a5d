package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendKeepsTheCallersOperands(t *testing.T) {
	b := NewBuilder()
	x, y := b.Var("x", F32, 2, 3), b.Var("y", F32, 2, 3)
	b.Append(OpRMSNorm, []*Value{x, nil, nil}, []*Value{y}, NormAttr{Eps: 1})
	require.Equal(t, "%y = rms_norm(%x, -, -) Eps=1", b.Build("p").Nodes()[0].String())
}

func TestAppendChecksTheNumberOfOperands(t *testing.T) {
	b := NewBuilder()
	x, y := b.Var("x", F32, 2, 3), b.Var("y", F32, 2, 3)
	require.PanicsWithValue(t, "graph: append of softmax with 2 operands, want [x]", func() {
		b.Append(OpSoftmax, []*Value{x, x}, []*Value{y}, nil)
	})
	require.PanicsWithValue(t, "graph: append of add without b", func() {
		b.Append(OpAdd, []*Value{x, nil}, []*Value{y}, nil)
	})
	require.PanicsWithValue(t, "graph: append of op 0", func() { b.Append(OpInvalid, nil, nil, nil) })
}
