// Package backend is the contract between programs and the devices that run them.
//
// It names no operator, so it does not grow with the vocabulary of package graph. A backend may lack an operator: Compile then
// returns an *UnsupportedError. What not every backend has is an interface of its own, found by type assertion ([Profiler], [PeakMeter], [MemoryStats]).
//
// # Threads
//
// A Backend and a Store may be used by several goroutines. An Executable is used by one at a time.
//
// # Order
//
// Submissions over one store run in the order of their Submit calls, and seem to run one after the other. Read and Write of the
// store wait for those submitted before.
package backend

import (
	"errors"
	"fmt"

	"github.com/vktrain/vktrain/graph"
)

// Backend is one device that is open.
type Backend interface {
	// Info never fails and does not touch the device.
	Info() Info
	// NewStore makes room for variables, all zero. Several programs may share a store.
	NewStore(vars []graph.Var) (Store, error)
	// Compile makes a program ready to run over a store, which must have every variable of the program with its very
	// format and shape.
	Compile(p *graph.Program, s Store) (Executable, error)
	// Close frees the device. Stores and executables must be closed before.
	Close() error
}

// Store holds variables by name. Data is in the variable's format, little-endian, row-major, without padding.
type Store interface {
	Vars() []graph.Var
	// Read copies a variable to dst, whose length must be Var.Bytes.
	Read(name string, dst []byte) error
	// Write copies src, of length Var.Bytes, to a variable.
	Write(name string, src []byte) error
	Close() error
}

// PartStore is a Store that copies parts of variables, so that the host needs no second copy of a large one.
type PartStore interface {
	Store
	// ReadAt copies the len(dst) bytes of a variable from an offset on.
	ReadAt(name string, dst []byte, offset int) error
	// WriteAt copies src to a variable from an offset on.
	WriteAt(name string, src []byte, offset int) error
}

// partBytes is the size of the parts of WriteParts and ReadParts.
const partBytes = 1 << 20

// WriteParts writes a variable in parts that fill is called for in order; where the store has no parts it is one. Each begins at a
// multiple of 1 MiB.
func WriteParts(s Store, v graph.Var, fill func(part []byte, offset int) error) error {
	ps, ok := s.(PartStore)
	size := v.Bytes()
	if ok {
		size = min(size, partBytes)
	}
	buf := make([]byte, size)
	for at := 0; at < v.Bytes(); at += size {
		part := buf[:min(size, v.Bytes()-at)]
		if err := fill(part, at); err != nil {
			return err
		}
		if !ok {
			return s.Write(v.Name, part)
		}
		if err := ps.WriteAt(v.Name, part, at); err != nil {
			return err
		}
	}
	return nil
}

// ReadParts reads a variable in the parts of WriteParts. What use gets is overwritten by the next part.
func ReadParts(s Store, v graph.Var, use func(part []byte) error) error {
	ps, ok := s.(PartStore)
	size := v.Bytes()
	if ok {
		size = min(size, partBytes)
	}
	buf := make([]byte, size)
	for at := 0; at < v.Bytes(); at += size {
		part := buf[:min(size, v.Bytes()-at)]
		var err error
		if ok {
			err = ps.ReadAt(v.Name, part, at)
		} else {
			err = s.Read(v.Name, part)
		}
		if err != nil {
			return err
		}
		if err := use(part); err != nil {
			return err
		}
	}
	return nil
}

// MaxInFlight is how many submissions of one executable may be unfinished; one more Submit waits for the oldest.
const MaxInFlight = 2

// Executable is a compiled program.
type Executable interface {
	// Feed sets an input of the next Submit; src has the input's size. Each input keeps its value until it is fed again.
	Feed(input string, src []byte) error
	// Submit starts a run and does not wait for it, unless MaxInFlight runs are unfinished.
	Submit() (Ticket, error)
	// Fetch waits for a run and copies one of its outputs. It is possible for the last MaxInFlight runs only: an older one
	// is ErrStale.
	Fetch(t Ticket, output string, dst []byte) error
	// Close waits for what runs.
	Close() error
}

// Ticket names a submission of one executable: 1, 2, 3...
type Ticket uint64

// Kind says what a device is, for choosing one.
type Kind uint8

const (
	CPU        Kind = iota // the CPU backend itself
	Discrete               // a graphics card
	Integrated             // a GPU that shares the host's memory
	Virtual                // a GPU passed through
	Software               // a Vulkan driver that runs on the CPU
)

