package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// contractCases check what package backend promises, beside what programs compute. Names say the rule.
func contractCases() []testCase {
	var list []testCase
	for _, c := range []struct {
		name string
		run  func(k *contract)
	}{
		{"a new store is zero", newStoreIsZero},
		{"a store gives back what was written", storeKeepsData},
		{"wrong sizes and unknown names are errors, and harm nothing", wrongArguments},
		{"a store that lacks a variable is refused", missingVariable},
		{"tickets count from 1", ticketsCount},
		{"runs in flight keep their inputs and outputs", twoInFlight},
		{"outputs of variables and inputs are those of their run", outputsOfStorage},
		{"an older run is stale, and none is to come", staleTickets},
		{"an input keeps its value", inputsStay},
		{"a caller's buffer is its own after the call", buffersAreCopied},
		{"submissions over one store run in order", orderOverStore},
		{"reading and writing the store waits for runs", storeWaits},
		{"what is closed is closed", closed},
		{"a profile has a time for each node", profile},
		{"goroutines share a backend and a store", goroutines},
	} {
		list = append(list, testCase{Case{"contract", c.name}, func(b backend.Backend, _ uint64) (res outcome) {
			k := &contract{b: b}
			defer func() {
				p := recover()
				for _, f := range slices.Backward(k.closers) {
					k.errs = append(k.errs, f())
				}
				if err, ok := p.(caseError); ok {
					k.errs = append(k.errs, err.error)
				} else if p != nil {
					panic(p)
				}
				res = outcome{checks: k.checks, err: errors.Join(k.errs...)}
			}()
			c.run(k)
			return res
		}})
	}
	return list
}

// contract is the state of one case.
type contract struct {
	b       backend.Backend
	checks  int
	errs    []error
	closers []func() error
}

// need ends the case if err is not nil.
func (k *contract) need(err error, what string) {
	k.checks++
	if err != nil {
		panic(caseError{fmt.Errorf("%s: %w", what, err)})
	}
}

// expect notes a broken promise and goes on.
func (k *contract) expect(ok bool, format string, args ...any) {
	k.checks++
	if !ok {
		k.errs = append(k.errs, fmt.Errorf(format, args...))
	}
}

func (k *contract) store(vars ...graph.Var) backend.Store {
	s, err := k.b.NewStore(vars)
	k.need(err, "NewStore")
	k.closers = append(k.closers, s.Close)
	return s
}

func (k *contract) compile(p *graph.Program, s backend.Store) backend.Executable {
	e, err := k.b.Compile(p, s)
	k.need(err, "Compile "+p.Name())
	k.closers = append(k.closers, e.Close)
	return e
}

func (k *contract) feed(e backend.Executable, name string, x ...float64) {
	k.need(e.Feed(name, encode(x, graph.F32)), "Feed "+name)
}

func (k *contract) submit(e backend.Executable) backend.Ticket {
	t, err := e.Submit()
	k.need(err, "Submit")
	return t
}

// fetched expects an output.
func (k *contract) fetched(e backend.Executable, t backend.Ticket, name string, want ...float64) {
	got := make([]byte, 4*len(want))
	k.need(e.Fetch(t, name, got), fmt.Sprintf("Fetch %s of run %d", name, t))
	k.expect(bytes.Equal(got, encode(want, graph.F32)), "%s of run %d is not %v", name, t, want)
}

func (k *contract) write(s backend.Store, name string, x ...float64) {
	k.need(s.Write(name, encode(x, graph.F32)), "Write "+name)
}

func (k *contract) read(s backend.Store, name string, want ...float64) {
	got := make([]byte, 4*len(want))
	k.need(s.Read(name, got), "Read "+name)
	k.expect(bytes.Equal(got, encode(want, graph.F32)), "%s is not %v", name, want)
}

var contractVar = graph.Var{Name: "v", DType: graph.F32, Shape: graph.Shape{3}}

// adder computes y = x + v, and then v = v + x.
func adder() *graph.Program {
	b := graph.NewBuilder()
	x, v := b.Input("x", graph.F32, 3), b.Var("v", graph.F32, 3)
	b.Output("y", b.Add(x, v, nil))
	b.Add(v, x, v)
	return b.Build("adder")
}

