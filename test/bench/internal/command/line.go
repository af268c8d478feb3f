package command

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

const width = 24

// line shows the progress of a long run: one changing line on a terminal, one line per
// scenario elsewhere. It is safe for concurrent use.
type line struct {
	out      *os.File
	terminal bool

	mu       sync.Mutex
	scenario string
}

func newLine(out *os.File) *line {
	info, err := out.Stat()
	return &line{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// step says that done of total is finished, and what comes next.
func (l *line) step(done, total int, scenario string) {
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

// clear removes the line, so that something else can be printed.
func (l *line) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
