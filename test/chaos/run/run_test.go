package run

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// parts is a store whose masters are what a test says.
type parts struct {
	store
	now owners
	err error
}

func (p *parts) owners() (owners, error) { return p.now, p.err }
func (p *parts) probe() []string         { return []string{"a", "b"} }
func (p *parts) slotOf(key string) int   { return map[string]int{"a": 1, "b": 2}[key] }

// A new master of some slots is a loss of these, unless the fault has said what it is.
func TestWatch(t *testing.T) {
	one, two, three := &testredis.Server{}, &testredis.Server{}, &testredis.Server{}
	before := owners{one: {{0, 1}}, two: {{2, 3}}}
	for _, c := range []struct {
		name     string
		then     owners
		err      error
		fault    bool
		expected bool
		lost     map[int]bool
	}{
		{"the same", before, nil, true, false, nil},
		{"nobody says", nil, errors.New("down"), true, false, nil},
		{"another", owners{three: {{0, 1}}, two: {{2, 3}}}, nil, true, false, map[int]bool{1: true}},
		{"another by itself", owners{three: {{0, 1}}, two: {{2, 3}}}, nil, false, false, map[int]bool{1: true}},
		{"another of one slot", owners{one: {{0, 1}}, two: {{3, 3}}, three: {{2, 2}}}, nil, true, false, map[int]bool{2: true}},
		{"another of a slot that nobody probes", owners{one: {{0, 1}}, two: {{2, 2}}, three: {{3, 3}}}, nil, true, false, map[int]bool{3: true}},
		{"another, as expected", owners{three: {{0, 1}}, two: {{2, 3}}}, nil, true, true, nil},
		{"nobody", owners{two: {{2, 3}}}, nil, true, false, nil},
	} {
		clock := 10 * time.Second
		rules := plan.Rules{}
		line := check.New(rules, time.Second, nil).Timeline
		s := &parts{now: before}
		w := &watch{store: s, timeline: line, now: func() time.Duration { clock += time.Millisecond; return clock }}
		w.look()
		if c.fault {
			w.begin(c.expected)
		}
		s.now, s.err = c.then, c.err
		w.look()
		for slot := 1; slot <= 3; slot++ {
			if got := line.Lost(check.Span{From: clock, To: clock}, slot); got != c.lost[slot] {
				t.Errorf("%s: slot %d is lost: %v", c.name, slot, got)
			}
		}
		w.end()
		if c.lost[1] && !line.Lost(check.Span{From: clock, To: clock}, 1) {
			t.Errorf("%s: the loss ends before the leases of the former master do", c.name)
		}
		if clock += plan.Lease + time.Millisecond; line.Lost(check.Span{From: clock, To: clock}, 1) {
			t.Errorf("%s: the loss does not end", c.name)
		}
		if clock = time.Minute; line.Lost(check.Span{From: clock, To: clock}, 1) {
			t.Errorf("%s: the end of the fault is a loss", c.name)
		}
	}
}

// How long threads wait for a core, and how long cores were taken away, is known on Linux.
func TestStarved(t *testing.T) {
	for what, measure := range map[string]func() map[string]time.Duration{
		"this process": func() map[string]time.Duration { return waits(os.Getpid()) }, "the cores": stolen,
	} {
		if found := measure(); runtime.GOOS == "linux" && len(found) == 0 {
			t.Errorf("nothing is known of %s", what)
		}
		s := starved{before: map[string]time.Duration{}}
		for name, waited := range measure() {
			s.before[name] = waited - time.Hour
		}
		if got := s.since(measure()); runtime.GOOS == "linux" && got < time.Hour {
			t.Errorf("%s waited for %v", what, got)
		}
		if s.forget(); runtime.GOOS == "linux" && len(s.before) == 0 {
			t.Errorf("what lives of %s is forgotten", what)
		}
	}
}

func TestReport(t *testing.T) {
	r := Report{Scenes: []Scene{{
		Topology: plan.Single, Took: time.Minute, Faults: map[plan.Kind]int{plan.Kill: 3, plan.Cut: 4},
		Samples: []check.Sample{{Goroutines: 10, Resident: 50 << 20}, {Instance: 1, Goroutines: 99}, {Goroutines: 12, Resident: 60 << 20}},
		Tally:   check.Tally{Requests: 100, Allowed: 50, Denied: 40, Degraded: 8, Unanswered: 2, Longest: 60 * time.Millisecond},
		Violations: []check.Violation{{Promise: check.Bound, What: "too much", Rule: "login", Key: "user:u1",
			Span: check.Span{From: time.Second, To: 2 * time.Second}, Faults: []check.Fault{{Span: check.Span{From: 0, To: check.Open}, What: "a kill"}}}},
		More: 6, History: "elsewhere/42.jsonl",
	}}}
	var text strings.Builder
	r.Write(&text, 42)
	for _, want := range []string{"redis", "100", "60ms", "10 → 12", "50 → 60", "kill", "seed 42", "never above the bound", "too much", "login user:u1", "from 1s to 2s", "0s to the end: a kill", "7 violations", "elsewhere/42.jsonl"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &text)
		}
	}
	if r.Broken() != 7 {
		t.Errorf("%d are broken", r.Broken())
	}
}

func TestProgress(t *testing.T) {
	s := &scene{topology: plan.Cluster, checker: check.New(nil, 0, nil), faults: map[plan.Kind]int{plan.Kill: 2}}
	var text strings.Builder
	p := &progress{Options: Options{Progress: &text, Duration: time.Minute}, begun: time.Now()}
	p.tell(s, "pause")
	p.tell(s, "pause")
	if lines := strings.Count(text.String(), "\n"); lines != 1 || !strings.Contains(text.String(), "cluster") || !strings.Contains(text.String(), "2 faults") {
		t.Errorf("%d lines: %q", lines, text.String())
	}
}
