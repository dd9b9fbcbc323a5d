package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

// twoTasks writes two files of six documents, and gives their paths as tasks.files has them.
func twoTasks(t *testing.T) string {
	dir := t.TempDir()
	var mine, arc strings.Builder
	for i := range 6 {
		gold := string(rune('0' + i%2))
		mine.WriteString(`{"context": "Line", "choices": ["what", "1"], "gold": ` + gold + "}\n")
		arc.WriteString(`{"query": "Question: Line", "choices": ["read", "a", "written", "b"], "gold": ` + gold + "}\n")
	}
	a, b := filepath.Join(dir, "mine.jsonl"), filepath.Join(dir, "arc_easy_test.jsonl")
	require.NoError(t, os.WriteFile(a, []byte(mine.String()), 0o666))
	require.NoError(t, os.WriteFile(b, []byte(arc.String()), 0o666))
	return a + "," + b
}

func TestTasksHaveColumnsAndAnAverage(t *testing.T) {
	text, files := book(t), twoTasks(t)
	with := func(limit, more string) *Matrix {
		return tiny(t, text, "  tasks: {files: \""+files+"\", limit: "+limit+"}\naxes: {model.placement: [pre, peri]}\nseeds: 3\n"+more)
	}
	o := options(t)
	r, err := Execute(context.Background(), with("4", ""), o)
	require.NoError(t, err)
	var names []string
	for _, m := range r.Metrics {
		names = append(names, m.Name)
	}
	require.Equal(t, []string{MetricValLoss, MetricBitsPerByte, "acc.mine", "acc_norm.arc_easy", MetricAverage}, names)
	for _, c := range r.Combinations {
		require.Equal(t, 3, c.Figures["acc.arc_easy"].N)
		require.Equal(t, 3, c.Figures["acc_norm.mine"].N, "for the choices are of several lengths")
		require.InDelta(t, (c.Figures["acc.mine"].Mean+c.Figures["acc_norm.arc_easy"].Mean)/2, c.Figures[MetricAverage].Mean, 1e-12)
		require.NotNil(t, c.Figures[MetricAverage].SD)
	}
	for _, name := range names {
		d := r.difference(name, "peri")
		require.Equal(t, 3, d.N, name)
		require.NotNil(t, d.Interval, name)
	}
	require.Contains(t, r.Markdown(), "| mine acc | arc_easy acc_norm | benchmarks |")
	require.Contains(t, r.Notes[len(r.Notes)-1], "mine: acc, 4 documents, chance 0.5000 (with a standard error of 0.2887 over as many documents); arc_easy: acc_norm, 4 documents, chance 0.2500")

	lines, err := os.ReadFile(filepath.Join(o.Out, RunsFolder, "pre_s1", train.MetricsFile))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(lines), `"benchmark_average":`), "the last line alone")

	other := options(t)
	other.Jobs, other.Threads = 3, 3
	_, err = Execute(context.Background(), with("4", ""), other)
	require.NoError(t, err)
	require.Equal(t, written(t, o.Out), written(t, other.Out), "the same bytes with other workers")

	_, err = Execute(context.Background(), with("5", ""), o)
	require.ErrorContains(t, err, "tasks.limit 4, now 5")
	one, _, _ := strings.Cut(files, ",")
	require.NoError(t, os.WriteFile(one, []byte(`{"context": "x", "choices": ["y", "z"], "gold": 0}`), 0o666))
	_, err = Execute(context.Background(), with("4", ""), o)
	require.ErrorContains(t, err, "tasks.sha256", "other documents under the same name")

	named, err := Execute(context.Background(), with("4", "metrics: [acc_norm.arc_easy, val_loss]"), options(t))
	require.NoError(t, err)
	require.Len(t, named.Metrics, 2)
	require.Equal(t, "arc_easy acc_norm", named.Metrics[0].Label)
}

func TestMetricsOfTasksThatNoRunHas(t *testing.T) {
	for _, c := range []struct{ base, metric, want string }{
		{"", "acc.piqa", "metrics: acc.piqa is of tasks, and no run has any: give tasks.files in base"},
		{"", "benchmark_average", "metrics: benchmark_average is of tasks, and no run has any: give tasks.files in base"},
		{"  tasks.files: piqa_val.jsonl", "acc_norm.pika", `metrics: acc_norm.pika: there is no task "pika": there are piqa`},
		{"  tasks.files: piqa_val.jsonl", "acc_norm.piqa", ""},
		{"  tasks.files: piqa_val.jsonl", "acc.", `metrics: there is no "acc.": `},
	} {
		e, err := Parse("x.yaml", []byte("base:\n  steps: 1\n"+c.base+"\nmetrics: ["+c.metric+"]\n"))
		require.NoError(t, err)
		_, err = e.Matrix()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.ErrorAs(t, err, new(*train.ConfigError))
	}
}

func TestAConfigWithoutTasksHasTheHashItHad(t *testing.T) {
	c, err := train.FromPreset("nano")
	require.NoError(t, err)
	without, err := settings(c, "", "")
	require.NoError(t, err)
	for k := range without {
		require.NotContains(t, k, "tasks.")
	}
	with, err := settings(c, "", "abc")
	require.NoError(t, err)
	require.Equal(t, "abc", with[tasksKey])
	_, err = MetricNamed("acc.")
	require.ErrorContains(t, err, "acc.TASK and acc_norm.TASK of the config's tasks")
}