func newStoreIsZero(k *contract) {
	s := k.store(contractVar, graph.Var{Name: "w", DType: graph.BF16, Shape: graph.Shape{5}}, graph.Var{Name: "i", DType: graph.I32, Shape: graph.Shape{2, 2}},
		graph.Var{Name: "big", DType: graph.F32, Shape: graph.Shape{3, 70001}})
	k.expect(len(s.Vars()) == 4, "Vars gives %v", s.Vars())
	for _, v := range s.Vars() {
		got := bytes.Repeat([]byte{1}, v.Bytes())
		k.need(s.Read(v.Name, got), "Read "+v.Name)
		k.expect(bytes.Count(got, []byte{0}) == len(got), "%s is not zero in a new store", v)
	}
}

func storeKeepsData(k *contract) {
	vars := []graph.Var{{Name: "a", DType: graph.F32, Shape: graph.Shape{1}}, {Name: "b", DType: graph.F16, Shape: graph.Shape{3}},
		{Name: "c", DType: graph.BF16, Shape: graph.Shape{7, 1}}, {Name: "d", DType: graph.I32, Shape: graph.Shape{2, 3, 5}}, {Name: "e", DType: graph.F32, Shape: graph.Shape{70001}}}
	s := k.store(vars...)
	data := func(v graph.Var) []byte {
		b := make([]byte, v.Bytes())
		for i := range b {
			b[i] = byte(i%59) + v.Name[0]%8 // no pattern of a NaN
		}
		return b
	}
	for _, v := range vars {
		k.need(s.Write(v.Name, data(v)), "Write "+v.Name)
	}
	for _, v := range vars {
		got := make([]byte, v.Bytes())
		k.need(s.Read(v.Name, got), "Read "+v.Name)
		k.expect(bytes.Equal(got, data(v)), "%s is not what was written", v)
	}
}

func wrongArguments(k *contract) {
	s := k.store(contractVar)
	e := k.compile(adder(), s)
	k.feed(e, "x", 1, 2, 3)
	k.write(s, "v", 10, 20, 30)
	buf := func(n int) []byte { return make([]byte, n) }
	t := k.submit(e)
	for what, err := range map[string]error{
		"feeding an unknown input":    e.Feed("nope", buf(12)),
		"feeding a variable":          e.Feed("v", buf(12)),
		"feeding too little":          e.Feed("x", buf(8)),
		"feeding too much":            e.Feed("x", buf(16)),
		"fetching an unknown output":  e.Fetch(t, "nope", buf(12)),
		"fetching into too little":    e.Fetch(t, "y", buf(11)),
		"fetching into too much":      e.Fetch(t, "y", buf(13)),
		"reading an unknown variable": s.Read("nope", buf(12)),
		"reading into too little":     s.Read("v", buf(8)),
		"writing an unknown variable": s.Write("nope", buf(12)),
		"writing too much":            s.Write("v", buf(16)),
	} {
		k.expect(err != nil, "%s is no error", what)
	}
	k.fetched(e, t, "y", 11, 22, 33)
	k.read(s, "v", 11, 22, 33)
	k.fetched(e, k.submit(e), "y", 12, 24, 36)
}

func missingVariable(k *contract) {
	for _, v := range []graph.Var{{Name: "w", DType: graph.F32, Shape: graph.Shape{3}}, {Name: "v", DType: graph.BF16, Shape: graph.Shape{3}}, {Name: "v", DType: graph.F32, Shape: graph.Shape{3, 1}}} {
		e, err := k.b.Compile(adder(), k.store(v))
		k.expect(err != nil, "Compile takes a store of %s for %s", v, contractVar)
		if err == nil {
			k.closers = append(k.closers, e.Close)
		}
	}
}

func ticketsCount(k *contract) {
	e := k.compile(adder(), k.store(contractVar))
	k.feed(e, "x", 0, 0, 0)
	for want := range backend.Ticket(5) {
		got := k.submit(e)
		k.expect(got == want+1, "run %d has the ticket %d", want+1, got)
	}
}

func twoInFlight(k *contract) {
	e := k.compile(adder(), k.store(contractVar))
	k.feed(e, "x", 1, 2, 3)
	first := k.submit(e)
	k.feed(e, "x", 10, 20, 30)
	second := k.submit(e)
	k.fetched(e, second, "y", 11, 22, 33)
	k.fetched(e, first, "y", 1, 2, 3)
	k.fetched(e, second, "y", 11, 22, 33)
	k.feed(e, "x", 100, 200, 300)
	third := k.submit(e)
	k.fetched(e, second, "y", 11, 22, 33)
	k.fetched(e, third, "y", 111, 222, 333)
}

