package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/report"
)

func newExplainCommand() *cobra.Command {
	var depth int
	var gain float64
	var html string
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain",
		Short: "Show what Post-LN, Pre-LN and Peri-LN do to the variance, in the smallest model of it",
		Long: `Show what Post-LN, Pre-LN and Peri-LN do to the variance of the residual stream, in the smallest model of it: one number v,
from v = 1, that each layer sets to 1 (Post), multiplies by 1 + k (Pre), or adds 1 to (Peri). With --html it is a page on which
depth and gain can be changed.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			curves, err := report.ScalarModel(depth, gain)
			if err != nil {
				return usagef("--%v", err)
			}
			if html != "" {
				if err := checkpoint.WriteFile(html, func(w io.Writer) error { return report.WriteScalarPage(w, depth, gain) }); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), curves)
			}
			return writeScalar(c.OutOrStdout(), curves)
		},
	}
	c.Flags().IntVar(&depth, "depth", 24, "`L` layers")
	c.Flags().Float64Var(&gain, "gain", 0.5, "`K`: the variance that a module of Pre-LN adds, as a share of what it finds")
	c.Flags().StringVar(&html, "html", "", "also write a page to `FILE`")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// scalarRows is about how many layers the table shows.
const scalarRows = 12

func writeScalar(out io.Writer, curves []report.ScalarCurve) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "layer\t")
	for _, c := range curves {
		fmt.Fprintf(t, "%s\t", c.Placement)
	}
	fmt.Fprint(t, "\n\t")
	for _, c := range curves {
		fmt.Fprintf(t, "%s\t", c.Rule)
	}
	fmt.Fprintln(t)
	depth := len(curves[0].Variance) - 1
	every := max(1, (depth+scalarRows-1)/scalarRows)
	line := func(name string, of func(c report.ScalarCurve) float64) {
		fmt.Fprintf(t, "%s\t", name)
		for _, c := range curves {
			fmt.Fprintf(t, "%.5g\t", of(c))
		}
		fmt.Fprintln(t)
	}
	for l := 0; l < depth; l += every {
		line(fmt.Sprint(l), func(c report.ScalarCurve) float64 { return c.Variance[l] })
	}
	line(fmt.Sprint(depth), func(c report.ScalarCurve) float64 { return c.Variance[depth] })
	line("dv_L / dv_0", func(c report.ScalarCurve) float64 { return c.Derivative })
	line("d√v_L / d√v_0", func(c report.ScalarCurve) float64 { return c.Amplitude })
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nWhat it is not:")
	for _, s := range report.ScalarCaveats {
		fmt.Fprintf(out, "- %s\n", s)
	}
	return nil
}
