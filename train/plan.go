package train

import (
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
}

// PlanStep plans the training step of a config that has been resolved and whose vocabulary is known, without allocating anything.
func PlanStep(dev backend.Backend, c Config) (StepPlan, error) {
	if err := c.checkMoments(dev); err != nil {
		return StepPlan{}, err
	}
	c = c.on(dev.Info())
	programs, err := StepperPrograms(c.Model.Config, c.programOptions(), c.Accumulation)
	if err != nil {
		return StepPlan{}, err
	}
	p := StepPlan{Recompute: c.Recompute, Precision: c.Precision, Memory: c.placed(MemoryOn(dev, programs...))}
	for i, prog := range programs {
		runs := int64(1)
		if i == 0 {
			runs = int64(c.Accumulation)
		}
		p.Nodes += len(prog.Nodes())
		for _, n := range prog.Nodes() {
			flops, _ := graph.Cost(n)
			p.FLOPs += runs * flops
		}
	}
	return p, nil
}

// programOptions are those of the run's programs.
func (c Config) programOptions() ProgramOptions {
	return ProgramOptions{
		Storage: c.storage(), Masters: c.masters(), Batch: c.Batch, SeqLen: c.SeqLen, MaxNorm: float32(c.Clip), ZLoss: float32(c.ZLoss), Decay: c.Decay, Recompute: c.Recompute,
	}
}
