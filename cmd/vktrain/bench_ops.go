package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/internal/near"
)

// maxRepeats bounds the times that are held in memory.
const maxRepeats = 10000

// benchOpsFlags are those of `vktrain bench ops`.
type benchOpsFlags struct {
	benchFlags
	ops                []string
	precision, masters string
	repeats            int
}

func newBenchOpsCommand() *cobra.Command {
	var f benchOpsFlags
	c := &cobra.Command{
		Use:   "ops",
		Short: "Measure each operator of a training step, with each of its shapes",
		Long: `Measure each operator of a training step, with each of its shapes, beside the peak of the device: a loop of FMAs on registers, or
a triad over arrays that no cache holds, whichever would take longer for what the operator has to do. An operator may be
over 100% of the memory's peak where a cache holds what it reads.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return benchOps(c.Context(), c.OutOrStdout(), f)
		},
	}
	f.add(c)
	addPrecision(c, &f.precision)
	c.Flags().StringVar(&f.masters, "masters", graph.F32.String(), "`FORMAT` of the matrices that AdamW updates: f32 or bf16")
	c.Flags().StringSliceVar(&f.ops, "op", nil, "only the operator `NAME`,...")
	c.Flags().IntVar(&f.repeats, "repeats", 7, "run the step `N` times")
	return c
}

func checkOps(names []string) error {
	var known []string
	for _, op := range graph.Ops() {
		known = append(known, op.String())
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		if meant := near.Keys(name, known); len(meant) > 0 {
			return usagef("--op: %q is unknown: did you mean %s?", name, orWords(meant))
		}
		return usagef("--op: %q is unknown: vktrain bench ops without it lists those of the step", name)
	}
	return nil
}

func benchOps(ctx context.Context, out io.Writer, f benchOpsFlags) (err error) {
	if f.repeats < 1 {
		return usagef("--repeats: %d is too small: use at least 1", f.repeats)
	}
	if f.repeats > maxRepeats {
		return usagef("--repeats: %d is too large: use at most %d", f.repeats, maxRepeats)
	}
	if err := checkOps(f.ops); err != nil {
		return err
	}
	cfg, err := f.size.config()
	if err != nil {
		return err
	}
	cfg.Precision, cfg.Masters = f.precision, f.masters
	if err := cfg.Validate(); err != nil {
		return err
	}
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	r, err := bench.Ops(ctx, dev, bench.Model{
		Name: f.size.preset, Config: cfg.Model.Config, Recompute: cfg.Recompute, Precision: cfg.Precision, Masters: cfg.Masters,
	}, bench.OpOptions{
		Batch: cfg.Batch, SeqLen: cfg.SeqLen, Repeats: f.repeats, Ops: f.ops,
	})
	switch {
	case errors.Is(err, context.Canceled):
		return errInterrupted
	case err != nil:
		return err
	case f.json:
		return writeJSON(out, r)
	}
	if why != "" {
		why = "; auto: " + oneLine(why)
	}
	row(out, "device", "%s%s", r.Device, why)
	row(out, "step", "%s in %s, %d sequences of %d tokens: %.1f ms over all nodes", r.Name, formatsText(r.Precision, r.Masters), r.Batch, r.SeqLen, r.StepMs)
	if r.Peak != nil {
		row(out, "peak", "%s", peakText(*r.Peak))
	}
	fmt.Fprintln(out)
	t := table{left: 3, rows: [][]string{{"op", "shapes", "kernel", "nodes", "ms each", "ms", "share", "GFLOP/s", "GB/s", "of peak"}}}
	for _, op := range r.Ops {
		of := "-"
		if r.Peak != nil {
			of = fmt.Sprintf("%.0f%% %s", 100*op.OfPeak, op.Bound)
		}
		t.add(op.Name, op.Shapes, cmp.Or(op.Kernel, "-"), fmt.Sprint(op.Count), fmt.Sprintf("%.4f", op.MsEach), fmt.Sprintf("%.3f", op.Ms), percent(op.Share),
			fmt.Sprintf("%.1f", op.GFLOPs), fmt.Sprintf("%.1f", op.GBs), of)
	}
	t.write(out)
	return nil
}

func peakText(p bench.Peak) string {
	text := fmt.Sprintf("%.1f GFLOP/s of FMAs (%s), %.1f GB/s of a triad", p.GFLOPs, p.Kernel, p.GBs)
	if p.Threads > 0 {
		text += ", on " + counted(p.Threads, "thread")
	}
	return text
}

func newBenchPeakCommand() *cobra.Command {
	var f deviceFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "peak",
		Short: "Measure what a device does at most: FMAs and memory",
		Args:  arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return benchPeak(c.Context(), c.OutOrStdout(), f, asJSON)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// benchPeak measures the CPU with one thread, two, four and so on, and with all; another device once.
func benchPeak(ctx context.Context, out io.Writer, f deviceFlags, asJSON bool) (err error) {
	dev, why, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	most := 1
	if c, ok := dev.(*cpu.Backend); ok {
		most = c.Threads()
	}
	var peaks []bench.Peak
	for n := 1; n < most; n *= 2 {
		p, err := cpuPeak(n)
		if err != nil {
			return err
		}
		peaks = append(peaks, p)
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
	p, err := bench.MeasurePeak(dev)
	if err != nil {
		return err
	}
	peaks = append(peaks, p)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if asJSON {
		return writeJSON(out, peaks)
	}
	if why != "" {
		why = "; auto: " + oneLine(why)
	}
	row(out, "device", "%s%s", dev.Info(), why)
	for _, p := range peaks {
		row(out, "peak", "%s", peakText(p))
	}
	return nil
}

func cpuPeak(threads int) (p bench.Peak, err error) {
	dev, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	return bench.MeasurePeak(dev)
}
