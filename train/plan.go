package train

import (
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
)

// StepPlan is what a training step comes to.
type StepPlan struct {
	Recompute model.Recompute `json:"recompute"`
	Precision string          `json:"precision"`
	Nodes     int             `json:"nodes"` // of the step's programs
	FLOPs     int64           `json:"flops"` // of the whole step by graph.Cost, what is computed again too
	Memory    Memory          `json:"memory"`
	Diagnosed *DiagnosedPlan  `json:"diagnosed,omitempty"` // nil where no step is
}

// DiagnosedPlan is what a diagnosed step comes to.
type DiagnosedPlan struct {
	Every int   `json:"every"` // diagnostics_every
	Nodes int   `json:"nodes"` // of its programs
	FLOPs int64 `json:"flops"` // of the whole step
	Bytes int64 `json:"bytes"` // that its programs take beside those of plain steps, which share its arena where the device lets them
}

// PlanStep plans the training step of a config that has been resolved and whose vocabulary is known, without allocating anything.
func PlanStep(dev backend.Backend, c Config) (StepPlan, error) {
	if err := c.checkMoments(dev); err != nil {
		return StepPlan{}, err
	}
	c = c.on(dev.Info())
	o := c.programOptions()
	programs, err := StepperPrograms(c.Model.Config, o, c.Accumulation)
	if err != nil {
		return StepPlan{}, err
	}
	p := StepPlan{Recompute: c.Recompute, Precision: c.Precision, Memory: c.placed(MemoryOn(dev, programs...))}
	nodes, flops := programWork(programs)
	p.Nodes = nodes
	for i, f := range flops {
		p.FLOPs += f
		if i == 0 {
			p.FLOPs += int64(c.Accumulation-1) * f
		}
	}
	if c.DiagnosticsEvery <= 0 {
		return p, nil
	}
	o.Diagnostics = &Diagnostics{}
	diagnosed, err := StepperPrograms(c.Model.Config, o, c.Accumulation)
	if err != nil {
		return StepPlan{}, err
	}
	d := DiagnosedPlan{Every: c.DiagnosticsEvery, FLOPs: p.FLOPs, Bytes: MemoryOn(dev, slices.Concat(diagnosed, programs)...).Total() - MemoryOn(dev, programs...).Total()}
	nodes, more := programWork(diagnosed)
	d.Nodes = nodes
	for i := range more { // each runs once, in place of a plain one
		d.FLOPs += more[i] - flops[i]
	}
	p.Diagnosed = &d
	return p, nil
}

// programWork counts nodes, and the operations of each program.
func programWork(programs []*graph.Program) (nodes int, flops []int64) {
	for _, p := range programs {
		nodes += len(p.Nodes())
		sum := int64(0)
		for _, n := range p.Nodes() {
			f, _ := graph.Cost(n)
			sum += f
		}
		flops = append(flops, sum)
	}
	return nodes, flops
}

// programOptions are those of the run's programs.
func (c Config) programOptions() ProgramOptions {
	return ProgramOptions{
		Storage: c.storage(), Masters: c.masters(), Batch: c.Batch, SeqLen: c.SeqLen, MaxNorm: float32(c.Clip), ZLoss: float32(c.ZLoss), Decay: c.Decay, Recompute: c.Recompute,
	}
}
