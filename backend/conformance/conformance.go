package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Options of a check.
type Options struct {
	Seed             uint64                        // of the random inputs that vary; 0 takes one from the clock. The report has it
	Only             []string                      // groups to check, by name: operators and kinds of programs; empty: all
	Pick             func(Case) bool               // of those groups, the cases to check; nil: all
	AllowUnsupported bool                          // an operator that the backend lacks is no failure
	Golden           string                        // a folder of golden models, in the place of those that come with the kit
	Progress         func(done, total int, c Case) // called before each case and, with an empty Case, at the end
}

// Case names one thing that is checked.
type Case struct {
	Group string `json:"group"` // the operator, or what kind of program
	Name  string `json:"name"`  // the shapes, or the rule
}

// testCase is a Case that can be run.
type testCase struct {
	Case
	run func(b backend.Backend, seed uint64) outcome
}

// outcome of a case.
type outcome struct {
	checks int     // see Result
	worst  float64 // error over bound
	err    error
}

// opCases makes the cases of an operator.
func opCases(op graph.Op) []testCase {
	var list []testCase
	for _, c := range opTests[op].allCases(op) {
		list = append(list, testCase{Case{op.String(), c.name}, func(b backend.Backend, seed uint64) outcome {
			return c.run(b, op, opTests[op].bound, seed)
		}})
	}
	return list
}

// allCases are every operator's and every program's, in order.
func allCases(o Options) ([]testCase, error) {
	var list []testCase
	for _, op := range graph.Ops() {
		list = append(list, opCases(op)...)
	}
	list = append(list, contractCases()...)
	list = append(list, hazardCases()...)
	list = append(list, modelCases()...)
	list = append(list, narrowModelCases()...)
	list = append(list, invariantCases()...)
	again, err := recomputeCases()
	if err != nil {
		return nil, err
	}
	list = append(list, again...)
	models, err := goldenCases(o.Golden)
	return append(list, models...), err
}

// GroupError is a group in Options.Only that there is not.
type GroupError struct {
	Name   string
	Groups []string // that there are
}

func (e *GroupError) Error() string {
	return fmt.Sprintf("conformance has no group %q: its groups are %s", e.Name, strings.Join(e.Groups, ", "))
}

// Check runs every case on a backend. What fails is in the report; the error is a *GroupError, of golden models that can't be had, or ctx's:
// when that is done Check ends after the case that it is at, and the report has those that ran.
func Check(ctx context.Context, b backend.Backend, o Options) (*Report, error) {
	cases, err := selectCases(o)
	if err != nil {
		return nil, err
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	r := &Report{Device: b.Info().String(), Seed: o.Seed}
	start := time.Now()
	for i, c := range cases {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if o.Progress != nil {
			o.Progress(i, len(cases), c.Case)
		}
		r.Results = append(r.Results, c.result(b, o))
	}
	r.Seconds = time.Since(start).Seconds()
	if o.Progress != nil {
		o.Progress(len(cases), len(cases), Case{})
	}
	return r, nil
}

// selectCases are those of the groups that the options name.
func selectCases(o Options) (list []testCase, err error) {
	all, err := allCases(o)
	if err != nil {
		return nil, err
	}
	if o.Pick != nil {
		defer func() { list = slices.DeleteFunc(list, func(c testCase) bool { return !o.Pick(c.Case) }) }()
	}
	if len(o.Only) == 0 {
		return all, nil
	}
	var groups []string
	byGroup := map[string][]testCase{}
	for _, c := range all {
		if byGroup[c.Group] == nil {
			groups = append(groups, c.Group)
		}
		byGroup[c.Group] = append(byGroup[c.Group], c)
	}
	for _, name := range o.Only {
		if byGroup[name] == nil {
			return nil, &GroupError{name, groups}
		}
		list = append(list, byGroup[name]...)
	}
	return list, nil
}

// caseError is the panic that ends a case which cannot go on.
type caseError struct{ error }

// must ends the case if err is not nil.
func must(err error) {
	if err != nil {
		panic(caseError{err})
	}
}

// result runs one case. A panic of the backend is a failure of the case.
func (c testCase) result(b backend.Backend, o Options) (r Result) {
	start := time.Now()
	r.Case = c.Case
	defer func() {
		p := recover()
		if err, ok := p.(caseError); ok {
			r.Error = err.Error()
		} else if p != nil {
			r.Error = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
		r.Seconds = time.Since(start).Seconds()
	}()
	got := c.run(b, o.Seed)
	r.Checks, r.Worst = got.checks, got.worst
	switch {
	case errors.Is(got.err, errors.ErrUnsupported):
		r.Unsupported = got.err.Error()
		if !o.AllowUnsupported {
			r.Error = r.Unsupported
		}
	case got.err != nil:
		r.Error = got.err.Error()
	case got.worst > 1 || math.IsNaN(got.worst):
		r.Error = fmt.Sprintf("off by %.3g times the bound", got.worst)
	}
	return r
}
