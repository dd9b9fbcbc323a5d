package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/train"
	"github.com/vktrain/vktrain/train/device"
)

// takeTurns times steps of all combinations, one of each and then the next of each, so that other programs disturb all alike, and writes CostFile. Each kind of
// device takes them by itself. It does nothing where the file has them.
func (e *engine) takeTurns(ctx context.Context) error {
	if e.Cost == 0 || e.hasTurns() {
		return nil
	}
	names := e.Devices
	if len(names) == 0 {
		names = []string{device.Auto}
	}
	var kinds []string
	var all []bench.Step
	for _, name := range names {
		dev, err := e.open(name, e.Threads)
		if err != nil {
			return err
		}
		if kind := deviceName(dev.Info()); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
			var steps []bench.Step
			if steps, err = e.turnsOn(ctx, dev); err == nil {
				all = append(all, steps...)
			}
		}
		if err = errors.Join(err, dev.Close()); err != nil {
			return err
		}
	}
	return writeJSONFile(filepath.Join(e.Out, CostFile), all)
}

// hasTurns tells whether CostFile has all combinations with as many turns as are wanted.
func (e *engine) hasTurns() bool {
	raw, err := os.ReadFile(filepath.Join(e.Out, CostFile))
	if err != nil {
		return false
	}
	var steps []bench.Step
	if json.Unmarshal(raw, &steps) != nil {
		return false
	}
	for _, c := range e.Combinations {
		if !slices.ContainsFunc(steps, func(s bench.Step) bool { return s.Name == c.ID && s.Steps == e.Cost }) {
			return false
		}
	}
	return true
}

// turnsOn times all combinations on a device, those together that are compared with one baseline.
func (e *engine) turnsOn(ctx context.Context, dev backend.Backend) ([]bench.Step, error) {
	var all []bench.Step
	for _, family := range e.families() {
		steps, err := e.familyOn(ctx, dev, family)
		if err != nil {
			return nil, fmt.Errorf("steps of %s and others in turns: %w", e.Combinations[family[0]].ID, err)
		}
		all = append(all, steps...)
	}
	return all, nil
}

// families are the combinations by what they are compared with, that first. Those whose micro-batches have other sizes are not of one family.
func (m *Matrix) families() [][]int {
	type key struct{ baseline, batch, seq int }
	var order []key
	members := map[key][]int{}
	for i, c := range m.Combinations {
		k := key{c.Baseline, c.Config.Resolve().Batch, c.Config.Resolve().SeqLen}
		if c.Baseline < 0 {
			k.baseline = i
		}
		if members[k] == nil {
			order = append(order, k)
		}
		if i == k.baseline {
			members[k] = slices.Insert(members[k], 0, i)
		} else {
			members[k] = append(members[k], i)
		}
	}
	var all [][]int
	for _, k := range order {
		all = append(all, members[k])
	}
	return all
}

// familyOn times a family; in halves, each with the first, where a device has no room for all together.
func (e *engine) familyOn(ctx context.Context, dev backend.Backend, family []int) ([]bench.Step, error) {
	var models []bench.Model
	for _, i := range family {
		models = append(models, e.benchModel(i))
	}
	c := e.Combinations[family[0]].Config.Resolve()
	e.tell(Event{Kind: EventTurns, Device: deviceName(dev.Info()), Text: fmt.Sprintf("%d turns of %s", e.Cost, counted(len(family), "combination"))})
	steps, err := bench.Steps(ctx, dev, models, bench.StepOptions{Batch: c.Batch, SeqLen: c.SeqLen, Steps: e.Cost})
	var short *train.MemoryError
	if !errors.As(err, &short) || len(family) < 3 {
		return steps, err
	}
	middle := (len(family) + 1) / 2
	first, err := e.familyOn(ctx, dev, family[:middle])
	if err != nil {
		return nil, err
	}
	rest, err := e.familyOn(ctx, dev, append([]int{family[0]}, family[middle:]...))
	if err != nil {
		return nil, err
	}
	return append(first, rest[1:]...), nil
}

// benchModel is a combination with the vocabulary of its first run.
func (e *engine) benchModel(combination int) bench.Model {
	c := e.Combinations[combination]
	config := withVocab(c.Config)
	for i, r := range e.Runs {
		if r.Combination == combination && e.results[i] != nil {
			config.Model.VocabSize = e.results[i].Vocab
			break
		}
	}
	return bench.Model{Name: c.ID, Config: config.Model.Config, Recompute: config.Recompute, Precision: config.Precision, Masters: config.Masters}
}
