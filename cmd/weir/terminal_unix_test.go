//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTerminal(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	plain, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, c := range []struct {
		term     string
		file     *os.File
		terminal bool
	}{{"xterm", tty, true}, {"dumb", tty, false}, {"xterm", plain, false}} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", "")
		if _, ok := terminal(c.file); ok != c.terminal || isTerminal(c.file) != c.terminal {
			t.Errorf("%s on %s: %v", c.file.Name(), c.term, ok)
		}
		t.Setenv("NO_COLOR", "1")
		if isTerminal(c.file) {
			t.Error("there are colours, but NO_COLOR is set")
		}
	}
}
