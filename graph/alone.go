package graph

import "fmt"

// Alone is a program of one node like n, over variables with the shapes and formats of its operands: for timing it and for testing it. Operands that
// are one value in n are one variable, and a view has a variable of its own.
func Alone(n *Node) *Program {
	b := NewBuilder()
	made := map[*Value]*Value{}
	standIns := func(vs []*Value) []*Value {
		list := make([]*Value, len(vs))
		for i, v := range vs {
			if v == nil {
				continue
			}
			if made[v] == nil {
				made[v] = b.Var(fmt.Sprintf("operand%d", len(made)), v.dtype, v.shape...)
			}
			list[i] = made[v]
		}
		return list
	}
	in := standIns(n.In)
	b.node(n.Op, in, standIns(n.Out), n.Attr)
	return b.Build(n.Op.String())
}
