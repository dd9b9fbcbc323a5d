package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/experiment"
	"github.com/vktrain/vktrain/report"
	"github.com/vktrain/vktrain/train"
	"github.com/vktrain/vktrain/train/device"
)

// compareFlags are those of `vktrain compare` and `vktrain sweep`.
type compareFlags struct {
	device  deviceFlags
	devices []string
	jobs    int
	out     string
	replace bool
	dryRun  bool
	format  string
	set     []string
	seeds   int
}

// Formats of --format.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatCSV      = "csv"
	formatJSON     = "json"
)

func (f *compareFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.devices, "devices", []string{device.Auto},
		"train on `DEVICE`,... at once: auto, cpu, vulkan or vulkan:N; runs of one seed are all on devices of one kind")
	c.Flags().IntVar(&f.jobs, "jobs", 1, "train `N` runs at once on the CPU, which share its threads")
	f.device.addThreads(c)
	f.device.addSubmit(c)
	f.device.addMatrices(c)
	f.device.addTuning(c)
	c.Flags().StringVar(&f.out, "out", "", "`DIR` of the experiment; runs/ and its name without it")
	c.Flags().BoolVar(&f.replace, "replace", false, "train runs in DIR again that are finished with other settings")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the runs, their parameters and about how long they take, and train nothing")
	c.Flags().StringVar(&f.format, "format", formatText, "print the table as `FORMAT`: text, markdown, csv or json")
	c.Flags().StringArrayVar(&f.set, "set", nil, "`KEY=VALUE` of every run's config, such as steps=100, over the file's base; may be repeated")
	c.Flags().IntVar(&f.seeds, "seeds", 0, "train with the seeds 1 to `N`; 0: the file's")
}

func newCompareCommand() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare EXPERIMENT.yaml",
		Short: "Train every combination of some settings with several seeds, and compare them",
		Long: `Train a matrix of configs times seeds, and compare them: means and standard deviations, paired differences with bootstrap intervals, and how
many runs diverged. An EXPERIMENT.yaml:

  question: Which placement of the norms reaches the lower loss?
  base:                                # keys of a training config
    model.preset: nano
    steps: 200
  axes:                                # every combination is trained
    model.placement: [pre, peri]       # a key and its values
    qk:                                # or names with settings of your own
      none: {model.qk_norm: none}
      l2: {model.qk_norm: l2, qk_scale_percentile: 97.5}
  exclude: [{model.placement: pre, qk: l2}]
  seeds: 3                             # 1 to 3, or a list
  paired_with: {model.placement: pre}  # what the others are compared with
  diverged: above_initial              # or non_finite, or a loss
  metrics: [val_loss, bits_per_byte, spikes]
  cost: 20                             # time steps too, of each run and in 20 turns of all

With tasks.files in the base (see vktrain eval) each run is scored after its last step, and the table has each task's accuracy and benchmark_average,
their mean.

Each run has its folder in DIR/runs. Runs that are finished are kept: after Ctrl-C or a crash the same command goes on, and the table has the same
bits as without, but for times. DIR gets results.json, table.md, table.csv and runs.csv, and report.html with the figures (see vktrain report).`,
		Args: arguments(1, 1, "one EXPERIMENT.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := experiment.Read(args[0])
			if err != nil {
				return err
			}
			return f.run(c.Context(), e, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c)
	return c
}

// run changes an experiment as the flags want it, and trains it or shows what it would.
func (f *compareFlags) run(ctx context.Context, e *experiment.Experiment, out, progressOut io.Writer) error {
	for _, s := range f.set {
		a, err := train.ParseAssignment(s)
		if err != nil {
			return usagef("--set: %v", err)
		}
		if axis := e.AxisThatSets(a.Key); axis != "" {
			return usagef("--set: %s is what axis %s sets in each of its variants, so that --set would change nothing: leave it out, or change the axis", a.Key, axis)
		}
		e.Base = append(e.Base, a)
	}
	if f.seeds < 0 || f.seeds > experiment.MaxSeeds {
		return usagef("--seeds: %d is not possible: use 1 to %d, or 0 for the file's", f.seeds, experiment.MaxSeeds)
	}
	if f.seeds > 0 {
		e.Seeds = experiment.CountSeeds(f.seeds)
	}
	if formats := []string{formatText, formatMarkdown, formatCSV, formatJSON}; !slices.Contains(formats, f.format) {
		return usagef("--format: %q is unknown: use %s", f.format, strings.Join(formats, ", "))
	}
	if f.jobs < 1 {
		return usagef("--jobs: %d is too small: use at least 1", f.jobs)
	}
	m, err := e.Matrix()
	if err != nil {
		return err
	}
	for _, name := range f.devices {
		f.device.name = name
		if err := f.device.check(); err != nil {
			return err
		}
	}
	if f.out == "" {
		f.out = filepath.Join(runsFolder, e.Name)
	}
	o := experiment.Options{Out: f.out, Devices: f.devices, Jobs: f.jobs, Threads: f.device.options.Threads, Replace: f.replace, Open: f.openDevice}
	if f.dryRun {
		return f.show(ctx, m, o, out)
	}
	return f.train(ctx, m, o, out, progressOut)
}

