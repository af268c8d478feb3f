package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Percentiles are percentiles of durations. Each is never less than the true value, and
// at most an eighth more.
type Percentiles struct {
	Count         int64
	Mean          time.Duration // exact
	P50, P90, P99 time.Duration
}

func percentilesOf(h *archive.Histogram) Percentiles {
	return Percentiles{Count: h.Count, Mean: h.Mean(), P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99)}
}

// Upstream is the result of requests that were forwarded to an upstream.
type Upstream struct {
	Route    string // "" for all routes together
	Requests int64
	Errors   int64
	Latency  Percentiles
}

// ErrorRate returns the share of errors, 0 to 1.
func (u Upstream) ErrorRate() float64 {
	if u.Requests == 0 {
		return 0
	}
	return float64(u.Errors) / float64(u.Requests)
}

func upstreamOf(name string, r *archive.Route) Upstream {
	return Upstream{Route: name, Requests: r.Requests, Errors: r.Errors, Latency: percentilesOf(&r.Latency)}
}

// upstreams are all routes together, and each.
func upstreams(f *archive.Frame) (all Upstream, each []Upstream) {
	var sum archive.Frame
	for _, name := range slices.Sorted(maps.Keys(f.Routes)) {
		r := f.Routes[name]
		each = append(each, upstreamOf(name, r))
		sum.Merge(&archive.Frame{Routes: map[string]*archive.Route{"": r}})
	}
	if len(each) > 0 {
		all = upstreamOf("", sum.Routes[""])
	}
	return all, each
}

// Point is the traffic in one interval.
type Point struct {
	Time     time.Time // start of the interval
	Requests archive.Counts
	QPS      float64
	Decision Percentiles
	Upstream Upstream
	InFlight *InFlight // in the series of a rule, as in RuleSummary
}

func pointOf(at time.Time, step time.Duration, f *archive.Frame) Point {
	p := Point{Time: at, Requests: f.Requests, Decision: percentilesOf(&f.Decision)}
	p.QPS = float64(f.Requests.Total()) / step.Seconds()
	p.Upstream, _ = upstreams(f)
	return p
}

// RuleSummary is the traffic of one rule.
type RuleSummary struct {
	Rule     string
	Counts   archive.Counts // of all tiers together
	QPS      float64
	Tiers    []TierSummary
	Decision Percentiles // of the requests to which the rule applied
	InFlight *InFlight   // nil if the rule does not limit how many requests are in flight
}

// InFlight is how many requests of a rule were in flight, and for how long. Requests of whose
// end this process does not know, because they were only checked, are not in Mean and Held.
type InFlight struct {
	Mean    float64 // on average, of all clients together
	Highest int64   // of one client, at the same time
	Held    Percentiles
}

func inFlightOf(f *archive.InFlight, length time.Duration) *InFlight {
	if f == nil {
		return nil
	}
	return &InFlight{f.Mean(length), f.Highest, Percentiles{f.Ended(), f.MeanHeld(), f.Held(0.5), f.Held(0.9), f.Held(0.99)}}
}

// TierSummary is the traffic of one rule and tier: "" for requests without a tier,
// archive.Other for tiers that the rule does not name.
type TierSummary struct {
	Tier   string
	Counts archive.Counts
}

// rulesOf lists the rules of a frame, the busiest first.
func rulesOf(f *archive.Frame, took time.Duration) []RuleSummary {
	byID := map[string]*RuleSummary{}
	of := func(id string) *RuleSummary {
		if byID[id] == nil {
			byID[id] = &RuleSummary{Rule: id}
		}
		return byID[id]
	}
	for id, in := range f.InFlight {
		of(id).InFlight = inFlightOf(in, took)
	}
	for line, counts := range f.Rules {
		s := of(line.Rule)
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

// PrioritySummary is the traffic of requests of one priority.
type PrioritySummary struct {
	Priority rule.Priority
	Counts   archive.Counts
}

// prioritiesOf lists the priorities of a frame, unless all requests were normal.
func prioritiesOf(f *archive.Frame) []PrioritySummary {
	p := &f.Priorities
	if *p == (archive.Priorities{}) {
		return nil
	}
	return []PrioritySummary{{rule.Critical, p.Critical}, {rule.High, p.High}, {rule.Normal, p.Normal(f.Requests)}, {rule.Low, p.Low}}
}
