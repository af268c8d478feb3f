//go:build !unix

package main

import "os"

// terminalRows is 0, because the height of a terminal is unknown on this system, and whether a
// file may be one.
func terminalRows(file *os.File) (rows int, ok bool) {
	info, err := file.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
