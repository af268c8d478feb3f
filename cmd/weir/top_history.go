package main

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/stats/frame"
)

const (
	// span of the sparklines, in seconds.
	historySeconds = 60

	// maxListedRules bounds what is taken of an event. A server sends 200 and some; what
	// claims to be one could send anything.
	maxListedRules = 300
)

// second is what happened in one.
type second struct {
	at    int64 // Unix; 0 if nothing is known
	all   frame.Counts
	p99   float64
	rules map[string]frame.Counts
}

// history is the last minute, second by second.
type history struct {
	seconds [historySeconds]second
	newest  int64
}

// slot is where a second belongs, or nil if it is too old.
func (h *history) slot(at int64) *second {
	if at <= 0 || at <= h.newest-historySeconds {
		return nil
	}
	h.newest = max(h.newest, at)
	s := &h.seconds[at%historySeconds]
	if s.at != at {
		*s = second{at: at, rules: map[string]frame.Counts{}}
	}
	return s
}

// follow takes over an event.
func (h *history) follow(e *httpapi.SummaryAnswer) {
	s := h.slot(e.From)
	if s == nil {
		return
	}
	s.all, s.p99 = e.Counts, e.Latency.P99
	clear(s.rules)
	for _, r := range e.Rules[:min(len(e.Rules), maxListedRules)] {
		s.rules[r.Rule] = r.Counts
	}
}

// recall takes over what was before anybody followed: of all requests, or of a rule.
func (h *history) recall(a *httpapi.SeriesAnswer, rule string) {
	if a.Step != 1 {
		return
	}
	for _, p := range a.Points[max(0, len(a.Points)-historySeconds):] {
		s := h.slot(p.T)
		switch {
		case s == nil:
		case rule != "":
			s.rules[rule] = p.Counts
		default:
			s.all = p.Counts
			if p.StatsPointTimes != nil {
				s.p99 = p.P99
			}
		}
	}
}

// latest is the newest second, and whether there is one.
func (h *history) latest() (second, bool) {
	s := h.seconds[h.newest%historySeconds]
	return s, s.at == h.newest && s.at != 0
}

// each calls for every second of the last minute that is known, and tells its place.
func (h *history) each(do func(place int, s *second)) {
	for i := range historySeconds {
		at := h.newest - historySeconds + 1 + int64(i)
		if at <= 0 {
			continue
		}
		if s := &h.seconds[at%historySeconds]; s.at == at {
			do(i, s)
		}
	}
}

// values are a figure over the last minute, -1 where it is not known.
func (h *history) values(of func(*second) float64) []float64 {
	values := make([]float64, historySeconds)
	for i := range values {
		values[i] = -1
	}
	h.each(func(place int, s *second) { values[place] = of(s) })
	return values
}

// sum adds up what is known of the last minute, and tells how many seconds that is.
func (h *history) sum() (sum frame.Counts, known int) {
	h.each(func(_ int, s *second) {
		sum.Add(s.all)
		known++
	})
	return sum, known
}

// ruleShown is a rule with what it has said in the last minute.
type ruleShown struct {
	name   string
	counts frame.Counts
}

// rules are those of the last minute, the busiest first.
func (h *history) rules() []ruleShown {
	sums := map[string]frame.Counts{}
	h.each(func(_ int, s *second) {
		for name, counts := range s.rules {
			sum := sums[name]
			sum.Add(counts)
			sums[name] = sum
		}
	})
	var all []ruleShown
	for name, counts := range sums {
		if counts.Total() > 0 {
			all = append(all, ruleShown{name, counts})
		}
	}
	slices.SortFunc(all, func(a, b ruleShown) int {
		return cmp.Or(cmp.Compare(b.counts.Total(), a.counts.Total()), cmp.Compare(a.name, b.name))
	})
	return all
}
