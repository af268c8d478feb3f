package rules

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

// Every request meets its own rule and the two that are everybody's, by the slow
// way of asking, too.
func TestShapesAreWhatTheySay(t *testing.T) {
	const n = 60
	for _, s := range Shapes() {
		table, _, err := s.compile(n)
		if err != nil {
			t.Fatal(err)
		}
		different := map[string]bool{}
		for i := range n - common {
			req := rule.Request{Attributes: map[string]string{}}
			l, number := s.ask(i)
			l.arrive(&req, number)
			different[fmt.Sprint(req)] = true
			for j, e := range table.Explain(&req) {
				if want := j == i || j >= n-common; e.Matches != want {
					t.Errorf("%s: request %d meets rule %d: %t", s.Name, i, j, e.Matches)
				}
			}
		}
		if len(different) != n-common {
			t.Errorf("%s: %d different requests of %d", s.Name, len(different), n-common)
		}
	}
}

func TestRoundNoticesWrongAnswers(t *testing.T) {
	shape := Shapes()[0]
	table, _, err := shape.compile(20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newSubject(table, shape).round(1000); err != nil {
		t.Errorf("all as wanted: %v", err)
	}
	ask := shape.ask
	shape.ask = func(i int) (*letter, int) { return ask(i ^ 1) }
	if _, err := newSubject(table, shape).round(1000); err == nil {
		t.Error("requests that meet another's rule pass")
	}
	shape.ask = func(i int) (*letter, int) { return ask(i + i/17*100) }
	if _, err := newSubject(table, shape).round(1000); err == nil {
		t.Error("a request that meets no rule of its own passes")
	}
}

func TestRunAndReport(t *testing.T) {
	o := Options{Rules: []int{10, 40}, Rounds: 3, Round: time.Millisecond, Trial: 500}
	figures := Run(t, o, func(int, int, string) {})
	if want := 2 * len(Shapes()); len(figures) != want {
		t.Fatalf("%d figures, want %d", len(figures), want)
	}
	var out bytes.Buffer
	if err := WriteTable(&out, machine.Describe(), o, figures); err != nil {
		t.Fatal(err)
	}
	for _, s := range Shapes() {
		if !strings.Contains(out.String(), "| "+s.Name+" ") {
			t.Errorf("%s is not in the table", s.Name)
		}
	}
}

func TestAimsTakeTheWorst(t *testing.T) {
	good, bad := Shape{Name: "good"}, Shape{Name: "bad"}
	got := aims([]Figure{
		{Shape: good, Rules: 10, Median: 100}, {Shape: good, Rules: 1000, Median: 140},
		{Shape: bad, Rules: 10, Median: 600}, {Shape: bad, Rules: 1000, Median: 1200, Allocs: 1},
	})
	for i, want := range []string{"bad missed", "bad missed", "bad missed"} {
		if s := got[i].Where + " " + got[i].Verdict(); s != want {
			t.Errorf("%s: %s, want %s", got[i].What, s, want)
		}
	}
	if got[0].Measured != 1.2 || got[1].Measured != 2 {
		t.Errorf("%+v", got)
	}
	for _, a := range aims([]Figure{{Shape: good, Rules: 10, Median: 100}, {Shape: good, Rules: 1000, Median: 150}}) {
		if a.Verdict() != "met" {
			t.Errorf("%+v is missed", a)
		}
	}
}
