//go:build !linux && !darwin

package main

import (
	"context"
	"io"
	"os"
)

// terminal is a file that may be a terminal. On this system its size is unknown and
// keys are read by lines, so only Ctrl-C ends top.
type terminal struct{ *os.File }

func terminalOf(w io.Writer) *terminal {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return &terminal{file}
}

func keyboardOf(io.Reader) *terminal { return nil }

func (t *terminal) size() (width, height int) { return sizeFromEnvironment() }

func (t *terminal) listen() (restore func(), err error) { return func() {}, nil }

func (t *terminal) wait(context.Context, func()) {}

func resizes() (<-chan os.Signal, func()) { return nil, func() {} }