var kindNames = [...]string{CPU: "cpu", Discrete: "discrete", Integrated: "integrated", Virtual: "virtual", Software: "software"}

// String gives the name used by `vktrain devices`.
func (k Kind) String() string { return kindNames[k] }

// Info describes a device.
type Info struct {
	Backend string // "cpu" or "vulkan"
	Name    string // of the device, as its driver says it
	Vendor  string
	Driver  string // name and version
	Kind    Kind
	Memory  int64 // bytes that programs may use, 0 if unknown
}

// String prints as vulkan: NAME (DRIVER).
func (i Info) String() string {
	if i.Driver == "" {
		return fmt.Sprintf("%s: %s", i.Backend, i.Name)
	}
	return fmt.Sprintf("%s: %s (%s)", i.Backend, i.Name, i.Driver)
}

// MemoryStats is what an Executable or Store may tell about its memory.
type MemoryStats interface {
	// DeviceBytes is what it holds on the device.
	DeviceBytes() int64
}

// Kernels is what an Executable may tell about what it runs.
type Kernels interface {
	// Kernels names what computes each node of the program.
	Kernels() []string
}

// HostStorer is a Backend that can keep variables in the host's memory instead of its own, and whose kernels read and write them there.
type HostStorer interface {
	// HostMemory is how many bytes there are, or an error that says why there are none.
	HostMemory() (int64, error)
	// NewHostStore is NewStore with those variables in the host's memory for which onHost is true.
	NewHostStore(vars []graph.Var, onHost func(v graph.Var) bool) (Store, error)
}

// Planner is a Backend that plans with options.
type Planner interface {
	PlanOptions() graph.PlanOptions
}

// Scratcher is a Backend that needs memory beside the arena to run some programs.
type Scratcher interface {
	// ScratchBytes is how much a program needs. It is shared like the arena.
	ScratchBytes(p *graph.Program) int64
}

// ArenaBytes is the memory that a device takes for the temporaries of programs over one store, and its own, if they are compiled in this order.
func ArenaBytes(b Backend, programs ...*graph.Program) (n int64) {
	if s, ok := b.(ArenaSharer); ok {
		return s.SharedBytes(programs...)
	}
	for _, p := range programs {
		n += int64(Plan(b, p).ArenaBytes())
		if s, ok := b.(Scratcher); ok {
			n += s.ScratchBytes(p)
		}
	}
	return n
}

// Turns is the memory that users of so many bytes each take, which come one after the other and have what is there, if it is large enough, else memory of their
// own beside it.
func Turns(sizes []int64) (n int64) {
	most := int64(0)
	for _, size := range sizes {
		if size > most {
			n, most = n+size, size
		}
	}
	return n
}

// Plan is the plan that Compile makes of a program on a device.
func Plan(b Backend, p *graph.Program) *graph.Plan {
	if planner, ok := b.(Planner); ok {
		return graph.NewPlanWith(p, planner.PlanOptions())
	}
	return graph.NewPlan(p)
}

// ErrStale is the error of fetching a run that newer ones have overwritten.
var ErrStale = errors.New("backend: the run's outputs have been overwritten by newer runs")

// ErrClosed is the error of using what was closed.
var ErrClosed = errors.New("backend: used after Close")

// UnsupportedError says that a device cannot run a node. It is errors.ErrUnsupported.
type UnsupportedError struct {
	Device string
	Node   string // as printed
	Reason string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot run %s: %s", e.Device, e.Node, e.Reason)
}

// Is makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// CheckSize returns an error that names the tensor if a buffer's length is not want bytes.
func CheckSize(what, name string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s %q takes %d bytes, got %d", what, name, want, got)
	}
	return nil
}

// CheckVars returns an error if the store lacks a variable of the program or has it in another format or shape.
func CheckVars(p *graph.Program, have []graph.Var) error {
	byName := make(map[string]graph.Var, len(have))
	for _, v := range have {
		byName[v.Name] = v
	}
	for _, v := range p.Vars() {
		h, ok := byName[v.Name]
		if !ok {
			return fmt.Errorf("program %s: the store has no variable %s", p.Name(), v)
		}
		if !h.Equal(v) {
			return fmt.Errorf("program %s: the store's variable is %s, the program's %s", p.Name(), h, v)
		}
	}
	return nil
}
