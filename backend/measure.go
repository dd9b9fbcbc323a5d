package backend

import "github.com/vktrain/vktrain/graph"

// Profiler is an Executable that can time its nodes.
type Profiler interface {
	// Profile runs the program once and returns the seconds that each node took, in the order of Program.Nodes.
	Profile() ([]float64, error)
}

// Span is when a node ran, in a run that does one node after another.
type Span struct {
	Start      float64 // seconds since the first node's start, by the device's clock
	Seconds    float64
	Submission int // of the ones that a run is cut into: that which the node is in
}

// Tracer is an Executable that can say when its nodes run.
type Tracer interface {
	// Trace runs the program once, as Profile does, and returns a span for each node.
	Trace() ([]Span, error)
}

// PeakMeter is a Backend that can measure the most that its device does.
type PeakMeter interface {
	// NewPeakLoops makes the loops ready. It is errors.ErrUnsupported on a device that can't time them.
	NewPeakLoops() (PeakLoops, error)
}

// PeakLoops are two loops that do nothing else than what they measure. A call takes some tens of milliseconds; the best of several calls is the
// peak. They are used by one goroutine, while nothing else runs on the device.
type PeakLoops interface {
	// Kernel says in what the loops are written.
	Kernel() string
	// FMA returns the GFLOP/s of float32 FMAs on registers.
	FMA() (float64, error)
	// Triad returns the GB/s, read and written, of a[i] = b[i] + s*c[i] over arrays that no cache holds. A line that is read because it is
	// going to be written does not count.
	Triad() (float64, error)
	Close() error
}

// MemoryUse is what a device has allocated of one type of memory for one purpose.
type MemoryUse struct {
	Purpose string   `json:"purpose"` // device memory, for kernels; upload memory; readback memory
	Type    int      `json:"type"`    // the driver's number of the memory type
	Heap    int      `json:"heap"`    // and of its heap
	Flags   []string `json:"flags"`   // of the type, as the driver has them
	Bytes   int64    `json:"bytes"`
}

// MemoryReporter is a Backend that says which memory it has taken.
type MemoryReporter interface {
	MemoryUse() []MemoryUse
}

// ArenaSharer is a Backend whose executables over one store share the memory of their intermediate values: an executable has that of those before it, if it is large
// enough, so that programs need no more of it than the largest of them does where that is compiled first.
type ArenaSharer interface {
	// SharedBytes is what executables of programs over one store take for these values and beside them, if they are compiled in this order and none is closed.
	SharedBytes(programs ...*graph.Program) int64
}