func (f *compareFlags) openDevice(name string, threads int) (backend.Backend, error) {
	options := f.device.options
	options.Threads = threads
	dev, _, err := device.Open(name, options)
	return dev, err
}

func (f *compareFlags) train(ctx context.Context, m *experiment.Matrix, o experiment.Options, out, progressOut io.Writer) error {
	p := newMatrixProgress(progressOut, m)
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		p.say("stopping; once more to kill")
	})
	o.Watch = p.event
	results, err := experiment.Execute(ctx, m, o)
	if !stop() {
		<-said // before what comes of it
	}
	p.end()
	var short *experiment.IncompleteError
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		if errors.As(err, &short) {
			p.say("interrupted: %d of %d runs are finished; the same command goes on", short.Done, short.All)
		}
		return errInterrupted
	case errors.As(err, &short):
		return fmt.Errorf("%w; the same command tries those again", err)
	case err != nil && results == nil:
		return err
	case err != nil:
		err = fmt.Errorf("all runs are finished, but steps could not be timed in turns: %w", err)
	}
	return errors.Join(err, f.print(out, results), f.report(out, o.Out))
}

// report draws the page of an experiment's folder.
func (f *compareFlags) report(out io.Writer, dir string) error {
	r, err := report.Read(dir)
	if err != nil {
		return fmt.Errorf("the report can't be drawn: %w", err)
	}
	written, err := r.Write(dir)
	if err != nil {
		return fmt.Errorf("the report can't be drawn: %w", err)
	}
	if f.format == formatText {
		fmt.Fprintf(out, "\n%s has %s, the tables and the runs; %s shows them.\n", dir, experiment.ResultsFile, written.Page)
	}
	return nil
}

func (f *compareFlags) print(out io.Writer, r *experiment.Results) error {
	switch f.format {
	case formatMarkdown:
		fmt.Fprint(out, r.Markdown())
	case formatCSV:
		fmt.Fprint(out, r.SummaryCSV())
	case formatJSON:
		return writeJSON(out, r)
	default:
		r.WriteText(out)
	}
	return nil
}

// show is --dry-run.
func (f *compareFlags) show(ctx context.Context, m *experiment.Matrix, o experiment.Options, out io.Writer) error {
	states, err := experiment.Look(m, o)
	if err != nil {
		return err
	}
	est, err := experiment.EstimateTime(ctx, m, o, states)
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	t := table{left: 1, rows: [][]string{{"run", "parameters", "steps", "about", "state"}}}
	left, upTo := 0, false
	for i, s := range states {
		params, most := s.Run.Params()
		upTo = upTo || most
		state := "to train"
		switch {
		case s.Result != nil:
			state = "finished"
		case s.Changed != "":
			state = "finished with other settings: " + s.Changed
		}
		if s.Result == nil {
			left++
		}
		about := "-"
		if s.Result == nil {
			about = roughly(est.Runs[i])
		}
		t.add(s.Run.ID, grouped(int64(params)), grouped(int64(s.Run.Config.Steps)), about, state)
	}
	t.write(out)
	fmt.Fprintln(out)
	if upTo {
		row(out, "parameters", "with the most tokens that the tokenizer may have")
	}
	kinds := slices.Compact(slices.Sorted(slices.Values(est.Kinds)))
	row(out, "devices", "%s", strings.Join(kinds, "; "))
	turns := ""
	if est.Turns > 0 {
		turns = fmt.Sprintf(", %s of it for steps in turns", roughly(est.Turns))
	}
	row(out, "time", "about %s for %s of %d%s, by %s, while other programs do what they do now; the report comes on top", roughly(est.Total), counted(left, "run"), len(states), turns,
		counted(est.Short, "short trial"))
	row(out, "folder", "%s", o.Out)
	return nil
}

// roughly is a time in seconds, or in tenths of them under ten.
func roughly(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
