package stats

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
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

// inMicros are percentiles in JSON: microseconds, with nanoseconds behind the point.
type inMicros struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Mean float64 `json:"mean"`
}

// MarshalJSON implements [json.Marshaler]. Durations are in microseconds; Count is left out.
func (p Percentiles) MarshalJSON() ([]byte, error) {
	return json.Marshal(inMicros{Micros(p.P50), Micros(p.P90), Micros(p.P99), Micros(p.Mean)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Percentiles) UnmarshalJSON(text []byte) error {
	var in inMicros
	err := json.Unmarshal(text, &in)
	length := func(micros float64) time.Duration { return time.Duration(math.Round(micros * 1000)) }
	*p = Percentiles{P50: length(in.P50), P90: length(in.P90), P99: length(in.P99), Mean: length(in.Mean)}
	return err
}

// Micros returns a duration as answers in JSON have it: in microseconds.
func Micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// Traffic is how many requests, or decisions of a rule, ended in which way.
type Traffic struct {
	Requests int64   `json:"requests"` // all of them
	Rate     float64 `json:"rate"`     // per second
	archive.Counts
}

func trafficOf(counts archive.Counts, length time.Duration) Traffic {
	return Traffic{counts.Total(), float64(counts.Total()) / length.Seconds(), counts}
}

// Upstream is the result of requests that were forwarded to an upstream.
type Upstream struct {
	Route      string      `json:"route,omitempty"` // "" for all routes together
	Requests   int64       `json:"requests"`
	Errors     int64       `json:"errors"`
	ErrorShare float64     `json:"error_share"` // 0 to 1
	Latency    Percentiles `json:"latency_us"`
}

func upstreamOf(name string, r *archive.Route) Upstream {
	share := float64(r.Errors) / float64(max(r.Requests, 1))
	return Upstream{Route: name, Requests: r.Requests, Errors: r.Errors, ErrorShare: share, Latency: percentilesOf(&r.Latency)}
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
	Time time.Time // start of the interval
	Traffic
	Decision Percentiles
	Upstream Upstream
	InFlight *InFlight      // in the series of a rule, as in RuleSummary
	Levels   []LevelSummary // likewise
}

func pointOf(at time.Time, step time.Duration, f *archive.Frame) Point {
	p := Point{Time: at, Traffic: trafficOf(f.Requests, step), Decision: percentilesOf(&f.Decision)}
	p.Upstream, _ = upstreams(f)
	return p
}

// RuleSummary is the traffic of one rule.
type RuleSummary struct {
	Rule     string        `json:"rule"`
	Traffic                // of all tiers together
	Decision *Percentiles  `json:"latency_us,omitempty"` // of the requests to which the rule applied; nil for single seconds
	InFlight *InFlight     `json:"in_flight,omitempty"`  // nil if the rule limits no concurrency, or nothing was in flight
	Tiers    []TierSummary `json:"tiers,omitempty"`

	// Levels are those that have denied, or would have in a shadow or soft rule, those that did so most often first. A request
	// that several levels deny counts at each.
	Levels []LevelSummary `json:"levels,omitempty"`
}

// LevelSummary is how often a level of a rule has denied.
type LevelSummary struct {
	Level  string `json:"level"`
	Denied int64  `json:"denied"`
}

// levelsOf lists the levels of rules.
func levelsOf(f *archive.Frame) map[string][]LevelSummary {
	byID := map[string][]LevelSummary{}
	for l, denied := range f.Levels {
		byID[l.Rule] = append(byID[l.Rule], LevelSummary{l.Level, *denied})
	}
	for _, all := range byID {
		slices.SortFunc(all, func(a, b LevelSummary) int {
			return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Level, b.Level))
		})
	}
	return byID
}

// InFlight is how many requests of a rule were in flight, and for how long. Requests of whose
// end this process does not know, because they were only checked, are not in Mean and Held.
type InFlight struct {
	Mean    float64     `json:"mean"`             // on average, of all clients together
	Highest int64       `json:"highest"`          // of one client, at the same time
	Held    Percentiles `json:"held_us,omitzero"` // of those that ended
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
	Tier     string `json:"tier"`
	Requests int64  `json:"requests"`
	archive.Counts
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
	for id, levels := range levelsOf(f) {
		of(id).Levels = levels
	}
	for line, counts := range f.Rules {
		s := of(line.Rule)
		s.Counts.Add(*counts)
		s.Tiers = append(s.Tiers, TierSummary{line.Tier, counts.Total(), *counts})
	}
	all := make([]RuleSummary, 0, len(byID))
	for _, s := range byID {
		s.Traffic, s.Decision = trafficOf(s.Counts, took), &Percentiles{}
		slices.SortFunc(s.Tiers, func(a, b TierSummary) int { return cmp.Compare(a.Tier, b.Tier) })
		if d := f.Details[s.Rule]; d != nil {
			*s.Decision = percentilesOf(&d.Decision)
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b RuleSummary) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Rule, b.Rule))
	})
	return all
}

// PrioritySummary is the traffic of requests of one priority.
type PrioritySummary struct {
	Priority string `json:"priority"`
	Requests int64  `json:"requests"`
	archive.Counts
}

// prioritiesOf lists the priorities of a frame, unless all requests were normal.
func prioritiesOf(f *archive.Frame) []PrioritySummary {
	p := &f.Priorities
	if *p == (archive.Priorities{}) {
		return nil
	}
	of := func(p rule.Priority, c archive.Counts) PrioritySummary {
		return PrioritySummary{p.String(), c.Total(), c}
	}
	return []PrioritySummary{of(rule.Critical, p.Critical), of(rule.High, p.High), of(rule.Normal, p.Normal(f.Requests)), of(rule.Low, p.Low)}
}
