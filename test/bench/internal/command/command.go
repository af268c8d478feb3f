// Package command is what the commands that measure have in common: their flags, how far
// they have come, and where the results go.
package command

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

// Run is one run of a command.
type Run struct {
	*testcall.Scope      // cleans up what the run starts, and is its testing.TB
	Quick           bool // as the flag says
	line            *line

	files map[string]*bytes.Buffer
}

// Step says how far the run has come, and what comes next.
func (r *Run) Step(done, total int, what string) { r.line.step(done, total, what) }

// File is where to write a file of results.
func (r *Run) File(name string) *bytes.Buffer {
	if r.files[name] == nil {
		panic("command: " + name + " is not among the files")
	}
	return r.files[name]
}

// Main reads the flags, measures, and prints the first file; all of them are kept in the
// directory of results. The flag -quick is described by what it takes.
func Main(quick string, measure func(*Run), files ...string) {
	r := &Run{line: newLine(os.Stderr), files: map[string]*bytes.Buffer{}}
	for _, name := range files {
		r.files[name] = &bytes.Buffer{}
	}
	flag.BoolVar(&r.Quick, "quick", false, quick)
	dir := flag.String("results", "results", "where "+strings.Join(files, ", ")+" go; empty for nowhere")
	flag.Parse()
	machine.FixGC()
	var err error
	if r.Scope, err = testcall.NewScope("bench"); err == nil {
		err = r.Try(func() { measure(r) })
		r.Close()
	}
	r.line.clear()
	if err == nil {
		err = r.keep(files[0], *dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// FirstLook describes the flag -quick of most commands.
const FirstLook = "some seconds, for a first look only"

// Progress hears how far a run has come, and what comes next.
type Progress func(done, total int, what string)

// Table is Main for a suite of one table: measured with options for the whole of it or for a
// first look, and written to one file.
func Table[O, F any](file string, full, quick O, measure func(testing.TB, O, Progress) []F, write func(io.Writer, machine.Description, O, []F) error) {
	Main(FirstLook, func(r *Run) {
		options := Pick(r, full, quick)
		figures := measure(r, options, r.Step)
		testcall.OK(r, write(r.File(file), machine.Describe(), options, figures))
	}, file)
}

// Pick is what the flag -quick chooses.
func Pick[O any](r *Run, full, quick O) O {
	if r.Quick {
		return quick
	}
	return full
}

func (r *Run) keep(first, dir string) error {
	if _, err := os.Stdout.Write(r.files[first].Bytes()); err != nil || dir == "" {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
