package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/experiment"
	"github.com/vktrain/vktrain/internal/bootstrap"
)

// CostFile is what `vktrain bench step --json` printed, or an experiment of cost wrote, in a folder of runs or of an experiment: the cost of a step by itself.
const CostFile = experiment.CostFile

// readCost reads CostFile: one step or a list of them. Nothing is there without the file.
func readCost(dir string) ([]bench.Step, error) {
	path := filepath.Join(dir, CostFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []bench.Step
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		steps = make([]bench.Step, 1)
		err = json.Unmarshal(raw, &steps[0])
	} else {
		err = json.Unmarshal(raw, &steps)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not what vktrain bench step --json prints: %w", path, err)
	}
	return steps, nil
}

// costNotes are how the section's figures are to be read.
var costNotes = []string{
	"A run's step is the median of its steps' times, but for the first three, diagnosed ones, and those beside an evaluation, a sample, a pause or the end; in brackets the quartiles, the mean over the runs; ± is the sample standard deviation of the runs' medians. " +
		"Runs come one after the other, and each while the machine did whatever else it did.",
	"Ratios in the runs are paired by the seed: the mean, and the 95% bootstrap interval of 3 or more pairs, which is too narrow with so few. Steps in turns are one of each model and then the next of each, so that other programs disturb all alike: the median of the turns' ratios, and its 95% bootstrap interval. The time of the cores is what the program took of all of them, which other programs lengthen less. " +
		"Where nothing differs, intervals that hold what they say overlap in over 99 of 100 cases. Where the two disagree, believe the turns.",
	"FLOPs count matrix products only: 6 for each weight, 6 N T H h for causal attention (Chowdhery et al. 2022). Norms are in the time, not in them: numbers through norms are those that all norms of a step go over, forward and backward, and bytes are what all operators read and write, each operand once. " +
		"A norm of single heads is done where queries and keys are rotated, and so adds no bytes.",
	"Step memory is parameters, moments, accumulated gradients, arena, scratch memory and inputs of a step's programs, as the device plans them; run memory is that with the programs that evaluate, generate, score and diagnose. Process memory is the most that the whole process held during the run.",
}

// costPart is the cost of the variants on one device that are compared with one of them.
type costPart struct {
	Title        string
	Sentences    []string
	Times, Needs table
}

// ratio is of one variant's time to another's.
type ratio struct {
	at, low, high float64 // no interval: low and high are 0
	n             int     // pairs
	of            string  // they are of
}

func (r *ratio) interval() bool { return r != nil && r.high > 0 }

func (r *ratio) cell() cell {
	if r == nil {
		return cell{Text: "–", Number: true}
	}
	return cell{Text: r.String(), Number: true}
}

func (r *ratio) String() string {
	s := fmt.Sprintf("%.3f", r.at)
	if r.interval() {
		s += fmt.Sprintf(" [%.3f, %.3f]", r.low, r.high)
	}
	return s
}

// words are r for a sentence.
func (r *ratio) words() string { return fmt.Sprintf("%s in %d %s", r, r.n, r.of) }

// overlap tells whether two intervals have a value in common.
func overlap(a, b *ratio) bool { return a.low <= b.high && b.low <= a.high }

// costRow is a variant on a device.
type costRow struct {
	*variant
	label   string              // among those that are compared with one
	runs    []*Run              // of the device, by seed
	timings []experiment.Timing // of runs
	turns   *bench.Step         // nil: there is none
}

// costParts makes the section: by device, and then by what variants are compared with.
func costParts(r Report, all []*variant) []costPart {
	var parts []costPart
	for _, device := range devicesOf(all) {
		rows := map[string]*costRow{}
		for _, v := range all {
			if row := rowOn(v, device, r.Cost); row != nil {
				rows[v.id] = row
			}
		}
		for _, family := range familiesOf(r.Results, all, rows) {
			parts = append(parts, partOf(device, family))
		}
	}
	return parts
}

// devicesOf are the devices that runs name, in order; one without a name where none does.
func devicesOf(all []*variant) []string {
	var devices []string
	for _, v := range all {
		for _, r := range v.runs {
			if !slices.Contains(devices, r.device) {
				devices = append(devices, r.device)
			}
		}
	}
	return devices
}

