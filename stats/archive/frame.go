package archive

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/tally"
)

// Other is the name under which the rest is counted: rules and routes beyond a bound,
// and tiers that a rule does not name. Ids of rules contain no parentheses.
const Other = tally.Other

// Others begins the name of the ranking of clients that a rule denied under other keys than its
// own: a rule by address denies users, too. Ids of rules contain no parentheses.
const Others = "(others)"

// Frame holds the traffic of a time range. Maps may be nil.
type Frame struct {
	Requests Counts
	Decision Histogram // duration of the decisions

	Rules  map[Line]*Counts
	Routes map[string]*Route

	Clients Clients // number of different clients

	Details map[string]*Detail  // by rule
	Top     map[string]*Ranking // by rule; "" for all rules together

	// Sampling is above 1 if there were too many requests to rank the keys of all: at times, one
	// in so many was taken and counts for as many. Then Top has estimates.
	Sampling int64

	Denials []Denial // the latest ones, newest first; a sample

	Holds map[string]*Holds // by rule

	Warned Warned

	InFlight map[string]*InFlight // by rule

	Priorities Priorities

	Spend map[Spender]*Spent

	Levels map[RuleLevel]*int64 // how often each level of a rule has denied, or would have
}

// RuleLevel identifies a level of a rule with levels.
type RuleLevel struct{ Rule, Level string }

// Line identifies the requests of one tier under a rule. The tier is "" for requests
// without a tier, and Other for tiers that the rule does not name.
type Line struct{ Rule, Tier string }

// Route holds the results of requests that were forwarded to an upstream.
type Route struct {
	Requests int64
	Errors   int64 // no answer, or a status of 500 and above
	Latency  Histogram
}

// Detail holds further data of a rule.
type Detail struct {
	Decision Histogram
	Usage    map[Quota]*Usage
}

// Quota identifies one limit of a rule by its tier and its period in microseconds.
type Quota struct {
	Tier   string
	Period int64
}

// Usage holds how much of a limit clients used. Each allowed request counts with the
// usage after it.
type Usage struct {
	Used   Histogram // in units
	Denied int64     // requests that this limit denied
}

// Ranking holds the most frequent keys of allowed and of denied requests.
type Ranking struct{ Allowed, Denied Sketch }

// Merge adds the traffic of another frame. It does not change the other frame, and the
// two share no memory afterwards.
func (f *Frame) Merge(other *Frame) {
	f.Requests.Add(other.Requests)
	f.Decision.Merge(&other.Decision)
	merge(&f.Rules, other.Rules, func(mine, c *Counts) { mine.Add(*c) })
	merge(&f.Routes, other.Routes, (*Route).merge)
	f.Clients.Merge(&other.Clients)
	merge(&f.Details, other.Details, (*Detail).merge)
	merge(&f.Top, other.Top, (*Ranking).merge)
	f.Sampling = max(f.Sampling, other.Sampling)
	f.Denials = mergeDenials(f.Denials, other.Denials)
	merge(&f.Holds, other.Holds, (*Holds).Merge)
	f.Warned.Merge(&other.Warned)
	merge(&f.InFlight, other.InFlight, (*InFlight).Merge)
	f.Priorities.Merge(&other.Priorities)
	merge(&f.Spend, other.Spend, (*Spent).Add)
	merge(&f.Levels, other.Levels, func(mine, n *int64) { *mine = min(*mine+min(*n, maxExact), maxExact) })
}

// Rule returns the counts of a line, for adding to them.
func (f *Frame) Rule(l Line) *Counts { return entry(&f.Rules, l) }

// Route returns a route, for adding to it.
func (f *Frame) Route(name string) *Route { return entry(&f.Routes, name) }

// Detail returns the details of a rule, for adding to them.
func (f *Frame) Detail(id string) *Detail { return entry(&f.Details, id) }

// Ranking returns the ranking of a rule, for adding to it.
func (f *Frame) Ranking(id string) *Ranking { return entry(&f.Top, id) }

// Hold returns the holds of a rule, for adding to them.
func (f *Frame) Hold(id string) *Holds { return entry(&f.Holds, id) }

// Flight returns the requests in flight of a rule, for adding to them.
func (f *Frame) Flight(id string) *InFlight { return entry(&f.InFlight, id) }

// Level returns how often a level has denied, for adding to it.
func (f *Frame) Level(l RuleLevel) *int64 { return entry(&f.Levels, l) }

// Quota returns the usage of a limit, for adding to it.
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

// merge adds the entries of another map to those with the same key.
func merge[K comparable, V any](m *map[K]*V, other map[K]*V, add func(mine, theirs *V)) {
	for key, v := range other {
		add(entry(m, key), v)
	}
}

func (r *Route) merge(other *Route) {
	r.Requests += other.Requests
	r.Errors += other.Errors
	r.Latency.Merge(&other.Latency)
}

func (d *Detail) merge(other *Detail) {
	d.Decision.Merge(&other.Decision)
	merge(&d.Usage, other.Usage, func(mine, u *Usage) {
		mine.Used.Merge(&u.Used)
		mine.Denied += u.Denied
	})
}

