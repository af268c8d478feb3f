package testcall

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// House takes the place of a test for a program that is none, and holds what it starts.
type House struct {
	testing.TB // of which nothing is used but what is below
	name, dir  string
	rooms      int
	undo       []func()
}

// failure is why the program cannot go on.
type failure string

// NewHouse is a house of a program by its name, which errors begin with.
func NewHouse(name string) (*House, error) {
	dir, err := os.MkdirTemp("", "weir-"+name+"-")
	return &House{name: name, dir: dir}, err
}

// Close ends all that was started, the latest first.
func (h *House) Close() {
	for _, undo := range slices.Backward(h.undo) {
		undo()
	}
	os.RemoveAll(h.dir)
}

// Try does something, and returns the failure that ended it.
func (h *House) Try(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("%s: %s", h.name, string(r))
		default:
			panic(r)
		}
	}()
	do()
	return nil
}

func (h *House) Helper()                           {}
func (h *House) Cleanup(undo func())               { h.undo = append(h.undo, undo) }
func (h *House) Fatal(args ...any)                 { panic(failure(fmt.Sprint(args...))) }
func (h *House) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// TempDir is a new directory, which is removed with the house.
func (h *House) TempDir() string {
	h.rooms++
	dir := filepath.Join(h.dir, fmt.Sprint(h.rooms))
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	return dir
}
