package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Program is a recorded list of nodes. It is immutable and safe for concurrent use.
type Program struct {
	name    string
	nodes   []*Node
	values  []*Value
	inputs  []*Value
	vars    []*Value
	outputs []Output
}

// Build ends the recording. Nodes that neither reach an output nor write a variable are dropped, and so are values that no
// node uses, except inputs and variables. It panics if a temporary is read before it is written.
func (b *Builder) Build(name string) *Program {
	if b.built {
		misuse("Build called twice")
	}
	b.built = true
	p := &Program{name: name, inputs: b.inputs, vars: b.vars, outputs: b.outputs, nodes: liveNodes(b.nodes, b.outputs)}
	used := map[*Value]bool{}
	use := func(v *Value) {
		if v != nil {
			base, _ := v.Base()
			used[v], used[base] = true, true
		}
	}
	written := map[*Value]bool{}
	for _, n := range p.nodes {
		for _, v := range n.In {
			use(v)
			if v != nil && v.kind == KindTemp {
				if base, _ := v.Base(); !written[base] {
					misuse("%s reads %q before it is written", n, v.name)
				}
			}
		}
		for _, v := range n.Out {
			use(v)
			if v != nil {
				base, _ := v.Base()
				written[base] = true
			}
		}
	}
	for _, o := range p.outputs {
		use(o.Value)
		if base, _ := o.Value.Base(); o.Value.kind == KindTemp && !written[base] {
			misuse("output %q is never written", o.Name)
		}
	}
	for _, v := range b.values {
		if used[v] || v.kind != KindTemp && v.base == nil {
			v.id = len(p.values)
			p.values = append(p.values, v)
		}
	}
	return p
}

func liveNodes(nodes []*Node, outputs []Output) []*Node {
	live := map[*Value]bool{}
	for _, o := range outputs {
		base, _ := o.Value.Base()
		live[base] = true
	}
	var kept []*Node
	for _, n := range slices.Backward(nodes) {
		needed := false
		for _, v := range n.Out {
			if v != nil {
				base, _ := v.Base()
				needed = needed || live[base] || base.kind == KindVar
			}
		}
		if !needed {
			continue
		}
		kept = append(kept, n)
		for _, v := range n.In {
			if v != nil {
				base, _ := v.Base()
				live[base] = true
			}
		}
	}
	slices.Reverse(kept)
	return kept
}

// Name tells programs apart in messages.
func (p *Program) Name() string { return p.name }

// Nodes in the order in which they must seem to run.
func (p *Program) Nodes() []*Node { return p.nodes }

// Values lists every value by its ID.
func (p *Program) Values() []*Value { return p.values }

// Inputs are fed before each run.
func (p *Program) Inputs() []*Value { return p.inputs }

// VarValues are the variables as values.
func (p *Program) VarValues() []*Value { return p.vars }

// Outputs may be fetched after a run.
func (p *Program) Outputs() []Output { return p.outputs }

// Vars describes the variables that the program's store must have.
func (p *Program) Vars() []Var {
	vars := make([]Var, len(p.vars))
	for i, v := range p.vars {
		vars[i] = Var{Name: v.name, DType: v.dtype, Shape: v.shape}
	}
	return vars
}

// Input finds an input by name, nil if there is none.
func (p *Program) Input(name string) *Value {
	for _, v := range p.inputs {
		if v.name == name {
			return v
		}
	}
	return nil
}

// Output finds an output by name, nil if there is none.
func (p *Program) Output(name string) *Value {
	for _, o := range p.outputs {
		if o.Name == name {
			return o.Value
		}
	}
	return nil
}

// String prints the program as text, one line a declaration or node.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s\n", p.name)
	for _, v := range p.values {
		switch {
		case v.base != nil:
			fmt.Fprintf(&b, "view   %%%s %s%v = %%%s + %d bytes\n", v.name, v.dtype, v.shape, v.base.name, v.offset)
		case v.kind == KindInput:
			fmt.Fprintf(&b, "input  %%%s %s%v\n", v.name, v.dtype, v.shape)
		case v.kind == KindVar:
			fmt.Fprintf(&b, "var    %%%s %s%v\n", v.name, v.dtype, v.shape)
		default:
			fmt.Fprintf(&b, "temp   %%%s %s%v\n", v.name, v.dtype, v.shape)
		}
	}
	for _, n := range p.nodes {
		fmt.Fprintf(&b, "%s\n", n)
	}
	for _, o := range p.outputs {
		fmt.Fprintf(&b, "output %s = %%%s\n", o.Name, o.Value.name)
	}
	return b.String()
}
