// Package frame is what happened in a stretch of time, in a form that can be added up:
// frames of two instances, or of sixty seconds, merge into one that says the same as
// if it had seen everything itself.
//
// Counts add up exactly. Histograms have the same slots everywhere, so that a
// percentile of merged frames is that of all requests together, never an average of
// percentiles. Rankings of keys carry the error of their counts along.
//
// A frame has bounds on everything that it names, and is written in a few bytes a rule.
package frame

import (
	"cmp"
	"maps"
	"slices"
)

// Counts are how many requests, or decisions of a rule, ended in which way. Each ended
// in exactly one.
type Counts struct {
	Allowed         int64 `json:"allowed"`
	Denied          int64 `json:"denied"`
	ShadowDenied    int64 `json:"shadow_denied"`    // it passed, and a shadow rule would have denied it
	DegradedAllowed int64 `json:"degraded_allowed"` // it passed without the store, which was unavailable
	DegradedDenied  int64 `json:"degraded_denied"`  // it was denied because the store was unavailable
	Blocked         int64 `json:"blocked"`
}

// Total is all of them.
func (c Counts) Total() int64 {
	return c.Allowed + c.Denied + c.ShadowDenied + c.DegradedAllowed + c.DegradedDenied + c.Blocked
}

// Add adds others.
func (c *Counts) Add(other Counts) {
	c.Allowed += other.Allowed
	c.Denied += other.Denied
	c.ShadowDenied += other.ShadowDenied
	c.DegradedAllowed += other.DegradedAllowed
	c.DegradedDenied += other.DegradedDenied
	c.Blocked += other.Blocked
}

// DeniedShare is the share that limits have denied, 0 to 1.
func (c Counts) DeniedShare() float64 { return share(c.Denied, c.Total()) }

// DegradedShare is the share that was judged without the store.
func (c Counts) DegradedShare() float64 { return share(c.DegradedAllowed+c.DegradedDenied, c.Total()) }

// Shadowed is the share that shadow rules would have denied.
func (c Counts) Shadowed() float64 { return share(c.ShadowDenied, c.Total()) }

