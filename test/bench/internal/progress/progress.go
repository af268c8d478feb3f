// Package progress tells whoever waits how far a long run has come: one line
// that changes on a terminal, one line a scenario anywhere else.
package progress

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

const width = 24

// Line is the progress of one run. It is safe for concurrent use.
type Line struct {
	out      *os.File
	terminal bool

	mu       sync.Mutex
	scenario string
}

// New returns a line on out, usually os.Stderr.
func New(out *os.File) *Line {
	info, err := out.Stat()
	return &Line{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// Step says that done of total is finished, and what comes next.
func (l *Line) Step(done, total int, scenario string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		bar := strings.Repeat("#", width*done/max(1, total))
		fmt.Fprintf(l.out, "\r\x1b[K[%-*s] %d/%d %s", width, bar, done, total, scenario)
		return
	}
	if scenario != l.scenario {
		l.scenario = scenario
		fmt.Fprintf(l.out, "%d/%d %s\n", done, total, scenario)
	}
}

// Clear removes the line, so that something else can be printed.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
