package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/internal/units"
	"github.com/vktrain/vktrain/model"
)

// Memory is what programs over one store need on a device, in bytes. It is known before anything is allocated.
type Memory struct {
	Params       int64 `json:"params"`
	Moments      int64 `json:"moments"`      // of AdamW, two a parameter
	Accumulators int64 `json:"accumulators"` // gradients that live across micro-batches
	Arena        int64 `json:"arena"`        // activations and gradients, and what the device needs beside them
	Inputs       int64 `json:"inputs"`
	Host         int64 `json:"host,omitempty"` // what is in the host's memory by request, and in none of the others
}

// MemoryOf adds up programs that share a store: variables once, and each program's own arena and inputs. Arenas are of plans without options;
// MemoryOn has those that a device makes.
func MemoryOf(programs ...*graph.Program) Memory {
	arena := int64(0)
	for _, p := range programs {
		arena += int64(graph.NewPlan(p).ArenaBytes())
	}
	return memory(arena, programs)
}

// MemoryOn is MemoryOf on a device, where programs that are compiled in this order may share an arena: see [backend.ArenaSharer]. It is what a CPU holds, to the byte; other
// devices round tensors up and have inputs and outputs twice where the host sees them, which a plan does not count.
func MemoryOn(dev backend.Backend, programs ...*graph.Program) Memory {
	return memory(backend.ArenaBytes(dev, programs...), programs)
}

func memory(arena int64, programs []*graph.Program) Memory {
	m := Memory{Arena: arena}
	for _, v := range Vars(programs...) {
		to := &m.Params
		switch {
		case isMoment(v):
			to = &m.Moments
		case strings.HasPrefix(v.Name, PrefixGrad):
			to = &m.Accumulators
		}
		*to += int64(v.Bytes())
	}
	for _, p := range programs {
		for _, v := range p.Inputs() {
			m.Inputs += int64(v.Bytes())
		}
	}
	return m
}

// Need is the memory of a run.
type Need struct {
	Step Memory `json:"step"` // of its training programs
	Run  Memory `json:"run"`  // with those that evaluate, generate, score and diagnose
}

// NeedOf is what the run of a config needs, before anything is allocated: of a vocabulary that is not known yet, the most that the tokenizer may have. It is an error
// if the config can't be, not if the device has less.
func NeedOf(dev backend.Backend, c Config) (Need, error) {
	if err := c.Validate(); err != nil {
		return Need{}, err
	}
	t := &Trainer{cfg: c.Resolve().on(dev.Info()), dev: dev, diagnosisMayGo: c.DiagnosticsEvery < 0}
	if t.cfg.Model.VocabSize == 0 {
		t.cfg.Model.VocabSize = t.cfg.Data.VocabSize
	}
	r, err := t.record()
	return r.need, err
}

// checkFit refuses what a device has no room for, without recording programs: it adds up variables, inputs, and the residual stream of each block, which
// every recomputation keeps. Where the vocabulary is not known yet it takes the smallest.
func (c Config) checkFit(info backend.Info) error {
	m := c.Model.Config
	if m.VocabSize == 0 {
		m.VocabSize = minVocab
	}
	if _, _, err := c.programOptions().check(m); err != nil {
		return badKey("", "%v", err)
	}
	tokens, params := int64(c.Batch)*int64(c.SeqLen), 4*int64(m.NumParams())
	masters := params / 4 * int64(c.masters().Size()) // and gains have more
	least := Memory{
		Params: masters, Moments: 2 * params, Arena: tokens * int64(c.on(info).storage().Size()) * int64(m.DModel) * int64(m.NLayers), Inputs: 8 * tokens,
	}
	if c.Accumulation > 1 {
		least.Accumulators = params
	}
	return c.checkMemory(c.placed(least), info)
}

// withEvaluation adds the programs that evaluate, generate and score tasks to those that train.
func (c Config) withEvaluation(programs []*graph.Program) ([]*graph.Program, error) {
	eval, err := EvalProgram(c.Model.Config, c.programOptions())
	if err != nil {
		return nil, err
	}
	logits, err := LogitsProgram(c.Model.Config, ProgramOptions{Batch: 1, Masters: c.masters()})
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(programs), eval, logits)
	if c.Tasks.Paths() == nil {
		return all, nil
	}
	scoring, err := scorePrograms(c.Model.Config, c.programOptions())
	return append(all, scoring...), err
}

// Fixed is what a smaller batch would not change.
func (m Memory) Fixed() int64 { return m.Params + m.Moments + m.Accumulators }

// Total is all of it.
func (m Memory) Total() int64 { return m.Fixed() + m.Arena + m.Inputs }

// Plus is what two need together.
func (m Memory) Plus(n Memory) Memory {
	return Memory{m.Params + n.Params, m.Moments + n.Moments, m.Accumulators + n.Accumulators, m.Arena + n.Arena, m.Inputs + n.Inputs, m.Host + n.Host}
}

// MemoryError says that a device has less memory than is needed, and what to change.
type MemoryError struct {
	Need   Memory
	Device backend.Info
	Remedy string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s are needed, %s of them for the parameters and their moments, and %s has %s: %s",
		units.Bytes(e.Need.Total()), units.Bytes(e.Need.Fixed()), e.Device, units.Bytes(e.Device.Memory), e.Remedy)
}

// Check returns a *MemoryError if a device has less. Unknown memory is no reason to refuse.
func (m Memory) Check(info backend.Info) error {
	if info.Memory == 0 || m.Total() <= info.Memory {
		return nil
	}
	remedy := "use a smaller batch with more accumulation, or a smaller seq_len, or recompute: block"
	if m.Fixed() > info.Memory {
		remedy = "use a smaller model"
	}
	return &MemoryError{m, info, remedy}
}

// checkMemory is Memory.Check with only those remedies that the config has not taken yet.
func (c Config) checkMemory(m Memory, info backend.Info) error {
	err := m.Check(info)
	var short *MemoryError
	if !errors.As(err, &short) || m.Fixed() > info.Memory {
		return err
	}
	var ways []string
	if c.Batch > 1 {
		ways = append(ways, "a smaller batch with more accumulation")
	}
	ways = append(ways, "a smaller seq_len")
	if c.Recompute != model.RecomputeBlock {
		ways = append(ways, "recompute: block")
	}
	short.Remedy = "use " + orList(append(ways, "a smaller model"))
	return err
}