func share(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// Other is the name of what is beyond a bound: rules, routes, and tiers that a rule
// does not name. No id of a rule has parentheses.
const Other = "(other)"

// Frame is what happened in a stretch of time. Maps may be nil.
type Frame struct {
	Requests Counts
	Decision Histogram // how long it took to judge them

	Rules  map[Line]*Counts
	Routes map[string]*Route

	Clients Clients // who was judged

	Details map[string]*Detail  // by rule
	Top     map[string]*Ranking // by rule; "" is all of them together
}

// Line is the requests of one tier under a rule. The tier is "" for those without one,
// and Other for tiers that the rule does not name.
type Line struct{ Rule, Tier string }

// Route is what became of requests that were passed on.
type Route struct {
	Requests int64
	Errors   int64 // no answer, or a status of 500 and above
	Latency  Histogram
}

// Detail is what is known of a rule besides.
type Detail struct {
	Decision Histogram
	Usage    map[Quota]*Usage
}

// Quota is one limit of a rule: that of a tier for a period, in microseconds.
type Quota struct {
	Tier   string
	Period int64
}

// Usage is how much of their limit clients had used, counting each allowed request
// with what was in use after it.
type Usage struct {
	Used   Histogram // in units
	Denied int64     // requests that found no room
}

// Ranking is who came most often.
type Ranking struct{ Allowed, Denied Sketch }

// Merge adds what happened in another frame, which is not changed and shares nothing
// with this one afterwards.
func (f *Frame) Merge(other *Frame) {
	f.Requests.Add(other.Requests)
	f.Decision.Merge(&other.Decision)
	for line, counts := range other.Rules {
		f.Rule(line).Add(*counts)
	}
	for name, r := range other.Routes {
		f.Route(name).merge(r)
	}
	f.Clients.Merge(&other.Clients)
	for id, d := range other.Details {
		f.Detail(id).merge(d)
	}
	for id, r := range other.Top {
		mine := f.Ranking(id)
		mine.Allowed.Merge(&r.Allowed)
		mine.Denied.Merge(&r.Denied)
	}
}

// Rule returns the counts of a line, to be added to.
func (f *Frame) Rule(l Line) *Counts { return entry(&f.Rules, l) }

// Route returns a route, to be added to.
func (f *Frame) Route(name string) *Route { return entry(&f.Routes, name) }

// Detail returns what is known of a rule, to be added to.
func (f *Frame) Detail(id string) *Detail { return entry(&f.Details, id) }

// Ranking returns that of a rule, to be added to.
func (f *Frame) Ranking(id string) *Ranking { return entry(&f.Top, id) }

// Quota returns the usage of a limit, to be added to.
func (d *Detail) Quota(q Quota) *Usage { return entry(&d.Usage, q) }

func entry[K comparable, V any](m *map[K]*V, key K) *V {
	if v := (*m)[key]; v != nil {
		return v
	}
	if *m == nil {
		*m = make(map[K]*V)
	}
	v := new(V)
	(*m)[key] = v
	return v
}

func (r *Route) merge(other *Route) {
	r.Requests += other.Requests
	r.Errors += other.Errors
	r.Latency.Merge(&other.Latency)
}

func (d *Detail) merge(other *Detail) {
	d.Decision.Merge(&other.Decision)
	for q, u := range other.Usage {
		mine := d.Quota(q)
		mine.Used.Merge(&u.Used)
		mine.Denied += u.Denied
	}
}

// Empty reports whether nothing happened.
func (f *Frame) Empty() bool {
	return f.Requests == Counts{} && f.Decision.Count == 0 && f.Clients == Clients{} &&
		len(f.Rules) == 0 && len(f.Routes) == 0 && len(f.Details) == 0 && len(f.Top) == 0
}

// Weight is a number that grows with whatever is added to a frame.
func (f *Frame) Weight() int64 {
	n := f.Requests.Total()
	for _, r := range f.Routes {
		n += r.Requests
	}
	for _, d := range f.Details {
		n += d.Decision.Count
	}
	if all := f.Top[""]; all != nil {
		n += all.Allowed.Total + all.Denied.Total
	}
	return n
}

// Bounds on what one frame names. Rules come and go, and a day sees them all.
const (
	MaxLines     = 2000 // of Rules
	MaxRoutes    = 200
	MaxDetails   = 1000
	MaxQuotas    = 64 // of one rule
	MaxRankings  = 64 // besides that over all
	MaxRanked    = 32 // keys in each half of a ranking of a rule
	MaxRankedAll = 256
)

// Trim brings a frame within its bounds. What is too much is counted as Other, the
// smallest first, so that no sum changes; of rankings and details it is forgotten, and
// a ranking says by how much it may be wrong.
func (f *Frame) Trim() {
	fold(f.Rules, MaxLines, func(c *Counts) int64 { return c.Total() }, func(_ Line, c *Counts) {
		f.Rule(Line{Rule: Other}).Add(*c)
	})
	fold(f.Routes, MaxRoutes, func(r *Route) int64 { return r.Requests }, func(_ string, r *Route) {
		f.Route(Other).merge(r)
	})
	fold(f.Details, MaxDetails, func(d *Detail) int64 { return d.Decision.Count }, func(string, *Detail) {})
	for _, d := range f.Details {
		fold(d.Usage, MaxQuotas, func(u *Usage) int64 { return u.Used.Count + u.Denied }, func(Quota, *Usage) {})
	}
	if all := f.Top[""]; all != nil {
		all.trim(MaxRankedAll)
		delete(f.Top, "") // which is not one of those that may be too many
		defer func() { f.Top[""] = all }()
	}
	fold(f.Top, MaxRankings, func(r *Ranking) int64 { return r.Allowed.Total + r.Denied.Total }, func(string, *Ranking) {})
	for _, r := range f.Top {
		r.trim(MaxRanked)
	}
}

func (r *Ranking) trim(n int) {
	r.Allowed.Trim(n)
	r.Denied.Trim(n)
}

// fold takes the smallest out until one less than the bound is left, so that there is
// room for what they are put into.
func fold[K comparable, V any](m map[K]*V, most int, size func(*V) int64, out func(K, *V)) {
	if len(m) <= most {
		return
	}
	keys := slices.Collect(maps.Keys(m))
	slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(size(m[a]), size(m[b])) })
	for _, k := range keys[:len(m)-most+1] {
		v := m[k]
		delete(m, k)
		out(k, v)
	}
}