func rowOn(v *variant, device string, steps []bench.Step) *costRow {
	row := &costRow{variant: v}
	for _, r := range v.runs {
		if r.device != device {
			continue
		}
		tokens := 0
		if r.Config != nil {
			tokens = r.Config.TokensPerStep()
		}
		row.runs, row.timings = append(row.runs, r), append(row.timings, experiment.TimeSteps(r.Lines, tokens))
	}
	if len(row.runs) == 0 {
		return nil
	}
	for i, s := range steps {
		if s.Name == v.id && experiment.KindOf(s.Device) == device {
			row.turns = &steps[i]
		}
	}
	return row
}

// familiesOf groups rows by what they are compared with, that first. Without an experiment all are compared with the first.
func familiesOf(results *experiment.Results, all []*variant, rows map[string]*costRow) [][]*costRow {
	baseline := map[string]string{}
	if results != nil {
		for _, c := range results.Combinations {
			baseline[c.ID] = c.Baseline
		}
	}
	var order []string
	members := map[string][]*costRow{}
	for _, v := range all {
		row := rows[v.id]
		if row == nil {
			continue
		}
		first := baseline[v.id]
		switch {
		case results == nil && len(order) > 0:
			first = order[0]
		case first == "" || rows[first] == nil:
			first = v.id
		}
		if members[first] == nil {
			order = append(order, first)
		}
		if v.id == first {
			members[first] = slices.Insert(members[first], 0, row)
		} else {
			members[first] = append(members[first], row)
		}
	}
	var families [][]*costRow
	for _, name := range order {
		families = append(families, members[name])
	}
	return families
}

// nameFamily labels the rows by what they differ in, and returns what they have in common.
func nameFamily(family []*costRow) string {
	base := family[0]
	var common []choice
	for _, row := range family {
		row.label = row.name
	}
	for _, row := range family {
		if len(row.choices) == 0 || len(row.choices) != len(base.choices) {
			return ""
		}
	}
	different := make([][]choice, len(family))
	for i, c := range base.choices {
		if !slices.ContainsFunc(family, func(row *costRow) bool { return row.choices[i] != c }) {
			common = append(common, c)
			continue
		}
		for j, row := range family {
			different[j] = append(different[j], row.choices[i])
		}
	}
	if len(family) == 1 {
		return ""
	}
	for j, row := range family {
		row.label = labelOf(different[j])
	}
	return labelOf(common)
}

func partOf(device string, family []*costRow) costPart {
	base := family[0]
	common := nameFamily(family)
	p := costPart{Title: base.label, Sentences: noise(family)}
	if len(family) > 1 {
		p.Title = "Beside " + base.label
	}
	if common != "" {
		p.Title = common + ": beside " + base.label
	}
	if device != "" {
		p.Title += ", on " + device
	}
	turns := slices.ContainsFunc(family, func(row *costRow) bool { return row.turns != nil })
	columns := []string{"step (ms)", "tokens/s", "GFLOP/s of the model", "time × " + base.label + ", in runs"}
	if turns { // the table of turns has the GFLOP/s
		columns = slices.Concat(columns[:2], columns[3:], []string{"in turns", "intervals overlap", "time of the cores in turns"})
	}
	p.Times.Head = heads("variant", columns...)
	p.Needs.Head = heads("variant", "parameters", "step memory", "× "+base.label, "run memory", "process memory", "FLOPs/token", "numbers through norms/token", "bytes/token")
	for _, row := range family {
		inRuns, inTurns := row.inRuns(base), row.inTurns(base)
		p.Times.Rows = append(p.Times.Rows, row.times(inRuns, inTurns, turns))
		p.Needs.Rows = append(p.Needs.Rows, row.needs(base))
		if s := agreement(row, base, inRuns, inTurns); s != "" {
			p.Sentences = append(p.Sentences, s)
		}
	}
	if c := base.runs[0].Config; c != nil && c.Accumulation > 1 && base.turns != nil {
		p.Sentences = append(p.Sentences, fmt.Sprintf("A step of the runs is of %d micro-batches, and one of the turns of a single one, so that AdamW has a larger part in it.", c.Accumulation))
	}
	return p
}

// inRuns is the ratio of the runs' medians, paired by the seed; nil where there is no pair.
func (c *costRow) inRuns(base *costRow) *ratio {
	if c == base {
		return nil
	}
	var x []float64
	for i, r := range c.runs {
		j := slices.IndexFunc(base.runs, func(b *Run) bool { return b.Seed == r.Seed })
		if j >= 0 && c.timings[i].Median > 0 && base.timings[j].Median > 0 {
			x = append(x, c.timings[i].Median/base.timings[j].Median)
		}
	}
	if len(x) == 0 {
		return nil
	}
	all := &ratio{at: mean(x), n: len(x), of: "pairs of runs"}
	if len(x) >= 3 {
		all.low, all.high = bootstrap.Interval(x, bootstrap.Mean, "cost", c.id, base.id)
	}
	return all
}

