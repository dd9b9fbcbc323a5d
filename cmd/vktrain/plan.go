package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// planFlags are those of `vktrain plan`.
type planFlags struct {
	device    deviceFlags // its name is the config's
	set       []string
	recompute []string
	precision []string
	measure   bool
	steps     int
	json      bool
}

var planConfigFlags = []configFlag{
	{"preset", "model.preset", "model `NAME`: nano, tiny, small, gpt2, peri-400m, peri-1.5b, peri-3.2b or one of the bench presets"},
	{"batch", "batch", "`B` sequences in a micro-batch"},
	{"seq", "seq_len", "sequences of `T` tokens"},
	{"masters", "masters", "`FORMAT` of the matrices that AdamW updates: f32, or bf16, rounded stochastically, in half the memory"},
	{"moments", "moments", "`WHERE` AdamW's moments are: device, or host, in the host's memory, for a card that has little (slower)"},
	{"device", "device", "`DEVICE` to plan for: auto, cpu, vulkan or vulkan:N, with an N (or UUID, or part of a name) that `vktrain devices` lists"},
}

func newPlanCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan [CONFIG.yaml]",
		Short: "Show what a training step needs, before anything is allocated",
		Long: `Show what a training step needs: memory and operations, with activations that are kept and with those that are computed
again in the backward pass. Settings are those of vktrain train. With --measure each choice also trains for a few steps, in turns.`,
		Args: arguments(0, 1, "at most one CONFIG.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := assignments(c, planConfigFlags, args, f.set)
			if err != nil {
				return err
			}
			return runPlan(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), all, f)
		},
	}
	for _, k := range planConfigFlags {
		c.Flags().String(k.flag, "", k.usage)
	}
	f.device.addOptions(c)
	f.device.addTuning(c)
	c.Flags().StringArrayVar(&f.set, "set", nil, "`KEY=VALUE` of the config, such as model.d_model=128; may be repeated")
	c.Flags().StringSliceVar(&f.recompute, "recompute", model.RecomputeNames(), "activations that are computed twice: `R`,...")
	c.Flags().StringSliceVar(&f.precision, "precision", nil, "of activations: `P`,... of auto, f32, bf16, f16; the config's without it")
	c.Flags().BoolVar(&f.measure, "measure", false, "measure the time of a step with each choice too")
	c.Flags().IntVar(&f.steps, "steps", 5, "measure `N` steps")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// planRow is a choice of recomputation and precision.
type planRow struct {
	train.StepPlan
	Total          int64   `json:"total_bytes"`
	Fits           *bool   `json:"fits,omitempty"` // on the device; absent where its memory is unknown
	MsPerStep      float64 `json:"ms_per_step,omitempty"`
	Ratio          float64 `json:"ratio,omitempty"`           // of the time to the first row's
	DiagnosedRatio float64 `json:"diagnosed_ratio,omitempty"` // of a diagnosed step's time to a plain one's
}

// planJSON is what --json prints.
type planJSON struct {
	Device       string    `json:"device"`
	DeviceMemory int64     `json:"device_memory,omitempty"`
	Preset       string    `json:"preset"`
	Params       int       `json:"params"`
	VocabSize    int       `json:"vocab_size"`
	Batch        int       `json:"batch"`
	SeqLen       int       `json:"seq_len"`
	Accumulation int       `json:"accumulation"`
	ModelFLOPs   float64   `json:"model_flops"` // of a step: model.CausalFLOPsPerToken
	Rows         []planRow `json:"rows"`
}

func runPlan(ctx context.Context, out, progressOut io.Writer, all []train.Assignment, f planFlags) (err error) {
	cfg, err := train.Load(all)
	if err != nil {
		return err
	}
	cfg = cfg.Resolve()
	upTo := cfg.Model.VocabSize == 0 // the tokenizer decides, within a bound
	if upTo {
		cfg.Model.VocabSize = cfg.Data.VocabSize
	}
	if f.steps < 1 {
		return usagef("--steps: %d is too small: use at least 1", f.steps)
	}
	choices, err := recomputeChoices(f.recompute)
	if err != nil {
		return err
	}
	f.device.name = cfg.Device
	f.device.options.Measure = f.measure // a plan alone takes the kernels that are known
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	plan, err := planFor(ctx, dev, cfg, choices, f.precision)
	if err != nil {
		return err
	}
	if f.measure {
		if err := measurePlan(ctx, dev, cfg, &plan, f.steps, progressOut); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(out, plan)
	}
	if why != "" {
		why = "; auto: " + oneLine(why)
	}
	row(out, "device", "%s%s", dev.Info(), why)
	writePlan(out, plan, upTo)
	return nil
}

func recomputeChoices(names []string) ([]model.Recompute, error) {
	var choices []model.Recompute
	for _, name := range names {
		r := model.Recompute(name)
		if err := r.Validate(); err != nil {
			return nil, usagef("--%v", err)
		}
		if slices.Contains(choices, r) {
			return nil, usagef("--recompute: %s is there twice", name)
		}
		choices = append(choices, r)
	}
	if len(choices) == 0 {
		return nil, usagef("--recompute: give at least one of none, attention, block")
	}
	return choices, nil
}