// outputsOfStorage: an output may be a variable, an input or a view, and is what it was at the end of its run.
func outputsOfStorage(k *contract) {
	b := graph.NewBuilder()
	x, v := b.Input("x", graph.F32, 3), b.Var("v", graph.F32, 128)
	part := b.View(v, 64, 3)
	b.Add(part, x, part)
	b.Output("x", x)
	b.Output("part", part)
	s := k.store(graph.Var{Name: "v", DType: graph.F32, Shape: graph.Shape{128}})
	e := k.compile(b.Build("storage"), s)
	k.feed(e, "x", 1, 2, 3)
	first := k.submit(e)
	k.feed(e, "x", 4, 5, 6)
	second := k.submit(e)
	k.fetched(e, first, "part", 1, 2, 3)
	k.fetched(e, first, "x", 1, 2, 3)
	k.fetched(e, second, "part", 5, 7, 9)
	k.fetched(e, second, "x", 4, 5, 6)
}

func staleTickets(k *contract) {
	e := k.compile(adder(), k.store(contractVar))
	k.feed(e, "x", 1, 2, 3)
	dst := make([]byte, 12)
	k.expect(e.Fetch(0, "y", dst) != nil, "ticket 0 can be fetched")
	k.expect(e.Fetch(1, "y", dst) != nil, "a run that was not submitted can be fetched")
	for range backend.MaxInFlight + 1 {
		k.submit(e)
	}
	err := e.Fetch(1, "y", dst)
	k.expect(errors.Is(err, backend.ErrStale), "fetching a run that newer ones overwrote gives %v, want ErrStale", err)
	k.fetched(e, 2, "y", 2, 4, 6)
	err = e.Fetch(backend.MaxInFlight+2, "y", dst)
	k.expect(err != nil && !errors.Is(err, backend.ErrStale), "fetching a run that is to come gives %v", err)
}

func inputsStay(k *contract) {
	b := graph.NewBuilder()
	b.Output("y", b.Add(b.Input("a", graph.F32, 2), b.Input("b", graph.F32, 2), nil))
	e := k.compile(b.Build("inputs"), k.store())
	k.feed(e, "a", 1, 2)
	k.feed(e, "b", 10, 20)
	k.fetched(e, k.submit(e), "y", 11, 22)
	for i := range 4 {
		k.feed(e, "a", float64(i), 0)
		k.fetched(e, k.submit(e), "y", float64(i)+10, 20)
	}
	k.fetched(e, k.submit(e), "y", 13, 20)
	k.feed(e, "b", 0, 0)
	k.feed(e, "b", 7, 7)
	k.fetched(e, k.submit(e), "y", 10, 7)
}

func buffersAreCopied(k *contract) {
	s := k.store(contractVar)
	e := k.compile(adder(), s)
	x, v := encode([]float64{1, 2, 3}, graph.F32), encode([]float64{10, 20, 30}, graph.F32)
	k.need(s.Write("v", v), "Write")
	clear(v)
	k.need(e.Feed("x", x), "Feed")
	clear(x)
	t := k.submit(e)
	k.fetched(e, t, "y", 11, 22, 33)
	k.need(e.Fetch(t, "y", x), "Fetch")
	clear(x)
	k.fetched(e, t, "y", 11, 22, 33)
}

// orderOverStore: two executables take turns without anyone waiting; addition is followed by doubling each time.
func orderOverStore(k *contract) {
	b := graph.NewBuilder()
	v := b.Var("v", graph.F32, 3)
	b.Output("before", b.Add(v, b.Fill(b.Temp("zero", graph.F32, 3), 0), nil))
	b.Add(v, v, v)
	s := k.store(contractVar)
	add, double := k.compile(adder(), s), k.compile(b.Build("double"), s)
	want := []float64{0, 0, 0}
	for i := range 5 {
		k.feed(add, "x", float64(i), 1, 2)
		k.submit(add)
		t := k.submit(double)
		want = []float64{want[0] + float64(i), want[1] + 1, want[2] + 2}
		if i%2 == 0 {
			k.fetched(double, t, "before", want...)
		}
		want = times(2, want)
	}
	k.read(s, "v", want...)
}