// inTurns is the ratio of the turns; nil where both were not in the same ones.
func (c *costRow) inTurns(base *costRow) *ratio {
	if c == base || c.turns == nil || c.turns.RatioTo != base.id {
		return nil
	}
	return &ratio{at: c.turns.Ratio, low: c.turns.RatioLow, high: c.turns.RatioHigh, n: c.turns.Steps, of: "turns"}
}

func (c *costRow) times(inRuns, inTurns *ratio, turns bool) []cell {
	var ms, rate, flops, low, high []float64
	for i, t := range c.timings {
		if t.Median == 0 {
			continue
		}
		ms, low, high = append(ms, 1e3*t.Median), append(low, 1e3*t.Low), append(high, 1e3*t.High)
		if config := c.runs[i].Config; config != nil {
			rate = append(rate, t.TokensPerSec)
			if c.params() > 0 {
				flops = append(flops, config.Model.CausalFLOPsPerToken(config.SeqLen)*t.TokensPerSec/1e9)
			}
		}
	}
	step := spread(ms, "%.1f")
	if len(ms) > 0 {
		step.Text += fmt.Sprintf(" [%.1f, %.1f]", mean(low), mean(high))
	} else {
		step.Text = c.noTime()
	}
	cells := []cell{{Text: c.label, Color: c.style.Hex()}, step, spread(rate, "%.0f")}
	if !turns {
		return append(cells, spread(flops, "%.2f"), inRuns.cell())
	}
	both, cores := cell{Text: "–", Number: true}, (*ratio)(nil)
	if inRuns.interval() && inTurns.interval() {
		both.Text = map[bool]string{true: "yes", false: "no"}[overlap(inRuns, inTurns)]
	}
	if inTurns != nil && c.turns.CPURatio > 0 {
		cores = &ratio{at: c.turns.CPURatio, low: c.turns.CPULow, high: c.turns.CPUHigh}
	}
	return append(cells, inRuns.cell(), inTurns.cell(), both, cores.cell())
}

// noTime says why the runs have no time.
func (c *costRow) noTime() string {
	most, lines := 0, 0
	for i, t := range c.timings {
		most, lines = max(most, t.Steps), max(lines, len(c.runs[i].Lines))
	}
	if most == 0 && lines > 2*experiment.LeastTimed {
		return "no step alone was timed"
	}
	return fmt.Sprintf("too few steps (%d of %d)", most, experiment.LeastTimed)
}

func (c *costRow) needs(base *costRow) []cell {
	figure := func(name string) []float64 {
		var all []float64
		for _, r := range c.runs {
			if x, ok := r.figures[name]; ok {
				all = append(all, x)
			}
		}
		return all
	}
	memory, against := figure(experiment.MetricStepMemory), cell{Text: "–", Number: true}
	if of := base.runs[0].figures[experiment.MetricStepMemory]; len(memory) > 0 && of > 0 && c != base {
		against.Text = fmt.Sprintf("%.3f", mean(memory)/of)
	}
	unit := func(list []float64, format string) cell {
		s := spread(list, "%.1f")
		if len(list) == 0 {
			return s
		}
		s.Text = fmt.Sprintf(format, mean(list))
		return s
	}
	short := func(list []float64) cell {
		if len(list) == 0 {
			return cell{Text: "–", Number: true}
		}
		return cell{Text: shortCount(mean(list)), Number: true}
	}
	params := cell{Text: "–", Number: true}
	if p := c.params(); p > 0 {
		params.Text = shortCount(float64(p))
	}
	flops := figure(experiment.MetricFLOPs)
	if config := c.runs[0].Config; len(flops) == 0 && config != nil && c.params() > 0 {
		flops = []float64{config.Model.CausalFLOPsPerToken(config.SeqLen)}
	}
	return []cell{{Text: c.label, Color: c.style.Hex()}, params, unit(memory, "%.1f MiB"), against, unit(figure(experiment.MetricRunMemory), "%.1f MiB"),
		unit(figure(experiment.MetricResident), "%.0f MiB"), short(flops), short(figure(experiment.MetricNorms)), short(figure(experiment.MetricTraffic))}
}

