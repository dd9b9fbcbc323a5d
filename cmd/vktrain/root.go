package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/backend/vulkan"
	"github.com/vktrain/vktrain/internal/near"
	"github.com/vktrain/vktrain/train"
	"github.com/vktrain/vktrain/train/device"
)

// newRoot makes the command with its subcommands.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "vktrain",
		Short:         "Train small language models on any GPU with Vulkan, or on the CPU",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error { return checkEmpty(c.Flags(), args) }
	root.AddCommand(newTrainCommand(), newGenerateCommand(), newEvalCommand(), newCompareCommand(), newSweepCommand(), newDevicesCommand(), newConformanceCommand(), newBenchCommand(), newTuneCommand(),
		newPlanCommand(), newReportCommand(), newExplainCommand(), newEnvironmentTopic())
	return root
}

func unknownCommand(c *cobra.Command, name string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			known = append(known, sub.Name())
		}
	}
	if meant := near.Keys(name, known); len(meant) > 0 {
		return usagef("unknown command %q: did you mean %s?", name, orWords(meant))
	}
	return usagef("unknown command %q: there are %s", name, strings.Join(known, ", "))
}

// flagError turns pflag's errors into lines that say what to do.
func flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		value   *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &unknown):
		name := dashed(unknown.GetSpecifiedName())
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, dashed(f.Name)) })
		if meant := near.Keys(name, known); len(meant) > 0 {
			return usagef("unknown flag %s: did you mean %s?", name, orWords(meant))
		}
		return usagef("unknown flag %s: see %s --help", name, c.CommandPath())
	case errors.As(err, &value):
		want := map[string]string{"int": "whole number", "uint64": "whole number from 0", "float64": "number", "bool": "switch: use true or false"}
		f := value.GetFlag()
		return usagef("--%s: %q is no %s", f.Name, value.GetValue(), want[f.Value.Type()])
	case errors.As(err, &missing):
		return usagef("%s needs a value: see %s --help", dashed(missing.GetSpecifiedName()), c.CommandPath())
	}
	return usagef("%v: see %s --help", err, c.CommandPath())
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// arguments checks how many there are; what says in words what they should be.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s needs %s: see %s --help", c.CommandPath(), what, c.CommandPath())
		case len(args) > most:
			return usagef("%q is one argument too many: %s takes %s", args[most], c.CommandPath(), what)
		}
		return nil
	}
}

// checkEmpty refuses flags and arguments without a value, as an unset variable of the shell gives them: what they would mean is hardly meant.
func checkEmpty(flags *pflag.FlagSet, args []string) (err error) {
	empty := func(s string) bool { return strings.TrimSpace(s) == "" }
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if err == nil && f.Name != promptFlag && (len(values) == 0 || slices.ContainsFunc(values, empty)) {
			err = usagef("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	if err == nil && slices.ContainsFunc(args, empty) {
		err = usagef("an argument is empty: give it a value, or leave it out")
	}
	return err
}

// orWords joins what may have been meant.
func orWords(words []string) string { return strings.Join(words, " or ") }

// deviceFlags are --device, --threads, --max-submit-ms, --nice, --no-coopmat and --no-tune.
type deviceFlags struct {
	name    string
	options device.Options
	submit  int
}

// add is for commands whose device no config names.
func (f *deviceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "device", "auto", "`DEVICE` to compute on: auto, cpu, vulkan or vulkan:N, with an N (or UUID, or part of a name) that `vktrain devices` lists")
	f.addOptions(c)
}

// addOptions is for commands that open a device.
func (f *deviceFlags) addOptions(c *cobra.Command) {
	f.addThreads(c)
	f.addSubmit(c)
	f.addMatrices(c)
}

// addTuning is for commands that measure a GPU's kernels before they use them.
func (f *deviceFlags) addTuning(c *cobra.Command) {
	c.Flags().BoolVar(&f.options.NoTuning, "no-tune", false, "choose a GPU's kernels by rule, instead of measuring those of new shapes once, for some seconds")
	f.options.Measure = true
	f.options.Progress = func(done, total int) { tuningProgress(c.ErrOrStderr(), done, total) }
}

func (f *deviceFlags) addMatrices(c *cobra.Command) {
	f.options.Warn = func(s string) { fmt.Fprintln(c.ErrOrStderr(), "vktrain: warning: "+s) }
	c.Flags().BoolVar(&f.options.NoMatrices, "no-coopmat", false, "leave a GPU's cooperative matrices alone, and do not ask its driver for them")
}

func (f *deviceFlags) addSubmit(c *cobra.Command) {
	c.Flags().IntVar(&f.submit, "max-submit-ms", 0, fmt.Sprintf(
		"give a GPU at most `MS` milliseconds of work at once, so that a display stays usable; 0: %d", vulkan.DefaultSubmitLimit.Milliseconds()))
	c.Flags().BoolVar(&f.options.Nice, "nice", false, fmt.Sprintf(
		"keep a display responsive while a GPU computes: at most %d ms of work at once (or --max-submit-ms), and a pause after each", vulkan.NiceSubmitLimit.Milliseconds()))
}

func (f *deviceFlags) addThreads(c *cobra.Command) {
	c.Flags().IntVar(&f.options.Threads, "threads", 0, "compute with `N` threads where the device is the CPU; 0: one for each of its cores")
}

// check finds what is wrong without opening anything.
func (f *deviceFlags) check() error {
	if n := f.options.Threads; n < 0 || n > cpu.MaxThreads {
		return usagef("--threads: %d is not possible: use 1 to %d, or 0 for one a core", n, cpu.MaxThreads)
	}
	const most = 60_000
	if f.submit < 0 || f.submit > most {
		return usagef("--max-submit-ms: %d is not possible: use 1 to %d, or 0 for %d", f.submit, most, vulkan.DefaultSubmitLimit.Milliseconds())
	}
	f.options.SubmitLimit = time.Duration(f.submit) * time.Millisecond
	return device.CheckName(f.name)
}

// open opens the device, which compiles nothing more once ctx is done; why is not empty for auto.
func (f *deviceFlags) open(ctx context.Context) (dev backend.Backend, why string, err error) {
	if err := f.check(); err != nil {
		return nil, "", err
	}
	f.options.Context = ctx
	return device.Open(f.name, f.options)
}

// withModel opens the device, and on it the model of a run's folder, while do takes.
func (f *deviceFlags) withModel(ctx context.Context, dir string, do func(dev backend.Backend, model *train.Checkpoint) error) (err error) {
	dev, _, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	model, err := train.OpenCheckpoint(ctx, dir, dev)
	if err == nil {
		defer func() { err = errors.Join(err, model.Close()) }()
		err = do(dev, model)
	}
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return err
}
