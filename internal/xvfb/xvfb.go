// Package xvfb gives tests an X server that draws into memory: windows that nobody sees, with screenshots and keys.
package xvfb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Server is a running X server.
type Server struct {
	Display string // for the environment variable DISPLAY
	dir     string
	process *exec.Cmd
}

// Start starts a server with a screen of so many pixels. It needs the program Xvfb, and keys xdotool.
func Start(width, height int) (*Server, error) {
	for _, name := range []string{"Xvfb", "xdotool"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w (Debian: apt install xvfb xdotool)", err)
		}
	}
	dir, err := os.MkdirTemp("", "xvfb")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	defer r.Close()
	// The server chooses a display that is free and writes its number to descriptor 3.
	s.process = exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", fmt.Sprintf("%dx%dx24", width, height), "-fbdir", dir, "-nolisten", "tcp", "-noreset")
	s.process.ExtraFiles = []*os.File{w}
	err = s.process.Start()
	w.Close()
	if err != nil {
		s.process = nil
		return nil, errors.Join(err, s.Close())
	}
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the X server does not start: %w", err), s.Close())
	}
	s.Display = ":" + strings.TrimSpace(number)
	return s, nil
}

// Close ends the server.
func (s *Server) Close() error {
	if s.process != nil {
		_ = s.process.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = s.process.Wait()                       // its status tells of the signal
	}
	return os.RemoveAll(s.dir)
}

// Screenshot is what the screen shows: the server keeps it in a file, in the format of the program xwd.
func (s *Server) Screenshot() (*image.RGBA, error) {
	raw, err := os.ReadFile(filepath.Join(s.dir, "Xvfb_screen0"))
	if err != nil {
		return nil, err
	}
	const fields = 25 // of 32 bits, most significant byte first, however the pixels are
	if len(raw) < 4*fields {
		return nil, errors.New("xvfb: the screen's file has no header")
	}
	field := func(i int) int { return int(binary.BigEndian.Uint32(raw[4*i:])) }
	headerSize, width, height, lsbFirst, bits, stride, colors := field(0), field(4), field(5), field(7) == 0, field(11), field(12), field(19)
	redMask, blueMask := field(14), field(16)
	pixels := raw[min(len(raw), headerSize+12*colors):]
	if bits != 32 || !lsbFirst || redMask != 0xff0000 || blueMask != 0xff || len(pixels) < stride*height {
		return nil, fmt.Errorf("xvfb: a screen of %d bits a pixel, masks %x and %x, is not known here", bits, redMask, blueMask)
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			p := pixels[y*stride+4*x:]
			copy(img.Pix[img.PixOffset(x, y):], []byte{p[2], p[1], p[0], 255})
		}
	}
	return img, nil
}

// Tool runs xdotool, as in Tool("search", "--name", "vktrain", "key", "space"), and gives what it prints.
func (s *Server) Tool(args ...string) (string, error) {
	c := exec.Command("xdotool", args...)
	c.Env = append(os.Environ(), "DISPLAY="+s.Display)
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("xdotool %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// Press types a key into the window of a name, without a mouse or a window manager.
func (s *Server) Press(window, key string) error {
	_, err := s.Tool("search", "--name", window, "windowfocus", "--sync", "key", key)
	return err
}
