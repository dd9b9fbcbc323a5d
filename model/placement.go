package model

import (
	"fmt"
	"strings"
)

// Positions says which of the three norms each module of a block has.
type Positions struct {
	Input  bool // A: of the module's input
	Output bool // B: of the module's output, before it is added to the residual stream
	Sum    bool // C: after the addition
}

// placements are the names of the field.
var placements = []struct {
	name string
	pos  Positions
}{
	{"post", Positions{Sum: true}},
	{"pre", Positions{Input: true}},
	{"peri", Positions{Input: true, Output: true}},
	{"olmo2", Positions{Output: true}},
	{"none", Positions{}},
}

// ParsePlacement reads post, pre, peri, olmo2 or none, or any of the letters A, B and C joined by +.
func ParsePlacement(s string) (Positions, error) {
	for _, p := range placements {
		if s == p.name {
			return p.pos, nil
		}
	}
	var pos Positions
	for part := range strings.SplitSeq(s, "+") {
		var on *bool
		switch strings.ToUpper(strings.TrimSpace(part)) {
		case "A":
			on = &pos.Input
		case "B":
			on = &pos.Output
		case "C":
			on = &pos.Sum
		}
		if on == nil || *on {
			return Positions{}, fmt.Errorf("placement: %q is unknown: use post, pre, peri, olmo2, none, or positions of A, B, C such as A+B+C", s)
		}
		*on = true
	}
	return pos, nil
}

// String gives the placement's name, or its letters joined by +.
func (p Positions) String() string {
	for _, q := range placements {
		if p == q.pos {
			return q.name
		}
	}
	var letters []string
	for _, l := range []struct {
		on   bool
		name string
	}{{p.Input, "A"}, {p.Output, "B"}, {p.Sum, "C"}} {
		if l.on {
			letters = append(letters, l.name)
		}
	}
	return strings.Join(letters, "+")
}
