package replay

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/replay/accesslog"
	"github.com/weirhq/weir/rule"
)

// tally is what happened so far.
type tally struct {
	lines, badLines int64
	bad             []BadLine

	requests, refused       int64
	exempt, blocked, free   int64 // free: no rule applied
	late                    int64
	held                    int64
	longestHold             time.Duration
	first, last             int64
	whole                   bool // no time had a fraction of a second
	addresses, users, hosts int64

	series *series
	rules  []ruleTally
	index  map[*rule.Entry]int
	demand map[*weir.Compiled]*demand
	top    *top
}

// ruleTally is what happened to one rule.
type ruleTally struct {
	rule    *rule.Entry
	applied int64
	refused int64
	demands []*demand
}

// maxArrivals bounds what is remembered for suggestions, over all rules: 16 bytes
// each, and the client's name besides.
const maxArrivals = 1 << 23

func newTally(o *Options) *tally {
	t := &tally{
		whole: true, series: newSeries(), top: newTop(maxRefused),
		index: make(map[*rule.Entry]int), demand: make(map[*weir.Compiled]*demand),
	}
	limits := 0
	for _, c := range o.Table.Rules() {
		limits += len(c.Limits("", ""))
	}
	room := min(1<<21, maxArrivals/max(1, limits))
	for i, c := range o.Table.Rules() {
		t.index[c] = i
		rt := ruleTally{rule: c}
		for _, limit := range c.Limits("", "") {
			d := newDemand(limit, max(1, c.Cost), room)
			t.demand[limit] = d
			rt.demands = append(rt.demands, d)
		}
		t.rules = append(t.rules, rt)
	}
	return t
}

// add counts one verdict.
func (t *tally) add(now int64, e *accesslog.Entry, v *engine.Verdict) {
	if t.requests == 0 {
		t.first = now
	}
	t.requests++
	t.last = now
	t.whole = t.whole && e.Whole
	t.knows(e)
	switch {
	case v.Reason == engine.Exempt:
		t.exempt++
	case v.Reason == engine.Blocked:
		t.blocked++
	case len(v.Results) == 0:
		t.free++
	}
	if v.Delay > 0 {
		t.held++
		t.longestHold = max(t.longestHold, v.Delay)
	}
	if !v.Allowed {
		t.refused++
	}
	t.series.add(now, !v.Allowed)
	t.addRules(now, v.Results)
}

// knows counts what requests are known by, to tell why a rule applies to none.
func (t *tally) knows(e *accesslog.Entry) {
	if e.IP.IsValid() {
		t.addresses++
	}
	if e.User != "" {
		t.users++
	}
	if e.Host != "" {
		t.hosts++
	}
}

// addRules counts what each rule says. The limits of one follow upon each other.
func (t *tally) addRules(now int64, results []engine.Result) {
	for len(results) > 0 {
		r := &results[0]
		n, refused := 0, false
		for n < len(results) && results[n].Rule == r.Rule {
			refused = refused || !results[n].Allowed
			if d := t.demand[results[n].Quota]; d != nil {
				d.add(results[n].Key, now)
			}
			n++
		}
		i := t.index[r.Rule]
		t.rules[i].applied++
		if refused {
			t.rules[i].refused++
			t.series.addRule(i)
			t.top.add(i, r.Key, now)
		}
		results = results[n:]
	}
}
