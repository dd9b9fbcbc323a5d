//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram makes the test binary the program itself, for what only a process shows.
const asProgram = "VKTRAIN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// startTraining starts a long run whose output goes to a pipe, and returns once the first step is through.
func startTraining(t *testing.T) (c *exec.Cmd, output *os.File) {
	output, w, err := os.Pipe()
	require.NoError(t, err)
	c = program(small("--steps", "1000000", "--out", "run", "--set", "eval_every=0", "--set", "sample_every=0")...)
	c.Stdout, c.Stderr = w, w
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	require.NoError(t, w.Close())
	for lines := bufio.NewScanner(output); ; {
		require.True(t, lines.Scan(), "the run ended by itself")
		if strings.HasPrefix(lines.Text(), "step 1/") {
			return c, output
		}
	}
}

func requireInterruptedRun(t *testing.T, c *exec.Cmd) {
	_ = c.Wait()
	require.Equal(t, statusInterrupted, c.ProcessState.ExitCode(), c.ProcessState)
	require.FileExists(t, filepath.Join("run", "model.safetensors"))
	require.FileExists(t, filepath.Join("run", "loss.png"))
}

func TestInterruptedWhileNobodyReads(t *testing.T) {
	t.Chdir(t.TempDir())
	c, output := startTraining(t)
	require.NoError(t, output.Close(), "as tee does on the Ctrl-C that it gets too")
	require.NoError(t, c.Process.Signal(os.Interrupt))
	requireInterruptedRun(t, c)
}

func TestATerminalThatClosesHangsUpTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	ours := make(chan os.Signal, 1)
	signal.Notify(ours, syscall.SIGHUP) // the tests may run under nohup: what is ignored here is ignored in the program too, what is caught is not
	defer signal.Stop(ours)
	c, output := startTraining(t)
	defer output.Close()
	require.NoError(t, c.Process.Signal(syscall.SIGHUP))
	for lines := bufio.NewScanner(output); ; {
		require.True(t, lines.Scan())
		if strings.HasPrefix(lines.Text(), "stopping") {
			break
		}
	}
	require.NoError(t, c.Process.Signal(syscall.SIGHUP))
	go func() { _, _ = io.Copy(io.Discard, output) }()
	requireInterruptedRun(t, c)
}

func TestAReaderThatHasSeenEnough(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	var errs bytes.Buffer
	c := program("devices")
	c.Stdout, c.Stderr = w, &errs
	require.NoError(t, c.Run())
	require.Empty(t, errs.String())
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "out", Err: syscall.ENOSPC}
}

func TestOutputThatIsLostIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"devices"}, {"devices", "--json"}, {"train", "--help"}, {"plan", "--preset", "bench-a", "--device", "cpu"}, small("--out", "run")} {
		var errs bytes.Buffer
		require.Equal(t, statusFailure, run(context.Background(), args, full{}, &errs), "%v", args)
		require.Contains(t, errs.String(), "vktrain: the output can't be written: write out: no space left on device\n", "%v", args)
	}
	require.FileExists(t, filepath.Join("run", "model.safetensors"), "the model is there all the same")
}
