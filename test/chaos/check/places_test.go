package check

import (
	"testing"
	"time"

	"github.com/weirhq/weir/test/chaos/plan"
)

// stay is a request that takes a place at an instant.
func stay(at time.Duration, change ...func(*Hold)) Hold {
	s := Hold{Reserve: Call{Span: Span{at, at + 5*ms}, Status: 200, Allowed: true}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func ends(at time.Duration) func(*Hold) {
	return func(s *Hold) { s.Ends = []Call{{Span: Span{at, at + 5*ms}, Status: 200, State: "settled"}} }
}

func extends(at time.Duration, state string) func(*Hold) {
	return func(s *Hold) {
		s.Extends = append(s.Extends, Call{Span: Span{at, at + 5*ms}, Status: 200, State: state})
	}
}

func TestCrowds(t *testing.T) {
	denied := func(s *Hold) { s.Reserve.Allowed = false }
	degraded := func(s *Hold) { s.Reserve.Degraded = true }
	taken := func(at time.Duration, n int64) []Reading {
		return []Reading{{Span: Span{at, at + 5*ms}, Charged: map[string]int64{"places": n}}}
	}
	for name, c := range map[string]struct {
		stays []Hold
		last  []Reading
		loses bool
		want  string
	}{
		"three":                 {stays: []Hold{stay(s), stay(s), stay(s)}, last: taken(20*s, 0)},
		"a fourth":              {stays: []Hold{stay(s), stay(s), stay(s), stay(2 * s)}, want: InFlight},
		"a fourth later":        {stays: []Hold{stay(s), stay(s), stay(s), stay(2900 * ms)}},
		"a fourth is denied":    {stays: []Hold{stay(s), stay(s), stay(s), stay(2*s, denied)}},
		"a fourth is degraded":  {stays: []Hold{stay(s), stay(s), stay(s), stay(2*s, degraded)}},
		"after an end":          {stays: []Hold{stay(s), stay(s), stay(s, ends(1500*ms)), stay(2 * s)}},
		"before an end":         {stays: []Hold{stay(s), stay(s), stay(s, ends(2500*ms)), stay(2 * s)}, want: InFlight},
		"extended":              {stays: []Hold{stay(s), stay(2 * s), stay(2 * s), stay(s, extends(2500*ms, "open")), stay(3200 * ms)}, want: InFlight},
		"not extended":          {stays: []Hold{stay(s), stay(2 * s), stay(2 * s), stay(3200*ms, extends(3300*ms, ""))}},
		"the store was lost":    {stays: []Hold{stay(s), stay(s), stay(s), stay(2 * s)}, loses: true},
		"a place is never free": {stays: []Hold{stay(s), stay(s, ends(2*s))}, last: taken(20*s, 1), want: Freed},
		"it may be free later":  {stays: []Hold{stay(s, extends(2*s, ""))}, last: taken(8*s, 1)},
		"all are free":          {stays: []Hold{stay(s)}, last: taken(20*s, 0)},
	} {
		checker := New(plan.PlaceRules(), 50*ms, func(string) int { return 1 })
		if c.loses {
			checker.Timeline.Lose(Loss{Span: Span{1500 * ms, 1600 * ms}, Lives: 1, Has: func(int) bool { return true }})
		}
		checker.NoteGroup(&Crowd{Account{Path: "/places", User: "u", Holds: c.stays, Readings: c.last}})
		checker.Judge(Open)
		tally, violations, _ := checker.Result()
		got := ""
		if len(violations) > 0 {
			got = violations[0].Promise
		}
		if got != c.want || tally.Places == 0 {
			t.Errorf("%s: %q, want %q; %d places, %+v", name, got, c.want, tally.Places, violations)
		}
	}
}
