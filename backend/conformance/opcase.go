package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// tensor describes an operand; one without a shape is absent.
type tensor struct {
	shape graph.Shape
	fill  filler // of an input
	dtype graph.DType
}

func (t tensor) absent() bool { return t.shape == nil }

// bounder computes an operator's outputs and what they may be off by, from its inputs.
type bounder func(n *graph.Node, in, out [][]num)

// opCase is one program of one node, and the inputs it is run with.
type opCase struct {
	name    string
	attr    any
	in, out []tensor
	inPlace map[int]int          // output: the input whose storage it has
	derive  func(in [][]float64) // computes the inputs that are results of others
	round   rounder              // of narrow outputs; nil: to nearest even
	extra   []variant            // beside the random inputs
	special bool                 // also a NaN and an infinity in each input
}

// variant changes the random inputs of a case. Its name says what rule is checked.
type variant struct {
	name string
	set  func(in [][]float64, r *rand.Rand)
	nan  func(in [][]float64) // then sets NaNs, that must come out where they should
}

// rounder rounds what would be element i of an output. For given inputs it must keep order.
type rounder func(n *graph.Node, in [][]float64, output, i int, x float64) float64

// opTest is all there is to check of an operator.
type opTest struct {
	cases func() []opCase
	bound bounder
}

// Margins in bytes before and after each operand: an odd multiple, since views promise no wider alignment.
const margin = 3 * graph.ViewAlign

// Bit patterns of the margins and of outputs before the run: quiet NaNs in each floating format, and no index of anything.
const (
	guard32, poison32 = 0x7FC05A5A, 0x7FC0BAD1
	guard16, poison16 = 0x7FDA, 0x7FD1
)

// operand is a tensor in its guarded storage.
type operand struct {
	tensor
	name string // of the variable
	what string // of the operand in the operator table
}

// padded is the size in elements of the variable.
func (o operand) padded() int {
	return o.marginElems()*2 + (o.shape.Elems()*o.dtype.Size()+3)/4*4/o.dtype.Size()
}

func (o operand) marginElems() int { return margin / o.dtype.Size() }

// body is the operand's part of the variable's bytes.
func (o operand) body(storage []byte) []byte {
	return storage[margin : margin+o.shape.Elems()*o.dtype.Size()]
}

// blank is the variable's bytes with guards everywhere but in the body, which is poison.
func (o operand) blank() []byte {
	b := make([]byte, o.padded()*o.dtype.Size())
	fillPattern(b, o.dtype, guard32, guard16)
	fillPattern(o.body(b), o.dtype, poison32, poison16)
	return b
}

func fillPattern(b []byte, d graph.DType, p32 uint32, p16 uint16) {
	if d.Size() == 4 {
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], p32)
		}
		return
	}
	for i := 0; i < len(b); i += 2 {
		binary.LittleEndian.PutUint16(b[i:], p16)
	}
}

// checkGuards returns an error if a margin changed. The padding of a tensor to whole words is no margin.
func (o operand) checkGuards(storage, before []byte) error {
	end := margin + (o.shape.Elems()*o.dtype.Size()+3)/4*4
	for _, part := range []struct {
		where    string
		from, to int
	}{{"before", 0, margin}, {"behind", end, len(storage)}} {
		for i := part.from; i < part.to; i++ {
			if storage[i] != before[i] {
				return fmt.Errorf("the guard %s %s is overwritten, %d bytes from the edge", part.where, o.what,
					min(abs(i-margin), abs(i-end)))
			}
		}
	}
	return nil
}

func abs(i int) int { return max(i, -i) }

// opRun is a case compiled on a backend.
type opRun struct {
	op      graph.Op
	c       *opCase
	bound   bounder
	prog    *graph.Program
	in, out []operand // out[i] is in[inPlace[i]] where it shares storage
	oracle  *reference.Machine
	store   backend.Store
	exe     backend.Executable
}

func newOperands(ts []tensor, names []string, prefix string) []operand {
	os := make([]operand, len(ts))
	for i, t := range ts {
		os[i] = operand{tensor: t, name: fmt.Sprintf("%s%d", prefix, i), what: strings.Trim(names[i], "[]")}
	}
	return os
}

