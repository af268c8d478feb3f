package run

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress says how far a run is: on a terminal as a bar, elsewhere as a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	begun    time.Time
	total    time.Duration
	last     time.Time
}

const (
	barWidth  = 24
	lineEvery = 20 * time.Second
)

func newProgress(o Options) *progress {
	out := o.Progress
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out, terminal: o.Terminal, begun: time.Now(), total: o.Duration}
}

// tell says what a scene does now.
func (p *progress) tell(s *scene, doing string) {
	if !p.terminal && time.Since(p.last) < lineEvery {
		return
	}
	p.last = time.Now()
	text := s.summary(doing)
	elapsed := time.Since(p.begun)
	if !p.terminal {
		fmt.Fprintf(p.out, "%7s of %v  %s\n", elapsed.Round(time.Second), p.total, text)
		return
	}
	full := min(barWidth, int(barWidth*elapsed/max(p.total, 1)))
	fmt.Fprintf(p.out, "\r\x1b[K%s%s %s  %s", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), elapsed.Round(time.Second), text)
}

// end leaves the line of the bar.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}

// summary is a scene in a line.
func (s *scene) summary(doing string) string {
	if s.checker == nil {
		return fmt.Sprintf("%-8s  %s", s.topology, doing)
	}
	tally, violations, more := s.checker.Result()
	faults := 0
	for _, n := range s.faults {
		faults += n
	}
	return fmt.Sprintf("%-8s  %6d requests  %3d faults  %d violations  %s", s.topology, tally.Requests, faults, len(violations)+more, doing)
}
