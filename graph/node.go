package graph

import (
	"fmt"
	"reflect"
	"strings"
)

// Node is one operator applied to values. In and Out hold the operands in the order of the operator
// table; an absent optional operand is nil. Nodes of a Program must not be modified.
type Node struct {
	Op   Op
	In   []*Value
	Out  []*Value
	Attr any // the operator's attribute struct, nil if it has none; see the operator's file
}

// Attr gives a node's attributes as the operator's struct: graph.AttrOf[graph.MatMulAttr](n).
func AttrOf[T any](n *Node) T {
	a, ok := n.Attr.(T)
	if !ok {
		panic(fmt.Sprintf("graph: attributes of %s are %T", n.Op, n.Attr))
	}
	return a
}

// String prints the node as one line: outputs = op(inputs) attributes.
func (n *Node) String() string {
	var b strings.Builder
	for i, v := range n.Out {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(operand(v))
	}
	fmt.Fprintf(&b, " = %s(", n.Op)
	for i, v := range n.In {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(operand(v))
	}
	b.WriteByte(')')
	if n.Attr != nil {
		b.WriteString(attrString(n.Attr))
	}
	return b.String()
}

func operand(v *Value) string {
	if v == nil {
		return "-"
	}
	return "%" + v.name
}

// attrString prints the fields that are not zero, by name.
func attrString(a any) string {
	v := reflect.ValueOf(a)
	var b strings.Builder
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			fmt.Fprintf(&b, " %s=%v", v.Type().Field(i).Name, f.Interface())
		}
	}
	return b.String()
}
