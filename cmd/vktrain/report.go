package main

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/report"
)

func newReportCommand() *cobra.Command {
	var out, title string
	c := &cobra.Command{
		Use:   "report FOLDER...",
		Short: "Draw what runs or an experiment measured, as a page and as figures",
		Long: `Draw what runs or an experiment measured. A FOLDER is a run's, an experiment's, or holds folders of runs. Runs whose configs differ
in their seed alone are one variant, whose curves are means over the seeds.

A cost.json in FOLDER, which is what vktrain bench step --json printed, is shown as the cost of a step by itself.

The page is report.html, which needs no other file and no network; figures has each of its figures as SVG, PNG and CSV. They go to
the FOLDER, or to --out where there are several.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("%s needs the FOLDER of a run or of an experiment: see %s --help", c.CommandPath(), c.CommandPath())
			case len(args) > 1 && out == "":
				return usagef("--out is missing: say where the report of %s goes", counted(len(args), "folder"))
			}
			return writeRunReport(c.OutOrStdout(), args, out, title)
		},
	}
	c.Flags().StringVar(&out, "out", "", "`DIR` for the page and the figures; the FOLDER without it")
	c.Flags().StringVar(&title, "title", "", "`TEXT` of the page's heading; the folders' names without it")
	return c
}

// writeRunReport reads the runs of some folders and writes their report to out, or to the only folder.
func writeRunReport(w io.Writer, folders []string, out, title string) error {
	r, err := report.Read(folders...)
	if err != nil {
		return err
	}
	if title != "" {
		r.Title = title
	}
	if out == "" {
		out = folders[0]
	}
	written, err := r.Write(out)
	if err != nil {
		return err
	}
	row(w, "read", "%s of %s", counted(len(r.Runs), "run"), counted(written.Variants, "variant"))
	row(w, "figures", "%d in %s, each as SVG, PNG and CSV", written.Figures, filepath.Join(out, report.FiguresFolder))
	if len(written.Missing) > 0 {
		row(w, "missing", "%s: the page says why", strings.Join(written.Missing, ", "))
	}
	row(w, "report", "%s", written.Page)
	return nil
}
