//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startComparing starts a comparison whose progress goes to a pipe.
func startComparing(t *testing.T, out string) (*exec.Cmd, *bufio.Scanner) {
	c := program("compare", "tiny.yaml", "--devices", "cpu", "--threads", "1", "--out", out)
	progress, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c, bufio.NewScanner(progress)
}

// runTimes are the lines of a result.json that tell time, or what the process held meanwhile.
var runTimes = regexp.MustCompile(`(?m)^ *"(steps|median_s|low_s|high_s|tokens_per_s|evaluation_s|peak_resident)": .*\n`)

// results reads what a comparison leaves, but for what tells time: metrics.jsonl and the report.
func results(t *testing.T, out string) map[string]string {
	files := map[string]string{}
	for _, pattern := range []string{"*.json", "*.md", "*.csv", "*.yaml", ".*.*.*", "runs/*/result.json", "runs/*/.*"} {
		paths, err := filepath.Glob(filepath.Join(out, pattern))
		require.NoError(t, err)
		for _, p := range paths {
			if filepath.Base(p) == "report.html" { // has the runs' times
				continue
			}
			raw, err := os.ReadFile(p)
			require.NoError(t, err)
			files[strings.TrimPrefix(p, out)] = runTimes.ReplaceAllString(string(raw), "")
		}
	}
	return files
}

// A comparison that is killed at any moment, again and again, ends with the same bytes.
func TestKilledComparisonsEndTheSame(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTasksFiles(t)
	writeExperiment(t, "  tasks: {files: \"mine.jsonl,arc_easy_test.jsonl\"}\n"+placements)
	status, _, errs := vktrain("compare", "tiny.yaml", "--devices", "cpu", "--out", "whole")
	require.Zero(t, status, errs)

	kills := 0
	for ; kills < 5; kills++ {
		c, progress := startComparing(t, "killed")
		for progress.Scan() && !strings.Contains(progress.Text(), ": val ") {
		}
		time.Sleep(time.Duration(kills*11) * time.Millisecond) // into the next run, or its result, or the tables
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()
	}
	paths, err := filepath.Glob("killed/runs/*/result.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	c, progress := startComparing(t, "killed")
	for progress.Scan() {
	}
	require.NoError(t, c.Wait())
	want := results(t, "whole")
	require.Equal(t, 5+6, len(want))
	got := results(t, "killed")
	for name := range got {
		require.Contains(t, want, name)
	}
	for name, text := range want {
		require.Equal(t, text, got[name], name)
	}
}

func TestAnInterruptedComparisonEndsInOrder(t *testing.T) {
	t.Chdir(t.TempDir())
	writeExperiment(t, "  warmup: 0\n"+strings.Replace(placements, "seeds: 3", "seeds: 1000", 1))
	c, progress := startComparing(t, "out")
	for progress.Scan() && !strings.Contains(progress.Text(), "pre_s2: val ") {
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	var rest []string
	for progress.Scan() {
		rest = append(rest, progress.Text())
	}
	_ = c.Wait()
	require.Equal(t, statusInterrupted, c.ProcessState.ExitCode())
	require.Contains(t, rest, "stopping; once more to kill")
	require.Regexp(t, `^interrupted: \d+ of 2000 runs are finished; the same command goes on$`, rest[len(rest)-1])
}
