//go:build window && cgo && unix

package main

import (
	"bytes"
	"errors"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/internal/xvfb"
	"github.com/vktrain/vktrain/train"
)

// windowed is a training program with a window on a screen of its own.
type windowed struct {
	t      *testing.T
	server *xvfb.Server
	dir    string
	name   string // of the window
	output bytes.Buffer
	ended  chan error
}

func startWindowed(t *testing.T, args ...string) *windowed {
	t.Helper()
	server, err := xvfb.Start(1300, 900)
	if err != nil && os.Getenv("VKTRAIN_REQUIRE_VULKAN") != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	w := &windowed{t: t, server: server, dir: filepath.Join(t.TempDir(), "seen"), ended: make(chan error, 1)}
	w.name = "vktrain: seen on"
	c := program(append([]string{"train", "--window", "--device", "cpu", "--threads", "1", "--out", w.dir}, args...)...)
	c.Env = append(c.Env, "DISPLAY="+server.Display, "VKTRAIN_VALIDATE=1")
	var mu sync.Mutex // of the two streams
	c.Stdout, c.Stderr = locked{&mu, &w.output}, locked{&mu, &w.output}
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() }) // where it has not ended
	go func() { w.ended <- c.Wait() }()
	w.eventually("the window", func() bool { _, err := server.Tool("search", "--name", w.name); return err == nil })
	return w
}

type locked struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

func (w *windowed) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, 60*time.Second, 20*time.Millisecond, what)
}

func (w *windowed) press(key string) { require.NoError(w.t, w.server.Press(w.name, key)) }

// steps is how many are in metrics.jsonl.
func (w *windowed) steps() int {
	raw, err := os.ReadFile(filepath.Join(w.dir, train.MetricsFile))
	require.NoError(w.t, err)
	return bytes.Count(raw, []byte("\n"))
}

// pause presses space and waits until the run stands.
func (w *windowed) pause() int {
	w.press("space")
	last := -1
	w.eventually("the run stands", func() bool {
		before := last
		time.Sleep(300 * time.Millisecond)
		last = w.steps()
		return last > 0 && last == before
	})
	return last
}

func (w *windowed) end() (status int, output string) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return exit.ExitCode(), w.output.String()
		}
		require.NoError(w.t, err)
	case <-time.After(100 * time.Second):
		require.Fail(w.t, "the program does not end")
	}
	return 0, w.output.String()
}

// A run is paused, taken a step further, photographed and saved by its window's keys; it goes on when that is closed, and has the bits of one without a window.
func TestTrainingInAWindow(t *testing.T) {
	w := startWindowed(t, "--steps", "120")
	stood := w.pause()
	w.press("s")
	w.eventually("one step", func() bool { return w.steps() == stood+1 })
	w.press("c")
	w.eventually("a checkpoint", func() bool {
		info, err := checkpoint.ReadInfo(w.dir)
		return err == nil && info.Step == stood+1
	})
	time.Sleep(time.Second) // what is drawn last is shown
	screen, err := w.server.Screenshot()
	require.NoError(t, err)
	w.press("p")
	var pictures []string
	w.eventually("a picture", func() bool {
		pictures, err = filepath.Glob(filepath.Join(w.dir, "picture-*.png"))
		return err == nil && len(pictures) == 1
	})
	raw, err := os.ReadFile(pictures[0])
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			at := screen.RGBAAt(x, y)
			require.Equal(t, [3]uint32{r >> 8, g >> 8, b >> 8}, [3]uint32{uint32(at.R), uint32(at.G), uint32(at.B)}, "%d, %d", x, y)
		}
	}
	require.Equal(t, stood+1, w.steps(), "still paused")
	require.NoError(t, w.server.CloseWindow(w.name))
	status, out := w.end()
	require.Zero(t, status, out)
	require.NotContains(t, out, "window: ", "a warning, such as of the validation layer")
	require.Equal(t, 120, w.steps())

	plain := filepath.Join(t.TempDir(), "unseen")
	status, _, errs := vktrain("train", "--device", "cpu", "--steps", "120", "--out", plain)
	require.Zero(t, status, errs)
	want, err := os.ReadFile(filepath.Join(plain, checkpoint.ModelFile))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(w.dir, checkpoint.ModelFile))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "the same model")
}

// The window stays when the run is over, and the program ends with it.
func TestWindowOutlivesTheRun(t *testing.T) {
	w := startWindowed(t, "--steps", "10")
	w.eventually("the model", func() bool { _, err := checkpoint.ReadInfo(w.dir); return err == nil })
	time.Sleep(2 * time.Second) // a sample is written
	require.NoError(t, w.server.CloseWindow(w.name))
	status, out := w.end()
	require.Zero(t, status, out)
	require.Contains(t, out, "close it, or press Ctrl-C, to end")
	require.NotContains(t, out, "window: ")
}

func TestWindowEndsTheRun(t *testing.T) {
	w := startWindowed(t, "--steps", "5000", "--window-ends-run")
	stood := w.pause()
	require.NoError(t, w.server.CloseWindow(w.name))
	status, out := w.end()
	require.Equal(t, statusInterrupted, status, out)
	require.Contains(t, out, "interrupted")
	info, err := checkpoint.ReadInfo(w.dir)
	require.NoError(t, err)
	require.InDelta(t, stood, info.Step, 1)
	require.NotContains(t, out, "window: ")
}

// Ctrl-C ends a run that is paused, and the window with it.
func TestInterruptWithAWindow(t *testing.T) {
	w := startWindowed(t, "--steps", "5000")
	w.pause()
	pid := strings.Fields(must(w.server.Tool("search", "--name", w.name, "getwindowpid")))
	require.NoError(t, exec.Command("kill", "-INT", pid[0]).Run())
	status, out := w.end()
	require.Equal(t, statusInterrupted, status, out)
	require.FileExists(t, filepath.Join(w.dir, checkpoint.ModelFile))
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}
