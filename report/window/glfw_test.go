//go:build window && cgo

package window

import (
	"fmt"
	"image"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/internal/xvfb"
	"github.com/vktrain/vktrain/train"
)

// server is an X server of the tests' own: nobody's screen gets windows.
var server *xvfb.Server

func TestMain(m *testing.M) {
	os.Exit(Main(func() int {
		var err error
		if server, err = xvfb.Start(1400, 1000); err != nil {
			if os.Getenv("VKTRAIN_REQUIRE_VULKAN") == "1" {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			fmt.Fprintln(os.Stderr, "the tests with windows are skipped:", err)
			return m.Run()
		}
		defer server.Close()
		os.Setenv("DISPLAY", server.Display)
		return m.Run()
	}))
}

// shown opens a window with the validation layer on. What it warns of fails the test.
func shown(t *testing.T, opts Options) *Window {
	t.Helper()
	if server == nil {
		t.Skip("there is no Xvfb")
	}
	var mu sync.Mutex
	var warnings []string
	opts.Validate = true
	opts.Warn = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, s)
	}
	w, err := Open(opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		w.Close()
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, warnings)
	})
	return w
}

// inside calls f in the window's thread.
func (w *Window) inside(t *testing.T, f func(l *display)) {
	t.Helper()
	done := make(chan struct{})
	select {
	case w.do <- func(l *display) { defer close(done); f(l) }:
		<-done
	case <-w.gone:
		t.Fatal("the window is gone")
	}
}

// settled waits until the window shows all that is new, and gives the picture and where it is.
func (w *Window) settled(t *testing.T) (img *image.RGBA, at image.Point) {
	t.Helper()
	eventually(t, "the newest picture is shown", func() (still bool) {
		w.inside(t, func(l *display) {
			size := image.Pt(l.glfw.GetFramebufferSize())
			still = !l.hidden && l.img != nil && l.version == w.version() && l.img.Bounds().Size() == size
			img, at = l.img, image.Pt(l.glfw.GetPos())
		})
		return still
	})
	return img, at
}

// sees compares the screen with a picture, every pixel of it.
func sees(t *testing.T, want *image.RGBA, at image.Point) {
	t.Helper()
	differ := func() (n int) {
		screen, err := server.Screenshot()
		require.NoError(t, err)
		size := want.Bounds().Size()
		require.True(t, image.Rectangle{Min: at, Max: at.Add(size)}.In(screen.Bounds()))
		for y := range size.Y {
			for x := range size.X {
				a, b := want.RGBAAt(x, y), screen.RGBAAt(at.X+x, at.Y+y)
				if a.R != b.R || a.G != b.G || a.B != b.B {
					n++
				}
			}
		}
		return n
	}
	// The server may be a moment behind.
	eventually(t, "the screen shows the picture", func() bool { return differ() == 0 })
}

// The screen has the very pixels that were drawn, as the run goes on, in every size that the window is given.
func TestWindowShowsWhatIsDrawn(t *testing.T) {
	w := shown(t, Options{Title: "vktrain shows", Steps: 300})
	empty, at := w.settled(t)
	require.Equal(t, image.Pt(firstWidth, firstHeight), empty.Bounds().Size())
	sees(t, empty, at)
	w.change(func(p *picture) { *p = filled(300, 4).shown })
	w.Say("a picture")
	full, at := w.settled(t)
	sees(t, full, at)
	colourful, plain := 0, 0
	for i := 0; i < len(full.Pix); i += 4 {
		if full.Pix[i] != full.Pix[i+2] {
			colourful++
		}
		if empty.Pix[i] != empty.Pix[i+2] {
			plain++
		}
	}
	require.Greater(t, colourful, plain+50_000, "red and blue are not the same in it, so that they can't have been confused")
	for _, size := range []image.Point{{900, 601}, {321, 247}, {1301, 903}, {1, 1}, {640, 480}} {
		w.inside(t, func(l *display) { l.glfw.SetSize(size.X, size.Y) })
		img, at := w.settled(t)
		require.Equal(t, size, img.Bounds().Size())
		sees(t, img, at)
	}
}

