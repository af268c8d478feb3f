//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalRows is the height of a terminal, 0 if it does not say, and whether a file is one.
func terminalRows(file *os.File) (rows int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Row), true
}
