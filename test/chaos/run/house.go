// Package run makes chaos: it starts Redis and three weirs, lets clients ask them, and does
// harm to all of them by a schedule, while a checker judges the answers.
package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// house holds what a run starts, and takes the place of a test towards testredis.
type house struct {
	testing.TB // of which nothing is used but what is below
	dir        string
	rooms      int
	undo       []func()
}

// failure is why the run cannot go on.
type failure string

func newHouse() (*house, error) {
	dir, err := os.MkdirTemp("", "weir-chaos-")
	return &house{dir: dir}, err
}

// close ends all that was started, the latest first.
func (h *house) close() {
	for _, undo := range slices.Backward(h.undo) {
		undo()
	}
	os.RemoveAll(h.dir)
}

// guard does something, and returns the failure that ended it.
func guard(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("chaos: %s", string(r))
		default:
			panic(r)
		}
	}()
	do()
	return nil
}

func (h *house) Helper()                           {}
func (h *house) Cleanup(undo func())               { h.undo = append(h.undo, undo) }
func (h *house) Fatal(args ...any)                 { panic(failure(fmt.Sprint(args...))) }
func (h *house) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func (h *house) TempDir() string {
	h.rooms++
	dir := filepath.Join(h.dir, fmt.Sprint(h.rooms))
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	return dir
}
