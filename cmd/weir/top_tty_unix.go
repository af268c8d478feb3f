//go:build linux || darwin

package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal is a file that is one.
type terminal struct{ *os.File }

// terminalOf returns the terminal that somebody looks at, or nil if it cannot be drawn on.
func terminalOf(w io.Writer) *terminal {
	if os.Getenv("TERM") == "dumb" {
		return nil
	}
	return terminalAt(w)
}

// keyboardOf returns the terminal that somebody types at, or nil.
func keyboardOf(r io.Reader) *terminal { return terminalAt(r) }

func terminalAt(stream any) *terminal {
	file, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), getTermios); err != nil {
		return nil
	}
	return &terminal{file}
}

func (t *terminal) size() (width, height int) {
	width, height = sizeFromEnvironment()
	if size, err := unix.IoctlGetWinsize(int(t.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		width, height = int(size.Col), int(size.Row)
	}
	return min(width, maxColumns), min(height, maxRows)
}

// listen gives keys at once and without showing them, until they are restored. Ctrl-C
// and Ctrl-Z are keys then: a terminal that is left in the middle stays as it is.
func (t *terminal) listen() (restore func(), err error) {
	before, err := unix.IoctlGetTermios(int(t.Fd()), getTermios)
	if err != nil {
		return nil, err
	}
	raw := *before
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(t.Fd()), setTermios, &raw); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(int(t.Fd()), setTermios, before) }, nil
}

// wait calls leave when somebody types that, or the terminal is gone. A read cannot be
// called off, so it looks whether there is something to read, ten times a second.
func (t *terminal) wait(ctx context.Context, leave func()) {
	const pause = 100 // milliseconds
	keys := make([]byte, 64)
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(t.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, pause)
		switch {
		case err == unix.EINTR || err == nil && n == 0:
			continue
		case err != nil || poll[0].Revents&unix.POLLIN == 0:
			leave() // the terminal was closed
			return
		}
		n, err = t.Read(keys)
		if err != nil || n == 0 || wantsToLeave(keys[:n]) {
			leave()
			return
		}
	}
}

// resizes tells when the terminal has another size.
func resizes() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