func planFor(ctx context.Context, dev backend.Backend, cfg train.Config, choices []model.Recompute, precisions []string) (planJSON, error) {
	if len(precisions) == 0 {
		precisions = []string{cfg.Precision}
	}
	p := planJSON{
		Device: dev.Info().String(), DeviceMemory: dev.Info().Memory, Preset: cfg.Model.Preset, Params: cfg.Model.NumParams(), VocabSize: cfg.Model.VocabSize,
		Batch: cfg.Batch, SeqLen: cfg.SeqLen, Accumulation: cfg.Accumulation,
		ModelFLOPs: cfg.Model.CausalFLOPsPerToken(cfg.SeqLen) * float64(cfg.TokensPerStep()),
	}
	for _, precision := range precisions {
		for _, r := range choices {
			if ctx.Err() != nil {
				return p, errInterrupted
			}
			cfg.Recompute, cfg.Precision = r, precision
			if err := cfg.Validate(); err != nil {
				return p, err
			}
			step, err := train.PlanStep(dev, cfg)
			if err != nil {
				return p, err
			}
			row := planRow{StepPlan: step, Total: step.Memory.Total()}
			if p.DeviceMemory > 0 {
				fits := step.Memory.Check(dev.Info()) == nil
				row.Fits = &fits
			}
			p.Rows = append(p.Rows, row)
		}
	}
	return p, nil
}

// measurePlan times a step of one micro-batch with each choice.
func measurePlan(ctx context.Context, dev backend.Backend, cfg train.Config, p *planJSON, steps int, progressOut io.Writer) error {
	var models []bench.Model
	for _, r := range p.Rows {
		models = append(models, bench.Model{
			Name: string(r.Recompute), Config: cfg.Model.Config, Recompute: r.Recompute, Precision: r.Precision, Masters: cfg.Masters,
			DiagnosticsEvery: cfg.DiagnosticsEvery,
		})
	}
	results, err := measureSteps(ctx, dev, models, bench.StepOptions{Batch: cfg.Batch, SeqLen: cfg.SeqLen, Steps: steps}, progressOut)
	if errors.Is(err, errInterrupted) {
		return err
	}
	if err != nil {
		return fmt.Errorf("--measure runs all choices together: %w", err)
	}
	for i, r := range results {
		p.Rows[i].MsPerStep, p.Rows[i].Ratio = r.MsPerStep, r.Ratio
		if r.Diagnosed != nil {
			p.Rows[i].DiagnosedRatio = r.Diagnosed.Ratio
		}
	}
	return nil
}

func writePlan(w io.Writer, p planJSON, upTo bool) {
	vocab := fmt.Sprintf("a vocabulary of %s", grouped(int64(p.VocabSize)))
	if upTo {
		vocab += ", the most that the tokenizer may take"
	}
	row(w, "model", "%s: %s parameters with %s", p.Preset, grouped(int64(p.Params)), vocab)
	tokens := p.Batch * p.SeqLen * p.Accumulation
	row(w, "step", "%s tokens: %d x %d sequences of %d; %.4g GFLOP of the model, causal attention as half", grouped(int64(tokens)), p.Accumulation, p.Batch,
		p.SeqLen, p.ModelFLOPs/1e9)
	if p.DeviceMemory > 0 {
		row(w, "memory", "%s", size(p.DeviceMemory))
	}
	fmt.Fprintln(w)
	t := table{left: 2, rows: [][]string{{"recompute", "precision", "nodes", "GFLOP", "parameters", "moments", "gradients", "arena", "inputs", "total", "fits"}}}
	measured := p.Rows[0].MsPerStep > 0
	if measured {
		t.rows[0] = append(t.rows[0], "ms", "ratio")
	}
	for _, r := range p.Rows {
		m, fits := r.Memory, "?"
		if r.Fits != nil {
			fits = map[bool]string{false: "no", true: "yes"}[*r.Fits]
		}
		cells := []string{
			string(r.Recompute), r.Precision, fmt.Sprint(r.Nodes), fmt.Sprintf("%.4g", float64(r.FLOPs)/1e9), size(m.Params), moments(m), size(m.Accumulators),
			size(m.Arena), size(m.Inputs), size(r.Total), fits,
		}
		if measured {
			cells = append(cells, fmt.Sprintf("%.1f", r.MsPerStep), fmt.Sprintf("%.3f", r.Ratio))
		}
		t.add(cells...)
	}
	t.write(w)
	writeDiagnosed(w, p)
}

// writeDiagnosed says what diagnosed steps need beside the others. Of several micro-batches one is diagnosed.
func writeDiagnosed(w io.Writer, p planJSON) {
	if p.Rows[0].Diagnosed == nil {
		return
	}
	fmt.Fprintln(w)
	for _, r := range p.Rows {
		d, cost := r.Diagnosed, ""
		if r.DiagnosedRatio > 0 {
			share := bench.Diagnosed{Every: d.Every * p.Accumulation, Ratio: r.DiagnosedRatio}.Share()
			cost = fmt.Sprintf("; %.3f of a plain micro-batch's time, %.2f%% of training", r.DiagnosedRatio, 100*share)
		}
		row(w, "diagnosed", "%s, %s: one step in %d has %d nodes and %.4g GFLOP, and takes %s more memory%s", r.Recompute, r.Precision, d.Every, d.Nodes,
			float64(d.FLOPs)/1e9, size(d.Bytes), cost)
	}
}

// moments is how much AdamW's moments are, and where, if that is not the device.
func moments(m train.Memory) string {
	if m.Host > 0 {
		return size(m.Host) + " host"
	}
	return size(m.Moments)
}
