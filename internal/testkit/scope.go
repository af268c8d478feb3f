package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Scope is a testing.TB for a program that is not a test. It ends what the program
// started.
type Scope struct {
	testing.TB // nil: only the methods below can be called
	name, dir  string
	dirs       int
	undo       []func()
}

// failure is the reason why the program cannot continue.
type failure string

// NewScope returns a scope for a program. Its errors begin with the name.
func NewScope(name string) (*Scope, error) {
	dir, err := os.MkdirTemp("", "weir-"+name+"-")
	return &Scope{name: name, dir: dir}, err
}

// Close runs all cleanup functions, the latest first, and removes the directories.
func (s *Scope) Close() {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
	os.RemoveAll(s.dir)
}

// Try calls do. If do called Fatal or Fatalf, Try returns the failure as an error.
func (s *Scope) Try(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("%s: %s", s.name, string(r))
		default:
			panic(r)
		}
	}()
	do()
	return nil
}

func (s *Scope) Helper()                           {}
func (s *Scope) Cleanup(undo func())               { s.undo = append(s.undo, undo) }
func (s *Scope) Fatal(args ...any)                 { panic(failure(fmt.Sprint(args...))) }
func (s *Scope) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

// TempDir returns a new directory, which Close removes.
func (s *Scope) TempDir() string {
	s.dirs++
	dir := filepath.Join(s.dir, fmt.Sprint(s.dirs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	return dir
}
