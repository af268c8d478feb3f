package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// Every request meets its own rule and the two that are everybody's, by the slow
// way of asking, too.
func TestShapesAreWhatTheySay(t *testing.T) {
	const n = 60
	for _, s := range allShapes() {
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
					t.Errorf("%s: request %d meets rule %d: %t", s.name, i, j, e.Matches)
				}
			}
		}
		if len(different) != n-common {
			t.Errorf("%s: %d different requests of %d", s.name, len(different), n-common)
		}
	}
}

func TestRoundNoticesWrongAnswers(t *testing.T) {
	shape := allShapes()[0]
	table, _, err := shape.compile(20)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := bench.Load{Callers: 1, Count: 1000}.Run(shape.asks(table, true))
		return err
	}
	if err := ask(); err != nil {
		t.Errorf("all as wanted: %v", err)
	}
	own := shape.ask
	shape.ask = func(i int) (*letter, int) { return own(i ^ 1) }
	if ask() == nil {
		t.Error("requests that meet another's rule pass")
	}
	shape.ask = func(i int) (*letter, int) { return own(i + i/17*100) }
	if ask() == nil {
		t.Error("a request that meets no rule of its own passes")
	}
}

func TestRun(t *testing.T) {
	r := bench.Test(t)
	run(r, options{rules: []int{10, 40}, rounds: 1, round: time.Millisecond})
	for _, s := range allShapes() {
		if !strings.Contains(r.File("rules.txt").String(), "| "+s.name+" ") {
			t.Errorf("%s is not in the table", s.name)
		}
	}
}

func TestAimsTakeTheWorst(t *testing.T) {
	got := newAims([]int{10, 1000})
	worsen(got, "good", []figure{{ns: 100}, {ns: 150}})
	for _, a := range got {
		if a.Verdict() != "met" {
			t.Errorf("%+v is missed", a)
		}
	}
	worsen(got, "bad", []figure{{ns: 600}, {ns: 1200, allocs: 1}})
	worsen(got, "good again", []figure{{ns: 100}, {ns: 140}})
	for _, a := range got {
		if s := a.Where + " " + a.Verdict(); s != "bad missed" {
			t.Errorf("%s: %s", a.What, s)
		}
	}
	if got[0].Measured != 1.2 || got[1].Measured != 2 {
		t.Errorf("%+v", got)
	}
}