// compile makes the program of one node over guarded views.
func (c *opCase) compile(b backend.Backend, op graph.Op, bound bounder) (*opRun, error) {
	namesIn, namesOut := op.Operands()
	r := &opRun{op: op, c: c, bound: bound, in: newOperands(c.in, namesIn, "in"), out: newOperands(c.out, namesOut, "out")}
	g := graph.NewBuilder()
	view := func(o operand) *graph.Value {
		if o.absent() {
			return nil
		}
		return g.View(g.Var(o.name, o.dtype, o.padded()), o.marginElems(), o.shape...)
	}
	in, out := make([]*graph.Value, len(r.in)), make([]*graph.Value, len(r.out))
	for i, o := range r.in {
		in[i] = view(o)
	}
	for i, o := range r.out {
		if j, ok := c.inPlace[i]; ok {
			r.out[i].name, out[i] = r.in[j].name, in[j]
			continue
		}
		out[i] = view(o)
	}
	g.Append(op, in, out, c.attr)
	r.prog = g.Build(op.String() + "/" + c.name)
	r.oracle = reference.New(r.prog)
	var err error
	if r.store, err = b.NewStore(r.prog.Vars()); err != nil {
		return nil, fmt.Errorf("NewStore: %w", err)
	}
	if r.exe, err = b.Compile(r.prog, r.store); err != nil {
		return nil, errors.Join(fmt.Errorf("compile: %w", err), r.store.Close())
	}
	return r, nil
}

func (r *opRun) close() error { return errors.Join(r.exe.Close(), r.store.Close()) }

// run checks the case with every variant of its inputs, and returns the worst error over its bound.
func (c *opCase) run(b backend.Backend, op graph.Op, bound bounder, seed uint64) (res outcome) {
	r, err := c.compile(b, op, bound)
	if err != nil {
		return outcome{err: err}
	}
	defer func() { res.err = errors.Join(res.err, r.close()) }()
	for _, v := range c.variants(r.in, seed) {
		ratio, err := r.check(v)
		res.checks++
		res.worst = math.Max(res.worst, ratio)
		if err != nil {
			res.err = errors.Join(res.err, fmt.Errorf("%s: %w", v.name, err))
		}
	}
	return res
}

// inputKind says how outputs that are not finite are judged.
type inputKind uint8

const (
	finite inputKind = iota
	withNaN
	withInf
)

// inputSet is a variant with its random numbers, ready to run.
type inputSet struct {
	name string
	kind inputKind
	data [][]float64
	nan  [][]float64 // for withInf: the same with NaN in place of the infinity
}

func (c *opCase) variants(in []operand, seed uint64) []inputSet {
	random := func(seed uint64) (*rand.Rand, [][]float64) {
		h := fnv.New64a()
		h.Write([]byte(c.name))
		rnd := rand.New(rand.NewPCG(seed, h.Sum64()))
		data := make([][]float64, len(in))
		for i, o := range in {
			if !o.absent() {
				data[i] = make([]float64, o.shape.Elems())
				o.fill(rnd, data[i])
			}
		}
		c.deriveInputs(data)
		return rnd, data
	}
	_, fixed := random(1)
	_, fresh := random(seed)
	sets := []inputSet{{name: "fixed inputs", data: fixed}, {name: fmt.Sprintf("inputs of seed %d", seed), data: fresh}}
	for _, v := range c.extra {
		rnd, data := random(2)
		set := inputSet{name: v.name, data: data}
		if v.set != nil {
			v.set(data, rnd)
		}
		c.deriveInputs(data)
		if v.nan != nil {
			v.nan(data)
			set.kind = withNaN
		}
		sets = append(sets, set)
	}
	if !c.special {
		return sets
	}
	for i, o := range in {
		if o.absent() || o.dtype == graph.I32 {
			continue
		}
		rnd, data := random(3)
		_, inf := random(3)
		at := rnd.IntN(len(data[i]))
		data[i][at], inf[i][at] = math.NaN(), math.Inf(1-2*(i%2))
		sets = append(sets, inputSet{name: "NaN in " + o.what, kind: withNaN, data: data},
			inputSet{name: "infinity in " + o.what, kind: withInf, data: inf, nan: data})
	}
	return sets
}

// deriveInputs rounds what was drawn, and computes of it what is derived.
func (c *opCase) deriveInputs(data [][]float64) {
	c.roundInputs(data)
	if c.derive != nil {
		c.derive(data)
		c.roundInputs(data)
	}
}

// roundInputs makes the inputs numbers of their formats, finite ones where they were finite.
func (c *opCase) roundInputs(in [][]float64) {
	for i, t := range c.in {
		if !t.absent() {
			if t.dtype == graph.F16 {
				for j, x := range in[i] {
					if !math.IsInf(x, 0) {
						in[i][j] = max(min(x, 65504), -65504)
					}
				}
			}
			buf := make([]byte, len(in[i])*t.dtype.Size())
			reference.Encode(buf, in[i], t.dtype)
			reference.Decode(in[i], buf, t.dtype)
		}
	}
}

