//go:build window && cgo

package window

import (
	"errors"
	"fmt"
	"image"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/go-gl/glfw/v3.3/glfw"

	"github.com/vktrain/vktrain/backend/vulkan"
)

// The systems' windows belong to the main thread. It is locked to the main goroutine before main begins.
func init() { runtime.LockOSThread() }

// mainThread runs functions on the main thread while Main is there.
var mainThread struct {
	sync.Mutex
	calls chan func() // nil without Main, and while a window is open
}

// Main calls f in another goroutine and returns what it does. Meanwhile the main thread, in which it must be called, is there for a window.
func Main(f func() int) int {
	calls := make(chan func())
	setCalls(calls)
	defer setCalls(nil)
	status := make(chan int, 1)
	go func() { status <- f() }()
	for {
		select {
		case call := <-calls:
			call()
		case s := <-status:
			return s
		}
	}
}

func setCalls(calls chan func()) {
	mainThread.Lock()
	defer mainThread.Unlock()
	mainThread.calls = calls
}

// Available says why no window can be opened, as far as that is known without trying.
func Available() error {
	if runtime.GOOS != "windows" && runtime.GOOS != "darwin" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return errors.New("there is no display for the window: DISPLAY is not set")
	}
	return nil
}

// Open opens a window, one at a time. The run's goroutine goes on as soon as it is there.
func Open(opts Options) (*Window, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	mainThread.Lock()
	calls := mainThread.calls
	mainThread.calls = nil
	mainThread.Unlock()
	if calls == nil {
		return nil, errors.New("window: a program opens one window at a time, and calls window.Main in its main")
	}
	w := newWindow(opts)
	ready := make(chan error)
	calls <- func() { w.live(ready, func() { setCalls(calls) }) }
	if err := <-ready; err != nil {
		return nil, err
	}
	return w, nil
}

// live is the window's life, on the main thread. over lets another one begin.
func (w *Window) live(ready chan<- error, over func()) {
	l, err := open(w)
	if err != nil {
		over()
		ready <- fmt.Errorf("the window can't be opened: %w", err)
		return
	}
	ready <- nil
	if err := errors.Join(l.loop(), l.close()); err != nil {
		w.warn(fmt.Errorf("the window is closed: %w", err))
	}
	over()
	close(w.gone)
}

// display is the window with what draws it.
type display struct {
	w      *Window
	glfw   *glfw.Window
	screen *vulkan.Screen

	img     *image.RGBA // that was drawn last
	version int         // of the board in it
	hidden  bool        // it has not been shown yet, or something was above it
	urgent  bool        // somebody waits for an answer
	pace    pace
}

const (
	firstWidth, firstHeight = 1200, 800
	leastWidth, leastHeight = 320, 240
)

func open(w *Window) (l *display, err error) {
	l = &display{w: w}
	defer func() { // what GLFW's binding does not give as an error, it panics with
		if p := recover(); p != nil {
			err = fmt.Errorf("display %q: %v", os.Getenv("DISPLAY"), p)
		}
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if err := glfw.Init(); err != nil {
		return l, err
	}
	glfw.GetMonitors() // panics where Init has failed without an error, as with a display that is not there
	if !glfw.VulkanSupported() {
		return l, errors.New("the window system finds no Vulkan loader")
	}
	glfw.WindowHint(glfw.ClientAPI, glfw.NoAPI)
	glfw.WindowHint(glfw.ScaleToMonitor, glfw.True)
	if l.glfw, err = glfw.CreateWindow(firstWidth, firstHeight, w.opts.Title, nil, nil); err != nil {
		return l, err
	}
	l.glfw.SetSizeLimits(leastWidth, leastHeight, glfw.DontCare, glfw.DontCare)
	l.screen, err = vulkan.OpenScreen(vulkan.ScreenOptions{
		Extensions: l.glfw.GetRequiredInstanceExtensions(), UUID: w.opts.UUID, Validate: w.opts.Validate,
		Surface: func(instance any) (uintptr, error) { return l.glfw.CreateWindowSurface(instance, nil) },
	})
	if err != nil {
		return l, err
	}
	if d := l.screen.Device(); w.opts.UUID != "" && d.UUID != w.opts.UUID {
		w.warn(fmt.Errorf("the window is shown by %s, for the device that trains can't show images in it", d.Name))
	}
	l.glfw.SetKeyCallback(func(_ *glfw.Window, key glfw.Key, _ int, a glfw.Action, _ glfw.ModifierKey) { l.key(key, a) })
	l.glfw.SetRefreshCallback(func(*glfw.Window) { l.hidden = true })
	return l, nil
}

func (l *display) key(key glfw.Key, a glfw.Action) {
	if a != glfw.Press {
		return
	}
	actions := map[glfw.Key]action{glfw.KeySpace: pauseOrContinue, glfw.KeyS: oneStep, glfw.KeyP: savePicture, glfw.KeyC: saveCheckpoint}
	if act, known := actions[key]; known {
		var shown image.Image
		if l.img != nil {
			shown = l.img
		}
		l.w.act(act, shown)
		l.urgent = true
	}
}

// version counts the changes.
func (b *Board) version() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.news
}

// patience is how long the loop waits for an event before it looks for news.
const patience = 100 * time.Millisecond

// loop runs until the window is to be closed.
func (l *display) loop() error {
	for !l.w.quit.Load() {
		if l.glfw.ShouldClose() {
			l.w.closedBySomebody()
			return nil
		}
		if err := l.frame(); err != nil {
			l.w.letGo()
			return err
		}
		select {
		case f := <-l.w.do:
			f(l)
		default:
			glfw.WaitEventsTimeout(patience.Seconds())
		}
	}
	return nil
}

// frame draws and shows a picture where that is due.
func (l *display) frame() error {
	l.w.followControl()
	size, err := l.screen.Fit(l.glfw.GetFramebufferSize())
	if err != nil || size == (image.Point{}) {
		return err
	}
	fits := l.img != nil && l.img.Bounds().Size() == size
	news := l.w.version() != l.version && (l.urgent || !time.Now().Before(l.pace.next))
	if !fits || news {
		l.draw(size)
	}
	if !l.hidden {
		return nil
	}
	shown, err := l.screen.Show(l.img)
	l.hidden = !shown
	return err
}

func (l *display) draw(size image.Point) {
	began := time.Now()
	var p picture
	p, l.version = l.w.copy()
	scale, _ := l.glfw.GetContentScale()
	l.img = p.draw(size.X, size.Y, 96*float64(max(scale, 0.5)))
	l.pace.drew(began, time.Now())
	l.urgent, l.hidden = false, true
}

// close frees what open made, of which anything may be missing.
func (l *display) close() (err error) {
	if l.screen != nil {
		err = l.screen.Close()
	}
	if l.glfw != nil {
		l.glfw.Destroy()
	}
	glfw.Terminate()
	return err
}
