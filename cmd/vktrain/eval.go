package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/tasks"
	"github.com/vktrain/vktrain/train"
)

// evalFlags are those of `vktrain eval`.
type evalFlags struct {
	device deviceFlags
	tasks  []string
	limit  int
	json   bool
}

func newEvalCommand() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval DIR",
		Short: "Score a trained model on multiple-choice tasks",
		Long: `Score a trained model on multiple-choice tasks, as lm-evaluation-harness does without examples: the choice with the largest log-likelihood
after its context is the model's (acc), or the one with the largest log-likelihood over its length in characters (acc_norm). ± is the standard
error over the documents. The average takes acc_norm of tasks for which the harness has it (ARC, HellaSwag, PIQA), and acc of others.

A FILE may be packed with gzip or bzip2, and its content tells which of these it is:

  {"query": "Question: ...", "choices": [...], "gold": 0}           a line; ARC, PIQA
  {"doc_id": 0, "doc": {"context": ..., "answerA": ..., "label"}}   a line; SIQA
  {"doc_id": 0, "doc": {"sentence": "... _ ...", "option1", ...}}   a line; WinoGrande
  context, index of the right ending, four endings                  six lines of text; HellaSwag
  {"context": "...", "choices": ["...", "..."], "gold": 0}          a line; your own

A choice follows its context after one space, which neither has; "contexts": [...] gives each choice its own. A task is named
by its file. A context that is longer than the model's seq_len loses its beginning; a choice that is longer is an error.

  vktrain eval runs/book --tasks piqa_val.jsonl,hellaswag_val.txt.bz2 --limit 100

A run scores its model itself, and vktrain compare its runs, where their config has tasks.files.`,
		Args: arguments(1, 1, "the folder of a run"),
		RunE: func(c *cobra.Command, args []string) error {
			return evaluate(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args[0], f)
		},
	}
	f.device.add(c)
	c.Flags().StringSliceVar(&f.tasks, "tasks", nil, "score the tasks in `FILE`,...")
	c.Flags().IntVar(&f.limit, "limit", 0, "take the first `N` documents of each; 0: all")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// evaluation is what --json prints.
type evaluation struct {
	Model   string         `json:"model"`
	Step    int            `json:"step"`
	Device  string         `json:"device"`
	Tasks   []tasks.Result `json:"tasks"`
	Average float64        `json:"benchmark_average"`
}

func evaluate(ctx context.Context, out, progressOut io.Writer, dir string, f evalFlags) error {
	if len(f.tasks) == 0 {
		return usagef("vktrain eval needs --tasks FILE,...: see vktrain eval --help")
	}
	if f.limit < 0 {
		return usagef("--limit: %d is not possible: use at least 1, or 0 for all documents", f.limit)
	}
	list, err := tasks.Load(f.tasks, f.limit)
	if err != nil {
		return err
	}
	return f.device.withModel(ctx, dir, func(dev backend.Backend, model *train.Checkpoint) error {
		say, wipe := progressLine(progressOut)
		results, err := model.Score(ctx, list, func(task string, done, all int) { say("%s: %d of %d choices", task, done, all) })
		wipe()
		if err != nil {
			return err
		}
		if f.json {
			return writeJSON(out, evaluation{dir, model.Info.Step, dev.Info().String(), results, tasks.Average(results)})
		}
		writeTasks(out, results)
		return nil
	})
}

// writeTasks prints a table of results and how to read it.
func writeTasks(out io.Writer, results []tasks.Result) {
	t := table{left: 1, rows: [][]string{{"task", "n", "chance", "acc", "acc_norm"}}}
	cut := 0
	for _, r := range results {
		norm := "-"
		if r.AccNorm != nil {
			norm = share(*r.AccNorm, r.AccNormStderr)
		}
		t.add(r.Task, grouped(int64(r.N)), fmt.Sprintf("%.4f", r.Chance), share(r.Acc, r.AccStderr), norm)
		cut += r.Cut
	}
	t.write(out)
	fmt.Fprintln(out)
	row(out, "average", "%s", averageText(results))
	if cut > 0 {
		row(out, "cut", "%s lost the beginning of their context, which was longer than the model's seq_len", counted(cut, "choice"))
	}
}

// share prints an accuracy with its standard error, if it has one.
func share(x float64, stderr *float64) string {
	if stderr == nil {
		return fmt.Sprintf("%.4f", x)
	}
	return fmt.Sprintf("%.4f ± %.4f", x, *stderr)
}

// averageText is the benchmark average beside that of choices at random.
func averageText(results []tasks.Result) string {
	chance, of := 0.0, ""
	for i, r := range results {
		chance += r.Chance / float64(len(results))
		if i > 0 {
			of += ", "
		}
		of += string(r.Metric) + " of " + r.Task
	}
	return fmt.Sprintf("%.4f; by chance %.4f (mean of %s)", tasks.Average(results), chance, of)
}