func storeWaits(k *contract) {
	s := k.store(contractVar)
	e := k.compile(adder(), s)
	k.feed(e, "x", 1, 1, 1)
	k.submit(e)
	k.read(s, "v", 1, 1, 1)
	k.submit(e)
	k.write(s, "v", 5, 6, 7)
	t := k.submit(e)
	k.write(s, "v", 0, 0, 0)
	k.fetched(e, t, "y", 6, 7, 8)
	k.read(s, "v", 0, 0, 0)
}

func closed(k *contract) {
	s, err := k.b.NewStore([]graph.Var{contractVar})
	k.need(err, "NewStore")
	e, err := k.b.Compile(adder(), s)
	k.need(err, "Compile")
	k.feed(e, "x", 1, 2, 3)
	k.submit(e)
	k.need(e.Close(), "Close of an executable with a run in flight")
	buf := make([]byte, 12)
	_, submit := e.Submit()
	k.read(s, "v", 1, 2, 3)
	k.need(s.Close(), "Close of the store")
	_, compile := k.b.Compile(adder(), s)
	for what, err := range map[string]error{"Feed": e.Feed("x", buf), "Submit": submit, "Fetch": e.Fetch(1, "y", buf),
		"Read": s.Read("v", buf), "Write": s.Write("v", buf), "Compile over a closed store": compile} {
		k.expect(errors.Is(err, backend.ErrClosed), "%s after Close gives %v, want ErrClosed", what, err)
	}
}

func profile(k *contract) {
	p := adder()
	s := k.store(contractVar)
	e := k.compile(p, s)
	prof, ok := e.(backend.Profiler)
	if !ok {
		return
	}
	k.feed(e, "x", 1, 2, 3)
	seconds, err := prof.Profile()
	k.need(err, "Profile")
	k.expect(len(seconds) == len(p.Nodes()), "Profile gives %d times for %d nodes", len(seconds), len(p.Nodes()))
	for i, t := range seconds {
		k.expect(t >= 0 && t < 60, "node %d took %g s", i, t)
	}
	k.read(s, "v", 1, 2, 3)
	k.fetched(e, k.submit(e), "y", 2, 4, 6)
	if tracer, ok := e.(backend.Tracer); ok {
		trace(k, tracer, len(p.Nodes()))
		k.read(s, "v", 3, 6, 9)
	}
}

// trace wants the nodes one after the other.
func trace(k *contract, t backend.Tracer, nodes int) {
	spans, err := t.Trace()
	k.need(err, "Trace")
	k.expect(len(spans) == nodes, "Trace gives %d spans for %d nodes", len(spans), nodes)
	const rounding = 1e-9
	end, submission := 0.0, 0
	for i, s := range spans {
		k.expect(s.Start >= end-rounding && s.Seconds >= 0 && s.Start+s.Seconds < 60, "node %d began at %g s and took %g s, the one before ended at %g s", i, s.Start, s.Seconds, end)
		k.expect(s.Submission == submission || s.Submission == submission+1, "node %d is in submission %d, the one before in %d", i, s.Submission, submission)
		end, submission = s.Start+s.Seconds, s.Submission
	}
}

// goroutines use one backend at once, each with an executable of its own over a shared store.
func goroutines(k *contract) {
	const workers = 4
	var vars []graph.Var
	for i := range workers {
		vars = append(vars, graph.Var{Name: fmt.Sprint("v", i), DType: graph.F32, Shape: graph.Shape{3}})
	}
	s := k.store(vars...)
	errs := make(chan error, workers)
	for i := range workers {
		go func() { errs <- addFromGoroutine(k.b, s, vars[i].Name, float64(i)) }()
	}
	for range workers {
		k.need(<-errs, "a goroutine")
	}
	for i, v := range vars {
		k.read(s, v.Name, 3*float64(i), 0, 3)
	}
}

func addFromGoroutine(b backend.Backend, s backend.Store, name string, x float64) (err error) {
	g := graph.NewBuilder()
	v := g.Var(name, graph.F32, 3)
	g.Add(v, g.Input("x", graph.F32, 3), v)
	e, err := b.Compile(g.Build(name), s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for range 3 {
		if err := e.Feed("x", encode([]float64{x, 0, 1}, graph.F32)); err != nil {
			return err
		}
		if _, err := e.Submit(); err != nil {
			return err
		}
		if err := s.Read(name, make([]byte, 12)); err != nil {
			return err
		}
	}
	return nil
}
