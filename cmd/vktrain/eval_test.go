package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/experiment"
)

// writeTasksFiles leaves mine.jsonl and arc_easy_test.jsonl, with six documents each.
func writeTasksFiles(t *testing.T) {
	var mine, arc strings.Builder
	for i := range 6 {
		gold := string(rune('0' + i%2))
		mine.WriteString(`{"context": "What is", "choices": ["read", "so"], "gold": ` + gold + "}\n")
		arc.WriteString(`{"query": "Question: What", "choices": ["is", "was read", "a", "or"], "gold": ` + gold + "}\n")
	}
	require.NoError(t, os.WriteFile("mine.jsonl", []byte(mine.String()), 0o666))
	require.NoError(t, os.WriteFile("arc_easy_test.jsonl", []byte(arc.String()), 0o666))
}

func TestEval(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasksFiles(t)
	files := "mine.jsonl,arc_easy_test.jsonl"
	status, out, errs := vktrain(small("--out", "run", "--set", "tasks.files="+files, "--set", "tasks.limit=4")...)
	require.Zero(t, status, errs)
	require.Regexp(t, `(?m)^task       mine: acc 0\.5000 ± 0\.2887, acc_norm 0\.5000 ± 0\.2887; chance 0\.5000; 4 documents$`, out)
	require.Regexp(t, `(?m)^benchmarks 0\.\d{4}; by chance 0\.3750 \(mean of acc of mine, acc_norm of arc_easy\)$`, out)
	want := readLines(t, "run")[4].Tasks

	eval := []string{"eval", "run", "--device", "cpu", "--tasks", files, "--limit", "4"}
	status, out, errs = vktrain(eval...)
	require.Zero(t, status, errs)
	require.Regexp(t, `(?m)^task      n  chance              acc         acc_norm$`, out)
	require.Regexp(t, `(?m)^mine      4  0\.5000  0\.5000 ± 0\.2887  0\.5000 ± 0\.2887$`, out)
	require.Regexp(t, `(?m)^arc_easy  4  0\.2500  `, out)
	require.Contains(t, out, "(mean of acc of mine, acc_norm of arc_easy)")

	status, out, errs = vktrain(append(eval, "--json")...)
	require.Zero(t, status, errs)
	var got evaluation
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, want, got.Tasks, "a run's model comes to what the run did")
	require.Equal(t, 5, got.Step)
	require.InDelta(t, (want[0].Acc+*want[1].AccNorm)/2, got.Average, 1e-15)

	status, out, errs = vktrain("eval", "run", "--device", "cpu", "--tasks", "mine.jsonl", "--tasks", "arc_easy_test.jsonl")
	require.Zero(t, status, errs)
	require.Contains(t, out, "mine      6  ")
}

func TestEvalThatCannotBe(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasksFiles(t)
	status, _, errs := vktrain(small("--out", "run")...)
	require.Zero(t, status, errs)
	long := `{"context": "a", "choices": ["b", "c"], "gold": 0}` + "\n" + `{"context": "a", "choices": ["b", "` + strings.Repeat("never ", 40) + `"], "gold": 0}` + "\n"
	require.NoError(t, os.WriteFile("long.jsonl", []byte(long), 0o666))
	require.NoError(t, os.WriteFile("empty.jsonl", nil, 0o666))
	require.NoError(t, os.WriteFile("deep.jsonl", []byte(`{"context": "`+strings.Repeat("never ", 40)+`", "choices": ["b", "c"], "gold": 0}`), 0o666))
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"eval"}, 2, "vktrain eval needs the folder of a run"},
		{[]string{"eval", "run"}, 2, "vktrain eval needs --tasks FILE,...: see vktrain eval --help"},
		{[]string{"eval", "run", "--tasks", ""}, 2, "--tasks is empty"},
		{[]string{"eval", "run", "--tasks", "mine.jsonl", "--limit", "-1"}, 2, "--limit: -1 is not possible"},
		{[]string{"eval", "run", "--tasks", "absent.jsonl"}, 1, "absent.jsonl does not exist"},
		{[]string{"eval", "run", "--tasks", "empty.jsonl"}, 1, "empty.jsonl has no document: it is empty"},
		{[]string{"eval", "absent", "--tasks", "mine.jsonl", "--device", "cpu"}, 1, "absent does not exist: give the folder of a run"},
		{[]string{"eval", "run", "--tasks", "long.jsonl", "--device", "cpu"}, 1, "long.jsonl:2: choice 2 has "},
		{small("--out", "other", "--set", "tasks.files=long.jsonl"), 1, "tasks.files: long.jsonl:2: choice 2 has "},
		{small("--out", "other", "--set", "tasks.limit=-1"), 2, "tasks.limit: -1 is too small"},
	} {
		status, _, errs := vktrain(c.args...)
		require.Equal(t, c.status, status, errs)
		require.Contains(t, errs, c.want)
	}
	require.NoDirExists(t, "other")
	status, out, errs := vktrain("eval", "run", "--tasks", "deep.jsonl", "--device", "cpu")
	require.Zero(t, status, errs)
	require.Contains(t, out, "cut        2 choices lost the beginning of their context")
}

func TestCompareHasTasks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasksFiles(t)
	writeExperiment(t, "  tasks: {files: \"mine.jsonl,arc_easy_test.jsonl\", limit: 4}\n"+placements)
	status, out, errs := vktrain("compare", "tiny.yaml", "--devices", "cpu")
	require.Zero(t, status, errs)
	require.Regexp(t, `placement +params +n +diverged +val loss +bits/byte +mine acc +arc_easy acc_norm +benchmarks `, out)
	raw, err := os.ReadFile(filepath.Join("runs", "tiny", experiment.SummaryFile))
	require.NoError(t, err)
	require.Contains(t, string(raw), ",benchmark_average_n,benchmark_average_mean,benchmark_average_sd,")
	require.Contains(t, string(raw), ",acc_norm.arc_easy_diff_mean,")
	page, err := os.ReadFile(filepath.Join("runs", "tiny", "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "over the first 4 documents of a task")
}