func (r *Ranking) merge(other *Ranking) {
	r.Allowed.Merge(&other.Allowed)
	r.Denied.Merge(&other.Denied)
}

// Empty reports whether the frame contains no traffic.
func (f *Frame) Empty() bool {
	return f.Requests == Counts{} && f.Decision.Count == 0 && f.Clients == Clients{} &&
		len(f.Rules) == 0 && len(f.Routes) == 0 && len(f.Details) == 0 && len(f.Top) == 0 && len(f.Denials) == 0 && len(f.Holds) == 0 && f.Warned.N == 0 && len(f.InFlight) == 0 && f.Priorities == Priorities{} && len(f.Spend) == 0 && len(f.Levels) == 0
}

// Weight returns a number that grows with everything that is added to the frame.
func (f *Frame) Weight() int64 {
	n := f.Requests.Total() + f.Warned.N + f.Priorities.total()
	for _, r := range f.Routes {
		n += r.Requests
	}
	for _, d := range f.Details {
		n += d.Decision.Count
	}
	for _, h := range f.Holds {
		n += h.weight()
	}
	for _, in := range f.InFlight {
		n += in.weight()
	}
	for _, s := range f.Spend {
		n += s.weight()
	}
	for _, denied := range f.Levels {
		n += *denied
	}
	if all := f.Top[""]; all != nil {
		n += all.Allowed.Total + all.Denied.Total
	}
	return n
}

// Bounds on the names in one frame. The frame of a day contains all rules that were in
// force on that day.
const (
	MaxLines     = 2000 // of Rules
	MaxRoutes    = 200
	MaxDetails   = 1000
	MaxHolds     = 1000 // rules with holds
	MaxInFlight  = 1000 // rules with requests in flight
	MaxLevels    = 2000 // levels of all rules
	MaxQuotas    = 64   // of one rule
	MaxRankings  = 64   // of rules, and as many of Others; besides the ranking of all requests
	MaxRanked    = 32   // keys in each half of a ranking of a rule
	MaxRankedAll = 256
)

// Trim reduces a frame to its bounds, the smallest parts first. Excess rules and routes
// are counted as Other, so that no sum changes. Excess rankings and details are
// dropped, and the Floor of a ranking contains the possible error.
func (f *Frame) Trim() {
	fold(f.Rules, MaxLines, func(c *Counts) int64 { return c.Total() }, func(c *Counts) { f.Rule(Line{Rule: Other}).Add(*c) })
	fold(f.Routes, MaxRoutes, func(r *Route) int64 { return r.Requests }, func(r *Route) { f.Route(Other).merge(r) })
	fold(f.Holds, MaxHolds, (*Holds).weight, func(h *Holds) { f.Hold(Other).Merge(h) })
	fold(f.InFlight, MaxInFlight, (*InFlight).weight, func(in *InFlight) { f.Flight(Other).Merge(in) })
	fold(f.Levels, MaxLevels, func(n *int64) int64 { return *n }, func(n *int64) { *f.Level(RuleLevel{Other, Other}) += *n })
	fold(f.Details, MaxDetails, func(d *Detail) int64 { return d.Decision.Count }, nil)
	for _, d := range f.Details {
		fold(d.Usage, MaxQuotas, func(u *Usage) int64 { return u.Used.Count + u.Denied }, nil)
	}
	f.trimSpend()
	f.Denials = trimDenials(f.Denials)
	f.Warned.Trim()
	if all := f.Top[""]; all != nil {
		all.trim(MaxRankedAll)
		delete(f.Top, "") // it does not count towards MaxRankings
		defer func() { f.Top[""] = all }()
	}
	others := map[string]*Ranking{}
	maps.DeleteFunc(f.Top, func(name string, r *Ranking) bool {
		apart := strings.HasPrefix(name, Others)
		if apart {
			others[name] = r
		}
		return apart
	})
	for _, top := range []map[string]*Ranking{f.Top, others} {
		fold(top, MaxRankings, func(r *Ranking) int64 { return r.Allowed.Total + r.Denied.Total }, nil)
	}
	maps.Copy(f.Top, others)
	for _, r := range f.Top {
		r.trim(MaxRanked)
	}
}

func (r *Ranking) trim(n int) {
	r.Allowed.Trim(n)
	r.Denied.Trim(n)
}

// fold reduces a map to its bound, the smallest entries first: into one more entry, or, if
// there is no such function, into nothing.
func fold[K comparable, V any](m map[K]*V, most int, size func(*V) int64, into func(*V)) {
	if len(m) <= most {
		return
	}
	if into != nil {
		most--
	}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(size(m[a]), size(m[b])) })
	for _, k := range keys[:len(m)-most] {
		v := m[k]
		if delete(m, k); into != nil {
			into(v)
		}
	}
}

func compareLines(a, b Line) int {
	return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Tier, b.Tier))
}

func compareLevels(a, b RuleLevel) int {
	return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Level, b.Level))
}

func compareQuotas(a, b Quota) int {
	return cmp.Or(strings.Compare(a.Tier, b.Tier), cmp.Compare(a.Period, b.Period))
}
