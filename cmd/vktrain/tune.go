package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/vulkan"
	"github.com/vktrain/vktrain/train"
)

// tuneFlags are those of `vktrain tune`.
type tuneFlags struct {
	device deviceFlags
	size   sizeFlags

	precision  string
	show, json bool
}

func newTuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune",
		Short: "Measure which kernels a GPU runs fastest, and keep that for later runs",
		Long: `Measure, for each shape of a training step, the kernels that could run it, and keep the fastest that passes the conformance cases of
its operator. Training and benchmarks do that by themselves for shapes that are new, in some seconds; this does it again, and for drivers
that run on the CPU too. The choices are kept for the device, its driver's version and these kernels.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return tune(c.Context(), c.OutOrStdout(), f)
		},
	}
	f.device.add(c)
	f.device.options.Progress = func(done, total int) { tuningProgress(c.ErrOrStderr(), done, total) }
	f.size.add(c)
	addPrecision(c, &f.precision)
	c.Flags().BoolVar(&f.show, "show", false, "show what runs would take now, and measure nothing")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// tuningJSON is what --json prints.
type tuningJSON struct {
	Device  string          `json:"device"`
	Preset  string          `json:"preset"`
	Storage string          `json:"storage"`
	Batch   int             `json:"batch"`
	SeqLen  int             `json:"seq_len"`
	Choices []vulkan.Choice `json:"choices"`
}

func tune(ctx context.Context, out io.Writer, f tuneFlags) (err error) {
	if _, err := f.size.config(); err != nil { // before a device is opened
		return err
	}
	if _, err := train.Storage(f.precision, backend.Discrete); err != nil {
		return usagef("--%v", err)
	}
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	gpu, ok := dev.(*vulkan.Backend)
	if !ok {
		if why != "" {
			return fmt.Errorf("there is nothing to tune: auto takes the CPU, since %s", oneLine(why))
		}
		return usagef("--device: the CPU has no kernels to choose from: use vulkan or vulkan:N")
	}
	storage, err := train.Storage(f.precision, dev.Info().Kind)
	if err != nil {
		return err
	}
	cfg, programs, err := f.size.programs(storage)
	if err != nil {
		return err
	}
	var choices []vulkan.Choice
	if f.show {
		choices = gpu.Choices(programs...)
	} else if choices, err = gpu.Tune(ctx, programs...); errors.Is(err, context.Canceled) {
		if !f.json {
			row(out, "interrupted", "the shapes that were measured before are kept")
		}
		return errInterrupted
	} else if err != nil {
		return err
	}
	if f.json {
		return writeJSON(out, tuningJSON{dev.Info().String(), f.size.preset, storage.String(), cfg.Batch, cfg.SeqLen, choices})
	}
	if why != "" {
		why = "; auto: " + oneLine(why)
	}
	row(out, "device", "%s%s", dev.Info(), why)
	row(out, "step", "%s in %s, %d sequences of %d tokens", f.size.preset, storage, cfg.Batch, cfg.SeqLen)
	fmt.Fprintln(out)
	writeChoices(out, choices)
	return nil
}

func writeChoices(w io.Writer, choices []vulkan.Choice) {
	t := table{left: 3, rows: [][]string{{"op", "shape", "kernel", "ms", "rule's ms", "ratio"}}}
	var notes []string
	for _, c := range choices {
		seconds := func(kernel string) float64 {
			for _, k := range c.Times {
				if k.Kernel == kernel {
					return k.Seconds
				}
			}
			return 0
		}
		cell := func(x float64, format string) string {
			if x == 0 {
				return "-"
			}
			return fmt.Sprintf(format, x)
		}
		own, rules, ratio := seconds(c.Kernel), seconds(c.Rule), 0.0
		if own > 0 {
			ratio = rules / own
		}
		t.add(c.Op, c.Shape, c.Kernel, cell(1e3*own, "%.4f"), cell(1e3*rules, "%.4f"), cell(ratio, "%.2f"))
		if c.Why != "" {
			notes = append(notes, fmt.Sprintf("%s %s: %s", c.Op, c.Shape, oneLine(c.Why)))
		}
		for _, k := range c.Times {
			if k.Refused != "" {
				notes = append(notes, fmt.Sprintf("%s %s: %s is refused: %s", c.Op, c.Shape, k.Kernel, oneLine(k.Refused)))
			}
		}
	}
	t.write(w)
	if len(notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(notes, "\n"))
	}
}

// tuningProgress is a line of a terminal that is written over, or elsewhere one line in all.
func tuningProgress(w io.Writer, done, total int) {
	say, wipe := progressLine(w)
	if done == total {
		wipe()
		return
	}
	say("measuring kernels, once for this device: %d of %d", done+1, total)
	if !isTerminal(w) && done == 0 {
		fmt.Fprintf(w, "measuring %s, once for this device and these shapes\n", counted(total, "kernel"))
	}
}
