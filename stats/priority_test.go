package stats

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Each request counts under its priority, whoever gave it one: the request, a rule, or nobody.
func TestPriorities(t *testing.T) {
	d := newDesk(t, `
block: {user: mallory}
rules:
  - {id: all, key: user, limit: 10/1h, shares: {low: 50%, normal: 80%}}
  - {id: pay, key: user, match: {path: /pay}, limit: 1000/1h, priority: critical}`)
	d.check(t, alice, 2) // before anything else has a priority
	d.pass(1)
	s := testkit.Must(d.Summary(t.Context(), noon, noon.Add(time.Second)))(t)
	if s.Priorities != nil || s.Counts.Allowed != 2 {
		t.Fatalf("all requests are normal: %+v", s)
	}
	low, pay, blocked := alice, alice, alice
	low.Priority, pay.Path = rule.Low, "/pay"
	blocked.User, blocked.Priority = "mallory", rule.High
	d.check(t, low, 4)   // 2 + 3 of 10 are 50 %
	d.check(t, alice, 4) // 3 more are 80 %
	d.check(t, pay, 3)   // 2 more are all
	d.check(t, blocked, 1)
	d.pass(1)
	d.check(t, pay, 1)
	d.pass(1)

	want := []PrioritySummary{
		{"critical", 4, archive.Counts{Allowed: 2, Denied: 2}},
		{"high", 1, archive.Counts{Blocked: 1}},
		{"normal", 6, archive.Counts{Allowed: 5, Denied: 1}},
		{"low", 4, archive.Counts{Allowed: 3, Denied: 1}},
	}
	s = testkit.Must(d.Summary(t.Context(), noon, noon.Add(3*time.Second)))(t)
	if !reflect.DeepEqual(s.Priorities, want) {
		t.Errorf("%+v, want %+v", s.Priorities, want)
	}
	if got := s.Counts; got != (archive.Counts{Allowed: 10, Denied: 4, Blocked: 1}) {
		t.Errorf("%+v", got)
	}
	var last []PrioritySummary
	if err := d.Replay(t.Context(), noon.Add(2*time.Second), noon.Add(3*time.Second), func(l Live) { last = l.Summary().Priorities }); err != nil {
		t.Fatal(err)
	}
	if len(last) != 4 || last[0].Counts != (archive.Counts{Denied: 1}) || last[2].Counts != (archive.Counts{}) {
		t.Errorf("the last second: %+v", last)
	}
}
