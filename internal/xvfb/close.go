package xvfb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// CloseWindow asks the window of a name to close, as a window manager does when somebody clicks on the cross: with a message of the protocol WM_DELETE_WINDOW, in
// the X protocol's own bytes, for xdotool of today knows to destroy windows only.
func (s *Server) CloseWindow(name string) error {
	found, err := s.Tool("search", "--name", name)
	if err != nil {
		return err
	}
	window, err := strconv.ParseUint(found, 10, 32)
	if err != nil {
		return fmt.Errorf("xvfb: windows named %q: %q", name, found)
	}
	c, err := net.Dial("unix", "/tmp/.X11-unix/X"+strings.TrimPrefix(s.Display, ":"))
	if err != nil {
		return err
	}
	defer c.Close()
	x := client{c}
	if err := x.hello(); err != nil {
		return err
	}
	protocols, err := x.atom("WM_PROTOCOLS")
	if err != nil {
		return err
	}
	closing, err := x.atom("WM_DELETE_WINDOW")
	if err != nil {
		return err
	}
	const sendEvent, clientMessage, words = 25, 33, 32
	event := []uint32{clientMessage | words<<8, uint32(window), protocols, closing, 0, 0, 0, 0}
	if err := x.send(append([]uint32{sendEvent | 11<<16, uint32(window), 0}, event...)); err != nil {
		return err
	}
	_, err = x.atom("WM_PROTOCOLS") // whose answer comes when the message is on its way
	return err
}

// client speaks the X protocol with the least significant byte first.
type client struct{ net.Conn }

func (x client) send(words []uint32) error {
	var raw []byte
	for _, w := range words {
		raw = binary.LittleEndian.AppendUint32(raw, w)
	}
	_, err := x.Write(raw)
	return err
}

// hello begins a connection without authorization.
func (x client) hello() error {
	if err := x.send([]uint32{'l' | 11<<16, 0, 0}); err != nil {
		return err
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(x, head); err != nil {
		return err
	}
	if head[0] != 1 {
		return errors.New("xvfb: the server refuses the connection")
	}
	_, err := io.CopyN(io.Discard, x, 4*int64(binary.LittleEndian.Uint16(head[6:])))
	return err
}

// atom is the server's number for a name.
func (x client) atom(name string) (uint32, error) {
	const internAtom = 16
	padded := []byte(name)
	for len(padded)%4 != 0 {
		padded = append(padded, 0)
	}
	words := []uint32{internAtom | uint32(2+len(padded)/4)<<16, uint32(len(name))}
	for i := 0; i < len(padded); i += 4 {
		words = append(words, binary.LittleEndian.Uint32(padded[i:]))
	}
	if err := x.send(words); err != nil {
		return 0, err
	}
	answer := make([]byte, 32)
	if _, err := io.ReadFull(x, answer); err != nil {
		return 0, err
	}
	if answer[0] != 1 {
		return 0, fmt.Errorf("xvfb: no atom for %s", name)
	}
	return binary.LittleEndian.Uint32(answer[8:]), nil
}
