package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/stats/frame"
)

// Percentiles are of lengths of time. Each is never less than the true one, and at most
// an eighth more.
type Percentiles struct {
	Count         int64
	Mean          time.Duration // exactly
	P50, P90, P99 time.Duration
}

func percentilesOf(h *frame.Histogram) Percentiles {
	return Percentiles{Count: h.Count, Mean: h.Mean(), P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99)}
}

// Upstream is what became of requests that were passed on.
type Upstream struct {
	Route    string // "" is all of them
	Requests int64
	Errors   int64
	Latency  Percentiles
}

// ErrorRate is the share that ended badly, 0 to 1.
func (u Upstream) ErrorRate() float64 {
	if u.Requests == 0 {
		return 0
	}
	return float64(u.Errors) / float64(u.Requests)
}

func upstreamOf(name string, r *frame.Route) Upstream {
	return Upstream{Route: name, Requests: r.Requests, Errors: r.Errors, Latency: percentilesOf(&r.Latency)}
}

// upstreams are all routes together, and each.
func upstreams(f *frame.Frame) (all Upstream, each []Upstream) {
	var sum frame.Frame
	for _, name := range slices.Sorted(maps.Keys(f.Routes)) {
		r := f.Routes[name]
		each = append(each, upstreamOf(name, r))
		sum.Merge(&frame.Frame{Routes: map[string]*frame.Route{"": r}})
	}
	if len(each) > 0 {
		all = upstreamOf("", sum.Routes[""])
	}
	return all, each
}

// Point is what happened in a stretch of time.
type Point struct {
	Time     time.Time // when it began
	Requests frame.Counts
	QPS      float64
	Decision Percentiles
	Upstream Upstream
}

func pointOf(at time.Time, step time.Duration, f *frame.Frame) Point {
	p := Point{Time: at, Requests: f.Requests, Decision: percentilesOf(&f.Decision)}
	p.QPS = float64(f.Requests.Total()) / step.Seconds()
	p.Upstream, _ = upstreams(f)
	return p
}

// RuleSummary is what a rule said.
type RuleSummary struct {
	Rule     string
	Counts   frame.Counts // of all tiers
	QPS      float64
	Tiers    []TierSummary
	Decision Percentiles // of the requests to which it applied
}

// TierSummary is what a rule said to the requests of a tier: "" for those without one,
// frame.Other for tiers that the rule does not name.
type TierSummary struct {
	Tier   string
	Counts frame.Counts
}

// rulesOf lists the rules of a frame, the busiest first.
func rulesOf(f *frame.Frame, took time.Duration) []RuleSummary {
	byID := map[string]*RuleSummary{}
	for line, counts := range f.Rules {
		s := byID[line.Rule]
		if s == nil {
			s = &RuleSummary{Rule: line.Rule}
			byID[line.Rule] = s
		}
		s.Counts.Add(*counts)
		s.Tiers = append(s.Tiers, TierSummary{line.Tier, *counts})
	}
	all := make([]RuleSummary, 0, len(byID))
	for _, s := range byID {
		s.QPS = float64(s.Counts.Total()) / took.Seconds()
		slices.SortFunc(s.Tiers, func(a, b TierSummary) int { return cmp.Compare(a.Tier, b.Tier) })
		if d := f.Details[s.Rule]; d != nil {
			s.Decision = percentilesOf(&d.Decision)
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b RuleSummary) int {
		return cmp.Or(cmp.Compare(b.Counts.Total(), a.Counts.Total()), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}
