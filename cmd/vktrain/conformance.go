package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/vktrain/vktrain/backend/conformance"
	"github.com/vktrain/vktrain/checkpoint"
)

// conformanceFlags are those of `vktrain conformance`.
type conformanceFlags struct {
	device  deviceFlags
	json    string
	options conformance.Options
}

func newConformanceCommand() *cobra.Command {
	var f conformanceFlags
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Prove that a device computes what it should",
		Args:  arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return runConformance(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), f)
		},
	}
	f.device.add(c)
	c.Flags().StringVar(&f.options.Golden, "golden", "", "check the golden models in `DIR` too, in place of those that are built in")
	c.Flags().StringVar(&f.json, "json", "", "write the report to `FILE` as JSON")
	c.Flags().Uint64Var(&f.options.Seed, "seed", 0, "`N` of the random inputs; 0 takes another one each time")
	c.Flags().StringArrayVar(&f.options.Only, "only", nil, "check only the `GROUP`; may be repeated")
	return c
}

func runConformance(ctx context.Context, out, progressOut io.Writer, f conformanceFlags) (err error) {
	if f.json != "" {
		if err := checkpoint.CheckWrite(f.json); err != nil { // rather than after the whole check
			return err
		}
	}
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if why != "" {
		row(out, "device", "%s; auto: %s", dev.Info(), oneLine(why))
	}
	f.options.Progress = caseProgress(progressOut)
	report, err := conformance.Check(ctx, dev, f.options)
	switch {
	case errors.Is(err, context.Canceled):
		row(out, "interrupted", "after %s: there is no verdict", counted(len(report.Results), "case"))
		return errInterrupted
	case errors.As(err, new(*conformance.GroupError)):
		return usagef("--only: %v", err)
	case err != nil:
		return err
	}
	if f.json != "" {
		if err := writeReport(f.json, report); err != nil {
			return err
		}
	}
	if _, err := report.WriteTo(out); err != nil {
		return err
	}
	if failed := len(report.Failures()); failed > 0 {
		return fmt.Errorf("%s does not conform: %d of %d cases fail, as listed above; seed %d repeats them", dev.Info(), failed, len(report.Results), report.Seed)
	}
	return nil
}

func writeReport(path string, report *conformance.Report) error {
	return checkpoint.WriteFile(path, func(w io.Writer) error { return writeJSON(w, report) })
}

// caseProgress shows a bar on a terminal, and nothing elsewhere.
func caseProgress(out io.Writer) func(done, total int, c conformance.Case) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	var bar *progressbar.ProgressBar
	return func(done, total int, c conformance.Case) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish())
		}
		bar.Describe(c.Group)
		_ = bar.Set(done) // drawing is a courtesy
	}
}
