package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

func newBenchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a device trains",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		},
	}
	c.AddCommand(newBenchStepCommand(), newBenchOpsCommand(), newBenchMatMulCommand(), newBenchPeakCommand())
	return c
}

// sizeFlags name a model and the tokens of a step.
type sizeFlags struct {
	preset     string
	batch, seq int
}

func (f *sizeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.preset, "preset", "bench-b", "model `NAME`: "+strings.Join(model.PresetNames(), ", "))
	c.Flags().IntVar(&f.batch, "batch", 0, "`B` sequences a step; 0: the preset's")
	c.Flags().IntVar(&f.seq, "seq", 0, "sequences of `T` tokens; 0: the preset's")
}

// addPrecision is for commands that take one format of activations.
func addPrecision(c *cobra.Command, precision *string) {
	c.Flags().StringVar(precision, "precision", train.PrecisionAuto, "activations in `FORMAT`: "+strings.Join(train.PrecisionNames(), ", "))
}

// config is the preset with the flags over it.
func (f *sizeFlags) config() (train.Config, error) {
	cfg, err := train.FromPreset(f.preset)
	if err != nil {
		return cfg, usagef("--%s", strings.TrimPrefix(err.Error(), "model."))
	}
	if f.batch != 0 {
		cfg.Batch = f.batch
	}
	if f.seq != 0 {
		cfg.SeqLen = f.seq
	}
	cfg = cfg.Resolve()
	if cfg.Model.VocabSize == 0 {
		cfg.Model.VocabSize = cfg.Data.VocabSize
	}
	return cfg, cfg.Validate()
}

// programs are those of a training step with activations in a format.
func (f *sizeFlags) programs(storage graph.DType) (train.Config, []*graph.Program, error) {
	cfg, err := f.config()
	if err != nil {
		return cfg, nil, err
	}
	programs, err := train.StepperPrograms(cfg.Model.Config, train.ProgramOptions{
		Batch: cfg.Batch, SeqLen: cfg.SeqLen, MaxNorm: float32(cfg.Clip), Recompute: cfg.Recompute, Storage: storage,
	}, 1)
	return cfg, programs, err
}

// benchFlags are those of commands that measure the training steps of a preset.
type benchFlags struct {
	device deviceFlags
	size   sizeFlags
	json   bool
}