// Sizes that follow each other faster than pictures can be drawn end with the last one.
func TestWindowIsDragged(t *testing.T) {
	w := shown(t, Options{Title: "vktrain dragged", Steps: 10})
	for i := range 40 {
		w.inside(t, func(l *display) { l.glfw.SetSize(400+10*i, 700-5*i) })
		w.Say("size %d", i)
	}
	img, at := w.settled(t)
	require.Equal(t, image.Pt(790, 505), img.Bounds().Size())
	sees(t, img, at)
}

// A window that is hidden for a while shows what has happened meanwhile.
func TestWindowComesBack(t *testing.T) {
	w := shown(t, Options{Title: "vktrain back", Steps: 10})
	w.settled(t)
	w.inside(t, func(l *display) { l.glfw.Hide() })
	for s := range 5 {
		w.Add(train.Metrics{Step: s + 1, Loss: 7})
	}
	w.inside(t, func(l *display) { l.glfw.Show() })
	img, at := w.settled(t)
	require.Equal(t, 5, w.step())
	sees(t, img, at)
}

// The keys of a keyboard reach a run.
func TestWindowKeys(t *testing.T) {
	pictures := make(chan *image.RGBA, 1)
	w, done := smallRun(t, func(c *train.Control) *Window {
		return shown(t, Options{Title: "vktrain keys", Steps: 6, Control: c, Checkpoint: func() error { return nil },
			Picture: func(step int, img image.Image) (string, error) {
				pictures <- img.(*image.RGBA)
				return fmt.Sprintf("of step %d", step), nil
			}})
	})
	press := func(key string) { require.NoError(t, server.Press("vktrain keys", key)) }
	eventually(t, "the run is held", w.isPaused)
	press("s")
	eventually(t, "a step", func() bool { return w.step() == 1 })
	img, _ := w.settled(t)
	press("p")
	require.Equal(t, img, <-pictures, "the one that is shown")
	eventually(t, "word of it", w.notes("picture: of step 1"))
	press("c")
	eventually(t, "word of it", w.notes("checkpoint of step 1 is saved"))
	press("x") // means nothing
	img, at := w.settled(t)
	sees(t, img, at)
	require.Equal(t, 1, w.step(), "nothing else has let the run go")
	press("space")
	require.Equal(t, 6, (<-done).Steps)
}

// Somebody closes the window of a paused run, which goes on to its end.
func TestWindowIsClosed(t *testing.T) {
	w, done := smallRun(t, func(c *train.Control) *Window {
		return shown(t, Options{Title: "vktrain closed", Steps: 6, Control: c})
	})
	w.settled(t)
	require.NoError(t, server.CloseWindow("vktrain closed"))
	w.Wait(t.Context())
	require.Equal(t, 6, (<-done).Steps)
	require.Equal(t, 6, w.step(), "what comes after it is heard all the same")
}

// A device that trains and can't show images is named in a warning, and another shows them.
func TestWindowOfAnotherDevice(t *testing.T) {
	if server == nil {
		t.Skip("there is no Xvfb")
	}
	warned := make(chan string, 1)
	w, err := Open(Options{Title: "vktrain other", UUID: "00000000-0000-0000-0000-00000000abcd", Warn: func(s string) { warned <- s }})
	require.NoError(t, err)
	require.Contains(t, <-warned, "the device that trains can't show images in it")
	img, at := w.settled(t)
	sees(t, img, at)
	var uuid string
	w.inside(t, func(l *display) { uuid = l.screen.Device().UUID })
	w.Close()
	w = shown(t, Options{Title: "vktrain same", UUID: uuid}) // without a warning
	w.settled(t)
}

// One after the other is well, two at once are not, and a display that is not there is an error.
func TestWindowsOneAtATime(t *testing.T) {
	w := shown(t, Options{Title: "vktrain one"})
	_, err := Open(Options{})
	require.ErrorContains(t, err, "one window at a time")
	w.Close()
	w.Close()
	w = shown(t, Options{Title: "vktrain two"})
	w.settled(t)
	w.Close()
	t.Setenv("DISPLAY", ":4711")
	_, err = Open(Options{})
	require.ErrorContains(t, err, ":4711")
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	_, err = Open(Options{})
	require.ErrorContains(t, err, "DISPLAY is not set")
}
