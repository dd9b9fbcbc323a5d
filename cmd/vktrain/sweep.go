package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/experiment"
	"github.com/vktrain/vktrain/train"
)

// sweepFlags are those of `vktrain sweep`.
type sweepFlags struct {
	compareFlags
	rates  []string
	axes   []string
	preset string
	steps  string
}

// sweepAxes are those that --over names.
var sweepAxes = []experiment.Axis{
	{Name: "qk_norm", Variants: []experiment.Variant{
		{Name: "qk-none", Set: []train.Assignment{{Key: "model.qk_norm", Value: "none"}}},
		{Name: "qk-rms", Set: []train.Assignment{{Key: "model.qk_norm", Value: "rms"}}},
	}},
	{Name: "z_loss", Variants: []experiment.Variant{
		{Name: "no-z", Set: []train.Assignment{{Key: "z_loss", Value: "0"}}},
		{Name: "z-1e-4", Set: []train.Assignment{{Key: "z_loss", Value: "1e-4"}}},
	}},
	{Name: "warmup", Variants: []experiment.Variant{
		{Name: "no-warmup", Set: []train.Assignment{{Key: "warmup", Value: "0"}}},
		{Name: "warmup", Set: []train.Assignment{{Key: "warmup", Value: "-1"}}},
	}},
	{Name: "placement", Variants: []experiment.Variant{
		{Name: "pre", Set: []train.Assignment{{Key: "model.placement", Value: "pre"}}},
		{Name: "peri", Set: []train.Assignment{{Key: "model.placement", Value: "peri"}}},
	}},
}

func newSweepCommand() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep [EXPERIMENT.yaml]",
		Short: "Measure how much the final loss depends on the learning rate, with and without QK-Norm or other things",
		Long: `Train over a grid of learning rates, and give the loss at each, the best of them, and the learning rate sensitivity of Wortsman et al. 2023: the
mean over the grid of min(final loss, loss at initialisation) less the best loss.

Without an EXPERIMENT.yaml: a preset, with and without what --over names. With one (see vktrain compare) it is that experiment; if it has no axis
lr: [...], the grid becomes its last axis. Runs are kept and gone on with as in compare.`,
		Args: arguments(0, 1, "at most one EXPERIMENT.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := f.experiment(c, args)
			if err != nil {
				return err
			}
			return f.run(c.Context(), e, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c)
	c.Flags().StringSliceVar(&f.rates, "rates", experiment.WortsmanRates, "learning `RATE`,... of the grid")
	c.Flags().StringSliceVar(&f.axes, "over", []string{"qk_norm"}, "without a file, with and without `WHAT`,...: "+strings.Join(overNames(), ", "))
	c.Flags().StringVar(&f.preset, "preset", train.DefaultPreset, "without a file, the model `NAME`")
	c.Flags().StringVar(&f.steps, "steps", "", "train for `N` steps; the preset's or the file's without it")
	return c
}

// experiment is the file's with the grid, or one that the flags tell.
func (f *sweepFlags) experiment(c *cobra.Command, args []string) (*experiment.Experiment, error) {
	var e *experiment.Experiment
	if len(args) > 0 {
		for _, name := range []string{"over", "preset"} {
			if c.Flags().Changed(name) {
				return nil, usagef("--%s and %s both say what is trained: leave one of the two out", name, args[0])
			}
		}
		var err error
		if e, err = experiment.Read(args[0]); err != nil {
			return nil, err
		}
	} else {
		e = &experiment.Experiment{
			Name: "sweep-" + f.preset, Base: []train.Assignment{{Key: "model.preset", Value: f.preset}, {Key: "min_lr", Value: "1e-5"}}, Seeds: experiment.CountSeeds(2),
			Question: fmt.Sprintf("How much does the loss of %s depend on the learning rate?", f.preset),
		}
		for _, name := range f.axes {
			i := slices.IndexFunc(sweepAxes, func(a experiment.Axis) bool { return a.Name == name })
			if i < 0 {
				return nil, usagef("--over: %q is unknown: use %s, or write an EXPERIMENT.yaml", name, strings.Join(overNames(), ", "))
			}
			e.Axes = append(e.Axes, sweepAxes[i])
		}
	}
	if f.steps != "" {
		e.Base = append(e.Base, train.Assignment{Key: "steps", Value: f.steps})
	}
	if e.HasRates() {
		if c.Flags().Changed("rates") {
			return nil, usagef("--rates: %s has an axis of learning rates already: leave one of the two out", args[0])
		}
		return e, nil
	}
	e.Axes = append(e.Axes, experiment.RateAxis(f.rates))
	return e, nil
}

func overNames() []string {
	var names []string
	for _, a := range sweepAxes {
		names = append(names, a.Name)
	}
	return names
}
