//go:build !(window && cgo)

package window

import "errors"

// errAbsent says how to get a program with windows.
var errAbsent = errors.New("this program was built without the window: build it with `go build -tags window ./cmd/vktrain`. That needs a C compiler and, on Linux, " +
	"the headers of X11 and OpenGL (Debian, Ubuntu: apt install xorg-dev libgl1-mesa-dev; Fedora: dnf install libX11-devel libXcursor-devel libXrandr-devel " +
	"libXinerama-devel libXi-devel libXxf86vm-devel mesa-libGL-devel)")

// Main calls f and returns what it does. In programs with windows it does that in another goroutine.
func Main(f func() int) int { return f() }

// Available says why no window can be opened.
func Available() error { return errAbsent }

// Open opens no window in this program: see Available.
func Open(Options) (*Window, error) { return nil, errAbsent }

// display is what a window is in programs that have them.
type display struct{}