// check runs one set of inputs twice.
func (r *opRun) check(set inputSet) (float64, error) {
	before := r.storage(set.data)
	after, err := r.submit(before)
	if err != nil {
		return math.Inf(1), err
	}
	again, err := r.submit(before)
	if err != nil {
		return math.Inf(1), err
	}
	written := map[string]bool{}
	for _, o := range r.out {
		written[o.name] = true
	}
	for _, o := range append(r.in, r.out...) {
		if o.absent() {
			continue
		}
		if err := o.checkGuards(after[o.name], before[o.name]); err != nil {
			return math.Inf(1), err
		}
		if !written[o.name] && !bytes.Equal(o.body(after[o.name]), o.body(before[o.name])) {
			return math.Inf(1), fmt.Errorf("the input %s is changed", o.what)
		}
	}
	ratio, err := r.judge(set, after)
	if err != nil {
		return ratio, err
	}
	for _, o := range r.out {
		if !o.absent() && !bytes.Equal(o.body(after[o.name]), o.body(again[o.name])) {
			return math.Inf(1), fmt.Errorf("a second run gives other bits in %s", o.what)
		}
	}
	return ratio, nil
}

// storage is every variable's bytes before a run.
func (r *opRun) storage(data [][]float64) map[string][]byte {
	vars := map[string][]byte{}
	for _, o := range r.out {
		if !o.absent() {
			vars[o.name] = o.blank()
		}
	}
	for i, o := range r.in {
		if !o.absent() {
			vars[o.name] = o.blank()
			reference.Encode(o.body(vars[o.name]), data[i], o.dtype)
		}
	}
	return vars
}

// submit writes the variables, runs the program once and reads them back.
func (r *opRun) submit(vars map[string][]byte) (map[string][]byte, error) {
	for _, v := range r.prog.Vars() {
		if err := r.store.Write(v.Name, vars[v.Name]); err != nil {
			return nil, fmt.Errorf("write %s: %w", v.Name, err)
		}
	}
	if _, err := r.exe.Submit(); err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	after := map[string][]byte{}
	for _, v := range r.prog.Vars() {
		after[v.Name] = make([]byte, v.Bytes())
		if err := r.store.Read(v.Name, after[v.Name]); err != nil {
			return nil, fmt.Errorf("read %s: %w", v.Name, err)
		}
	}
	return after, nil
}

// reference runs the oracle and returns the outputs' values.
func (r *opRun) reference(data [][]float64) ([][]float64, error) {
	for name, b := range r.storage(data) {
		for _, v := range r.prog.Vars() {
			if v.Name == name {
				x := make([]float64, v.Elems())
				reference.Decode(x, b, v.DType)
				r.oracle.Set(name, x)
			}
		}
	}
	if err := r.oracle.Run(); err != nil {
		return nil, err
	}
	out := make([][]float64, len(r.out))
	for i, o := range r.out {
		if !o.absent() {
			at := o.marginElems()
			out[i] = r.oracle.Get(o.name)[at : at+o.shape.Elems()]
		}
	}
	return out, nil
}

// bounds gives what each output may be off by.
func (r *opRun) bounds(data [][]float64) [][]num {
	in, out := make([][]num, len(r.in)), make([][]num, len(r.out))
	for i, o := range r.in {
		if !o.absent() {
			in[i] = inputs(data[i], o.dtype)
		}
	}
	for i, o := range r.out {
		if !o.absent() {
			out[i] = make([]num, o.shape.Elems())
		}
	}
	r.bound(r.prog.Nodes()[0], in, out)
	return out
}

// round rounds as the operator does.
func (r *opRun) round(in [][]float64, output, i int, x float64) float64 {
	if r.c.round == nil {
		return reference.Round(x, r.out[output].dtype)
	}
	return r.c.round(r.prog.Nodes()[0], in, output, i, x)
}

// judge compares outputs with the oracle's.
func (r *opRun) judge(set inputSet, after map[string][]byte) (float64, error) {
	want, err := r.reference(set.data)
	if err != nil {
		return math.Inf(1), err
	}
	var depends [][]float64
	if set.kind == withInf {
		if depends, err = r.reference(set.nan); err != nil {
			return math.Inf(1), err
		}
	}
	bounds := r.bounds(set.data)
	worst := 0.0
	for i, o := range r.out {
		if o.absent() {
			continue
		}
		got := make([]float64, o.shape.Elems())
		reference.Decode(got, o.body(after[o.name]), o.dtype)
		v := verdict{what: o.what, shape: o.shape}
		for j := range got {
			e := slack * bounds[i][j].e
			if o.dtype.Size() == 2 {
				e = afterRounding(bounds[i][j].v, e, func(x float64) float64 { return r.round(set.data, i, j, x) })
			}
			if depends != nil && math.IsNaN(depends[i][j]) && !math.IsInf(want[i][j], 0) {
				e = math.Inf(1)
			}
			v.add(j, got[j], want[i][j], ratioOf(got[j], want[i][j], e, set.kind, o.dtype), e)
		}
		v.unwritten(o.body(after[o.name]), o.dtype)
		worst = math.Max(worst, v.worst)
		err = errors.Join(err, v.err())
	}
	return worst, err
}