// noise says how far times are from each other that should be the same.
func noise(family []*costRow) []string {
	var within, between, turns []float64
	for _, row := range family {
		var medians []float64
		for _, t := range row.timings {
			if t.Median > 0 {
				medians, within = append(medians, t.Median), append(within, (t.High-t.Low)/t.Median)
			}
		}
		if len(medians) > 1 {
			between = append(between, slices.Max(medians)/slices.Min(medians)-1)
		}
		if s := row.turns; s != nil && s.MsHigh > 0 {
			turns = append(turns, (s.MsHigh-s.MsLow)/s.MsPerStep)
		}
	}
	var parts []string
	say := func(x []float64, format string) {
		if len(x) > 0 {
			parts = append(parts, fmt.Sprintf(format, 100*mean(x)))
		}
	}
	say(within, "the middle half of a run's steps spans %.1f%% of their median")
	say(between, "the slowest run of a variant takes %.1f%% longer a step than its fastest")
	say(turns, "the middle half of a model's turns spans %.1f%% of their median")
	if len(parts) == 0 {
		return nil
	}
	return []string{"Noise, on average: " + strings.Join(parts, "; ") + "."}
}

// agreement says of Peri-LN beside Pre-LN what the runs and the turns come to; nothing of others.
func agreement(row, base *costRow, inRuns, inTurns *ratio) string {
	a, b := row.runs[0].Config, base.runs[0].Config
	if a == nil || b == nil || a.Model.Placement != "peri" || b.Model.Placement != "pre" || a.Model.QKNorm != b.Model.QKNorm {
		return ""
	}
	s := fmt.Sprintf("A step with Peri-LN (%s) takes this many times one with Pre-LN (%s): ", row.label, base.label)
	switch {
	case inRuns == nil && inTurns == nil:
		return ""
	case inTurns == nil:
		return s + inRuns.words() + ". No steps were timed in turns: cost: 20 in the experiment's file does that."
	case inRuns == nil:
		return s + inTurns.words() + ". The runs have too few steps to say."
	case !inRuns.interval() || !inTurns.interval():
		return s + inRuns.words() + ", " + inTurns.words() + ". There are too few to say whether the two agree."
	case overlap(inRuns, inTurns):
		s += inRuns.words() + ", " + inTurns.words() + ". The two agree within noise: their intervals overlap."
	default:
		s += inRuns.words() + ", " + inTurns.words() + ". The two do not agree: their intervals have nothing in common."
	}
	return s + fmt.Sprintf(" Differences under about %.0f%% are not seen in these turns.", math.Ceil(50*(inTurns.high-inTurns.low)))
}

func mebibytes(n int64) cell {
	return cell{Text: fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)), Number: true}
}

// benchTable has a row for each model.
func benchTable(steps []bench.Step) *table {
	t := &table{Head: heads("model", "step (ms)", "against the first", "tokens/s", "memory", "FLOPs/token", "numbers through norms/token", "bytes/token", "GFLOP/s of the model"),
		Note: "The models ran in turns, so that all had the same machine: medians with their quartiles, and the median of the turns' ratios with its interval. Memory is that of parameters, moments, arena and inputs. In brackets behind GFLOP/s the share of the peak of multiply-adds, as measured between the turns."}
	for _, s := range steps {
		flops := digits("%.2f", s.GFLOPs)
		if s.OfPeak > 0 {
			flops.Text += fmt.Sprintf(" (%.0f%%)", 100*s.OfPeak)
		}
		step := digits("%.2f", s.MsPerStep)
		if s.MsHigh > 0 {
			step.Text += fmt.Sprintf(" [%.2f, %.2f]", s.MsLow, s.MsHigh)
		}
		against := cell{Text: "–", Number: true}
		if s.Ratio > 0 && s.RatioTo != s.Name {
			against = (&ratio{at: s.Ratio, low: s.RatioLow, high: s.RatioHigh}).cell()
		}
		t.Rows = append(t.Rows, []cell{words(s.Name), step, against, digits("%.0f", s.TokensPerSec), mebibytes(s.DeviceBytes),
			{Text: shortCount(s.Work.FLOPs), Number: true}, {Text: shortCount(s.Work.NormElements), Number: true}, {Text: shortCount(s.Work.Bytes), Number: true}, flops})
	}
	return t
}
