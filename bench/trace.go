package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// programTrace is when a program's nodes ran.
type programTrace struct {
	program *graph.Program
	spans   []backend.Span
	kernels []string // of each node; nil: the device does not tell
}

// errNoTrace is wrapped by the error of Steps that is asked for a trace on a device without one.
var errNoTrace = errors.New("the device can't say when the nodes of a program run")

// traceOnce runs a step node by node.
func traceOnce(t *trainee) ([]programTrace, error) {
	var all []programTrace
	for i, e := range t.steps.Executables() {
		tracer, ok := e.(backend.Tracer)
		if !ok {
			return nil, errNoTrace
		}
		spans, err := tracer.Trace()
		if err != nil {
			return nil, err
		}
		all = append(all, programTrace{t.programs[i], spans, kernelsOf(e)})
	}
	return all, nil
}

// traceEvent is an entry of the Trace Event Format, which Perfetto and chrome://tracing show.
type traceEvent struct {
	Name     string  `json:"name"`
	Category string  `json:"cat,omitempty"`
	Phase    string  `json:"ph"` // X: an event with a duration; M: the name of a process or thread
	Process  int     `json:"pid"`
	Thread   int     `json:"tid"`
	Micros   float64 `json:"ts"`
	Duration float64 `json:"dur"` // microseconds
	Args     any     `json:"args"`
}

// nodeArgs are what the viewer shows of a node.
type nodeArgs struct {
	Node       int     `json:"node"` // index in the program
	Text       string  `json:"text"`
	Shapes     string  `json:"shapes"`
	Kernels    string  `json:"kernels,omitempty"`
	Submission int     `json:"submission"`
	FLOPs      int64   `json:"flops"`
	Bytes      int64   `json:"bytes"`
	GFLOPs     float64 `json:"gflops_per_s"`
	GBs        float64 `json:"gb_per_s"`
}

type nameArgs struct {
	Name string `json:"name"`
}

// WriteTrace writes a step of each model that was measured with StepOptions.Trace as JSON for https://ui.perfetto.dev and chrome://tracing: a
// process a model, a thread a program, an event a node. The nodes ran one after the other, which those of a measured step need not do.
func WriteTrace(w io.Writer, steps []Step) error {
	events := []traceEvent{}
	for i, s := range steps {
		pid := i + 1
		events = append(events, traceEvent{Name: "process_name", Phase: "M", Process: pid, Args: nameArgs{s.Name + ", " + s.Device}})
		from := 0.0 // of a program, in seconds
		for k, p := range s.trace {
			tid := k + 1
			events = append(events, traceEvent{Name: "thread_name", Phase: "M", Process: pid, Thread: tid, Args: nameArgs{"program " + p.program.Name()}})
			end := from
			for j, n := range p.program.Nodes() {
				span := p.spans[j]
				op, shapes := byShapes(n)
				flops, bytes := graph.Cost(n)
				kernels := ""
				if p.kernels != nil {
					kernels = p.kernels[j]
				}
				events = append(events, traceEvent{
					Name: op, Category: "op", Phase: "X", Process: pid, Thread: tid, Micros: 1e6 * (from + span.Start), Duration: 1e6 * span.Seconds,
					Args: nodeArgs{
						j, n.String(), shapes, kernels, span.Submission, flops, bytes, ratio(float64(flops)/1e9, span.Seconds), ratio(float64(bytes)/1e9, span.Seconds),
					},
				})
				end = max(end, from+span.Start+span.Seconds)
			}
			from = end
		}
	}
	err := json.NewEncoder(w).Encode(struct {
		Unit   string       `json:"displayTimeUnit"`
		Events []traceEvent `json:"traceEvents"`
	}{"ms", events})
	if err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	return nil
}