func (f *benchFlags) add(c *cobra.Command) {
	f.device.add(c)
	f.device.addTuning(c)
	f.size.add(c)
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

// benchStepFlags are those of `vktrain bench step`.
type benchStepFlags struct {
	benchFlags
	placements, qkNorm []string
	recompute          []string
	precision, masters []string
	steps              int
	diagnosticsEvery   int
	trace              string // a file
}

func newBenchStepCommand() *cobra.Command {
	var f benchStepFlags
	c := &cobra.Command{
		Use:   "step",
		Short: "Measure whole training steps",
		Long: `Measure whole training steps: forward, backward, clipping and AdamW, on random tokens.

Several placements, QK-Norms, recomputations, precisions or masters are measured in turns, a step of each and then the next of each, and
compared with the first: --placement pre,peri shows what Peri-LN costs.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return benchStep(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), f)
		},
	}
	f.add(c)
	c.Flags().StringSliceVar(&f.placements, "placement", nil, "where the norms stand, as in the config: `P`,...; the preset's without it")
	c.Flags().StringSliceVar(&f.qkNorm, "qk-norm", nil, "norm of queries and keys, as in the config: `Q`,...; the preset's without it")
	c.Flags().StringSliceVar(&f.recompute, "recompute", nil, "activations that are computed twice: `R`,... of none, attention, block; none without it")
	c.Flags().StringSliceVar(&f.precision, "precision", nil, "of activations: `P`,... of auto, f32, bf16, f16; auto without it")
	c.Flags().StringSliceVar(&f.masters, "masters", nil, "of the matrices that AdamW updates: `M`,... of f32, bf16; f32 without it")
	c.Flags().IntVar(&f.steps, "steps", 7, "measure `N` steps")
	c.Flags().IntVar(&f.diagnosticsEvery, "diagnostics-every", -1, "measure a diagnosed step beside each, as one in `N`; 0: none; -1: as training does by default")
	c.Flags().StringVar(&f.trace, "trace", "", "write one more step, of one node after the other, to `FILE` for ui.perfetto.dev")
	return c
}

// name tells a model from the others.
func (f *benchStepFlags) name(c train.Config) string {
	name := fmt.Sprintf("%s %s, qk_norm %s", f.size.preset, c.Model.Placement, c.Model.QKNorm)
	if len(f.recompute) > 0 {
		name += ", recompute " + string(c.Recompute)
	}
	if len(f.precision) > 0 {
		name += ", " + c.Precision
	}
	if len(f.masters) > 0 {
		name += ", masters " + c.Masters
	}
	return name
}

// models are the preset with each placement, each QK-Norm, each recomputation, each precision and each format of the masters that was asked for.
func (f *benchStepFlags) models(cfg train.Config) ([]bench.Model, error) {
	orElse := func(list []string, one string) []string {
		if len(list) == 0 {
			return []string{one}
		}
		return list
	}
	var all []bench.Model
	for _, p := range orElse(f.placements, cfg.Model.Placement) {
		for _, q := range orElse(f.qkNorm, cfg.Model.QKNorm) {
			for _, r := range orElse(f.recompute, string(cfg.Recompute)) {
				for _, d := range orElse(f.precision, cfg.Precision) {
					for _, m := range orElse(f.masters, cfg.Masters) {
						c := cfg
						c.Model.Placement, c.Model.QKNorm, c.Recompute, c.Precision, c.Masters = p, q, model.Recompute(r), d, m
						if err := c.Validate(); err != nil {
							return nil, err
						}
						all = append(all, bench.Model{Name: f.name(c), Config: c.Model.Config, Recompute: c.Recompute, Precision: d, Masters: m, DiagnosticsEvery: c.DiagnosticsEvery})
					}
				}
			}
		}
	}
	return all, nil
}

func benchStep(ctx context.Context, out, progressOut io.Writer, f benchStepFlags) (err error) {
	if f.steps < 1 {
		return usagef("--steps: %d is too small: use at least 1", f.steps)
	}
	cfg, err := f.size.config()
	if err != nil {
		return err
	}
	if f.diagnosticsEvery < -1 {
		return usagef("--diagnostics-every: %d is too small: use 0 for none, or -1 for the default", f.diagnosticsEvery)
	}
	if f.diagnosticsEvery >= 0 {
		cfg.DiagnosticsEvery = f.diagnosticsEvery
	}
	models, err := f.models(cfg)
	if err != nil {
		return err
	}
	if f.trace != "" {
		if err := checkpoint.CheckWrite(f.trace); err != nil { // rather than after the steps
			return err
		}
	}
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	steps, err := measureSteps(ctx, dev, models, bench.StepOptions{Batch: cfg.Batch, SeqLen: cfg.SeqLen, Steps: f.steps, Trace: f.trace != ""}, progressOut)
	if err != nil {
		return err
	}
	if f.trace != "" {
		if err := writeTrace(f.trace, steps); err != nil {
			return err
		}
	}
	if f.json {
		if len(steps) == 1 {
			return writeJSON(out, steps[0])
		}
		return writeJSON(out, steps)
	}
	if why != "" {
		why = "; auto: " + oneLine(why)
	}
	row(out, "device", "%s%s", dev.Info(), why)
	for _, s := range steps {
		writeStep(out, s, len(steps) > 1)
	}
	return nil
}

// measureSteps is bench.Steps that says what it does.
func measureSteps(ctx context.Context, dev backend.Backend, models []bench.Model, o bench.StepOptions, progressOut io.Writer) ([]bench.Step, error) {
	fmt.Fprintf(progressOut, "measuring %s of %s on %s, after compiling and warming up\n", counted(o.Steps, "step"), counted(len(models), "choice"), dev.Info())
	say, wipe := progressLine(progressOut)
	o.Progress = func(done, total int) { say("step %d of %d", done+1, total) }
	steps, err := bench.Steps(ctx, dev, models, o)
	wipe()
	if errors.Is(err, context.Canceled) {
		return nil, errInterrupted
	}
	return steps, err
}

func writeTrace(path string, steps []bench.Step) error {
	return checkpoint.WriteFile(path, func(w io.Writer) error { return bench.WriteTrace(w, steps) })
}

// formatsText names the formats of activations and matrices.
func formatsText(precision, masters string) string {
	if masters == graph.F32.String() {
		return precision
	}
	return precision + " with matrices in " + masters
}

// between is a ratio with its interval, if it has one.
func between(ratio, low, high float64) string {
	if high == 0 {
		return fmt.Sprintf("%.4f", ratio)
	}
	return fmt.Sprintf("%.4f (%.4f to %.4f, the 95%% interval over the turns)", ratio, low, high)
}

func writeStep(w io.Writer, s bench.Step, compared bool) {
	row(w, "model", "%s: %s parameters, %d sequences of %d tokens, in %s", s.Name, grouped(int64(s.Params)), s.Batch, s.SeqLen, formatsText(s.Precision, s.Masters))
	row(w, "step", "%.1f ms, at best %.1f; %s tokens/s, %.1f GFLOP/s of the model", s.MsPerStep, s.MsMin, grouped(int64(s.TokensPerSec)), s.GFLOPs)
	row(w, "work", "%.4g FLOP of matrix products a token, %.4g numbers through norms, %s through all operators", s.Work.FLOPs, s.Work.NormElements, size(int64(s.Work.Bytes)))
	if s.CPUSeconds > 0 {
		row(w, "cpu", "%.3g seconds of this machine's cores a step", s.CPUSeconds)
	}
	if compared {
		row(w, "ratio", "%s of the first model's time", between(s.Ratio, s.RatioLow, s.RatioHigh))
		if s.CPURatio > 0 {
			row(w, "", "%s of its seconds of the cores", between(s.CPURatio, s.CPULow, s.CPUHigh))
		}
	}
	if d := s.Diagnosed; d != nil {
		row(w, "diagnosed", "%.1f ms, %.3f of a plain step's time; one in %d is %.2f%% of training; %s more memory", d.Ms, d.Ratio, d.Every, 100*d.Share(), size(d.Bytes))
	}
	if s.PeakGFLOPs > 0 {
		on := ""
		if s.Threads > 0 {
			on = " on " + counted(s.Threads, "thread")
		}
		row(w, "peak", "%.1f GFLOP/s of FMAs%s: the model's are %s of it", s.PeakGFLOPs, on, percent(s.OfPeak))
	}
	row(w, "memory", "%s at most, %s of them parameters, moments and arena", size(s.PeakBytes), size(s.DeviceBytes))
	for _, m := range s.Memory {
		row(w, "allocated", "%s of %s in heap %d (type %d: %s)", size(m.Bytes), m.Purpose, m.Heap, m.Type, strings.Join(m.Flags, ", "))
	}
	if len(s.Ops) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := table{left: 1, rows: [][]string{{"op", "nodes", "ms", "share", "GFLOP/s", "GB/s"}}}
	for _, op := range s.Ops {
		t.add(op.Name, fmt.Sprint(op.Count), fmt.Sprintf("%.3f", op.Ms), percent(op.Share), fmt.Sprintf("%.1f", op.GFLOPs), fmt.Sprintf("%.1f", op.GBs))
	}
	t.write(w)
	fmt.Fprintln(w)
}
