package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirhq/weir/internal/server/httpapi"
)

// priorities are the requests of each priority, and how many of them were denied, unless all
// requests have the same.
func (v *view) priorities() (all []line) {
	const most = 4
	for _, p := range v.minute.Priorities[:min(len(v.minute.Priorities), most)] {
		now := "-"
		if v.follows {
			now = perSecond(0)
			for _, s := range v.second.Priorities {
				if s.Priority == p.Priority {
					now = perSecond(float64(s.Requests))
				}
			}
		}
		c := plain
		if p.Denied > 0 {
			c = red
		}
		l := text(plain, "%s%12s%14s", cell(p.Priority, 12), now, perSecond(float64(p.Requests)/float64(max(1, v.minute.Window))))
		l.add(c, "   denied %s", percent(p.DeniedShare()))
		all = append(all, l)
	}
	return all
}

// protect is what a process that protects itself uses, and what it has shed since the start.
func (v *view) protect() []line {
	p := v.latest().Protect
	if p == nil {
		return nil
	}
	l := text(plain, "%-12s", "protect")
	for _, r := range []struct {
		name        string
		used, limit float64
	}{{"cpu", p.CPU, p.CPULimit}, {"memory", p.Memory, p.MemoryLimit}} {
		if r.limit > 0 {
			c := plain
			if r.used >= r.limit {
				c = red
			}
			l.add(c, "%s %s of %s   ", r.name, percent(r.used), percent(r.limit))
		}
	}
	shed := ""
	for _, priority := range []string{"low", "normal", "high"} { // critical requests are never shed
		if n := p.Shed[priority]; n > 0 {
			shed += " " + priority + " " + grouped(int64(min(n, math.MaxInt64)))
		}
	}
	l.add(plain, "shed%s", cmp.Or(shed, " 0"))
	return []line{l}
}

// adaptive are the adaptive limits of upstreams, those first that are nearest to theirs.
func (v *view) adaptive() (all []line) {
	limits := slices.Clone(v.latest().Adaptive)
	free := func(a httpapi.StatsAdaptive) int { return a.Limit - a.InFlight }
	slices.SortStableFunc(limits, func(a, b httpapi.StatsAdaptive) int { return cmp.Compare(free(a), free(b)) })
	const most = 3
	for _, a := range limits[:min(len(limits), most)] {
		c := plain
		if a.InFlight >= a.Limit {
			c = red
		}
		l := text(plain, "%-12s", "adaptive")
		l.add(c, "%12s", grouped(int64(a.InFlight))+" of "+grouped(int64(a.Limit)))
		l.add(plain, "   denied %s", grouped(int64(min(a.Denied, math.MaxInt64))))
		l.add(faint, "   %s", printable(a.Upstream))
		all = append(all, l)
	}
	return all
}

// inFlight are the rules with the most requests in flight, the first of them.
func (v *view) inFlight() (all []line) {
	now := map[string]float64{}
	for _, r := range v.second.Rules {
		if r.InFlight != nil {
			now[r.Rule] = r.InFlight.Mean
		}
	}
	var rules []httpapi.StatsRule
	for _, r := range v.minute.Rules {
		if r.InFlight != nil {
			rules = append(rules, r)
		}
	}
	slices.SortStableFunc(rules, func(a, b httpapi.StatsRule) int { return cmp.Compare(b.InFlight.Mean, a.InFlight.Mean) })
	const most = 3
	for _, r := range rules[:min(len(rules), most)] {
		mean := r.InFlight.Mean
		if v.follows {
			mean = now[r.Rule]
		}
		l := text(plain, "%-12s%12s", "in flight", decimal(mean))
		l.add(plain, "   most %s", grouped(r.InFlight.Highest))
		if held := r.InFlight.Held; held != nil {
			l.add(plain, "   p50 %s   p99 %s", micros(held.P50), micros(held.P99))
		}
		l.add(faint, "   %s", printable(r.Rule))
		all = append(all, l)
	}
	return all
}
