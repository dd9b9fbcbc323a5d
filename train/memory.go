package train

import (
	"fmt"
	"strings"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Memory is what programs over one store need on a device, in bytes. It is known before anything is allocated.
type Memory struct {
	Params       int64 `json:"params"`
	Moments      int64 `json:"moments"`      // of AdamW, two a parameter
	Accumulators int64 `json:"accumulators"` // gradients that live across micro-batches
	Arena        int64 `json:"arena"`        // activations and gradients
	Inputs       int64 `json:"inputs"`
}

// MemoryOf adds up programs that share a store: variables once, and each program's own arena and inputs. Arenas are of plans without options;
// MemoryOn has those that a device makes.
func MemoryOf(programs ...*graph.Program) Memory { return memory(graph.NewPlan, programs) }

// MemoryOn is MemoryOf on a device.
func MemoryOn(dev backend.Backend, programs ...*graph.Program) Memory {
	return memory(func(p *graph.Program) *graph.Plan { return backend.Plan(dev, p) }, programs)
}

func memory(plan func(*graph.Program) *graph.Plan, programs []*graph.Program) Memory {
	var m Memory
	for _, v := range Vars(programs...) {
		to := &m.Params
		switch {
		case strings.HasPrefix(v.Name, PrefixM), strings.HasPrefix(v.Name, PrefixV):
			to = &m.Moments
		case strings.HasPrefix(v.Name, PrefixGrad):
			to = &m.Accumulators
		}
		*to += int64(v.Bytes())
	}
	for _, p := range programs {
		m.Arena += int64(plan(p).ArenaBytes())
		for _, v := range p.Inputs() {
			m.Inputs += int64(v.Bytes())
		}
	}
	return m
}

// Fixed is what a smaller batch would not change.
func (m Memory) Fixed() int64 { return m.Params + m.Moments + m.Accumulators }

// Total is all of it.
func (m Memory) Total() int64 { return m.Fixed() + m.Arena + m.Inputs }

// Plus is what two need together.
func (m Memory) Plus(n Memory) Memory {
	return Memory{m.Params + n.Params, m.Moments + n.Moments, m.Accumulators + n.Accumulators, m.Arena + n.Arena, m.Inputs + n.Inputs}
}

// Check returns an error if a device has less, which says what to change.
func (m Memory) Check(info backend.Info) error {
	need, have := m.Total(), info.Memory
	if have == 0 || need <= have {
		return nil
	}
	const gib = 1 << 30
	remedy := "use a smaller batch with more accumulation, or a smaller seq_len, or recompute: block"
	if m.Fixed() > have {
		remedy = "use a smaller model"
	}
	return fmt.Errorf("the run needs %.1f GiB, %.1f of them for the parameters and their moments, and %s has %.1f: %s",
		float64(need)/gib, float64(m.Fixed())/gib, info, float64(have)/gib, remedy)
}
