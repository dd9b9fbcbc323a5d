package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/conformance/reference"
	"github.com/vktrain/vktrain/graph"
)

// machine runs a program: a reference.Machine, or a device.
type machine interface {
	Set(name string, data any)
	Run() error
	Get(name string) []float64
}

var (
	_ machine = (*reference.Machine)(nil)
	_ machine = (*device)(nil)
)

// device is a program on a backend. Its first error is kept, and returned by Run and closeDevices.
type device struct {
	prog   *graph.Program
	store  backend.Store
	exe    backend.Executable
	ticket backend.Ticket
	err    error
}

// newDevices compiles programs over one store that has the variables of them all.
func newDevices(b backend.Backend, programs []*graph.Program) (list []*device, err error) {
	var vars []graph.Var
	for _, p := range programs {
		for _, v := range p.Vars() {
			if !slices.ContainsFunc(vars, v.Equal) {
				vars = append(vars, v)
			}
		}
	}
	store, err := b.NewStore(vars)
	if err != nil {
		return nil, fmt.Errorf("NewStore for %s: %w", programs[0].Name(), err)
	}
	for _, p := range programs {
		exe, err := b.Compile(p, store)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("compile %s: %w", p.Name(), err), closeDevices(store, list))
		}
		list = append(list, &device{prog: p, store: store, exe: exe})
	}
	return list, nil
}

// closeDevices closes what newDevices made, and returns the devices' errors with those of closing.
func closeDevices(store backend.Store, list []*device) error {
	var errs []error
	for _, d := range list {
		errs = append(errs, d.err, d.exe.Close())
	}
	return errors.Join(append(errs, store.Close())...)
}

// note keeps the first error.
func (d *device) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Set feeds an input or writes a variable.
func (d *device) Set(name string, data any) {
	var x []float64
	switch data := data.(type) {
	case []float64:
		x = data
	case []float32:
		x = widen(data)
	case []int32:
		x = widen(data)
	default:
		panic(fmt.Sprintf("conformance: %q set to a %T", name, data))
	}
	if v := d.prog.Input(name); v != nil {
		d.note(d.exe.Feed(name, encode(x, v.DType())))
		return
	}
	d.note(d.store.Write(name, encode(x, d.variable(name).DType)))
}

func widen[T float32 | int32](x []T) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

func encode(x []float64, d graph.DType) []byte {
	b := make([]byte, len(x)*d.Size())
	reference.Encode(b, x, d)
	return b
}

func (d *device) variable(name string) graph.Var {
	for _, v := range d.store.Vars() {
		if v.Name == name {
			return v
		}
	}
	panic(fmt.Sprintf("conformance: program %s has no value %q", d.prog.Name(), name))
}

// Run submits the program and does not wait.
func (d *device) Run() error {
	t, err := d.exe.Submit()
	d.ticket = t
	d.note(err)
	return d.err
}

// bytes of an output of the last run, or of a variable.
func (d *device) bytes(name string) []byte {
	if v := d.prog.Output(name); v != nil {
		buf := make([]byte, v.Bytes())
		d.note(d.exe.Fetch(d.ticket, name, buf))
		return buf
	}
	buf := make([]byte, d.variable(name).Bytes())
	d.note(d.store.Read(name, buf))
	return buf
}

// Get gives NaNs after an error.
func (d *device) Get(name string) []float64 {
	var t graph.DType
	if v := d.prog.Output(name); v != nil {
		t = v.DType()
	} else {
		t = d.variable(name).DType
	}
	b := d.bytes(name)
	x := make([]float64, len(b)/t.Size())
	reference.Decode(x, b, t)
	if d.err != nil {
		for i := range x {
			x[i] = math.NaN()
		}
	}
	return x
}
