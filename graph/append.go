package graph

import "strings"

// Append records a node whose operands are all the caller's, outputs too, where the operator's own method would make
// temporaries: a test of a backend puts them between guards. In and out are in the order of the operator table, with nil for an
// optional operand that is absent.
//
// It checks the number of operands; shapes, formats and attributes must be those that the operator's method would give.
func (b *Builder) Append(op Op, in, out []*Value, attr any) {
	if op == OpInvalid || op >= NumOps {
		misuse("append of op %d", op)
	}
	wantIn, wantOut := op.Operands()
	checkOperands(op, in, wantIn)
	checkOperands(op, out, wantOut)
	b.node(op, in, out, attr)
}

func checkOperands(op Op, got []*Value, want []string) {
	if len(got) != len(want) {
		misuse("append of %s with %d operands, want %v", op, len(got), want)
	}
	for i, name := range want {
		if got[i] == nil && !strings.HasPrefix(name, "[") {
			misuse("append of %s without %s", op, name)
		}
	}
}
