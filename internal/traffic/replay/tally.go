package replay

import (
	"net/url"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// tally is what happened so far.
type tally struct {
	Report                       // as far as it is counted
	whole                   bool // no time had a fraction of a second
	addresses, users, hosts int64

	rules  []ruleTally
	index  map[*rule.Entry]int
	demand map[*weir.Compiled]*demand
	top    *top
}

// ruleTally is what happened to one rule.
type ruleTally struct {
	RuleReport // as far as it is counted
	rule       *rule.Entry
	demands    []*demand
}

// maxArrivals is the default of Options.MaxArrivals.
const maxArrivals = 1 << 23

func newTally(o *Options) *tally {
	t := &tally{
		Report: Report{series: newSeries(), Top: []Denied{}}, whole: true, top: newTop(maxDenied),
		index: make(map[*rule.Entry]int), demand: make(map[*weir.Compiled]*demand),
	}
	limits := 0
	for _, c := range o.Table.Rules() {
		limits += len(c.Limits("", ""))
	}
	room := min(1<<21, o.MaxArrivals/max(1, limits))
	for i, c := range o.Table.Rules() {
		t.index[c] = i
		rt := ruleTally{rule: c, RuleReport: RuleReport{ID: c.ID, Key: notation.Join(c.Key, "|"), Mode: c.Mode}}
		for _, limit := range c.Limits("", "") {
			if limit.Algorithm() == weir.InFlight {
				continue // a log does not say how long requests took
			}
			d := newDemand(limit, max(1, c.Cost), room)
			t.demand[limit] = d
			rt.demands = append(rt.demands, d)
		}
		t.rules = append(t.rules, rt)
	}
	return t
}

// add counts one verdict.
func (t *tally) add(now int64, e *Entry, v *engine.Verdict) {
	if t.Requests == 0 {
		t.From = Instant(now)
	}
	t.Requests++
	t.To = Instant(now)
	t.whole = t.whole && e.Whole
	// What requests are known by, to tell why a rule applies to none.
	if e.IP.IsValid() {
		t.addresses++
	}
	if e.User != "" {
		t.users++
	}
	if e.Host != "" {
		t.hosts++
	}
	switch {
	case v.Reason == engine.Exempt:
		t.Exempt++
	case v.Reason == engine.Blocked:
		t.Blocked++
	case len(v.Results) == 0:
		t.Free++
	}
	if v.Delay > 0 {
		t.Delayed++
		t.Longest = max(t.Longest, v.Delay.Microseconds())
	}
	if !v.Allowed {
		t.Denied++
	}
	t.series.add(now, !v.Allowed)
	t.addRules(now, v.Results)
}

// addRules counts what each rule says. The limits of one follow upon each other.
func (t *tally) addRules(now int64, results []engine.Result) {
	for len(results) > 0 {
		r := &results[0]
		n, denied := 0, false
		for n < len(results) && results[n].Rule == r.Rule {
			denied = denied || !results[n].Allowed
			if d := t.demand[results[n].Compiled]; d != nil {
				d.add(results[n].Key, now)
			}
			n++
		}
		i := t.index[r.Rule]
		t.rules[i].Applied++
		if denied {
			t.rules[i].Denied++
			t.series.addRule(i)
			t.top.add(i, r.Key, now)
		}
		results = results[n:]
	}
}

// values finds in an entry what rules may be keyed by.
type values struct {
	entry *Entry
	extra []Extra
	named map[string]string // attributes, used again for each request
}

func (v *values) Header(name string, from int) (string, int) {
	return rule.OneValue(v.find(Header, name), from)
}

func (v *values) Cookie(name string, from int) (string, int) {
	return rule.OneValue(v.find(Cookie, name), from)
}

func (v *values) find(kind ExtraKind, name string) string {
	for i, x := range v.extra {
		if x.Kind == kind && x.Name == name {
			return v.entry.Extra[i]
		}
	}
	return ""
}

// Query finds the values of a parameter, as servers read it.
func (v *values) Query(name string, from int) (string, int) {
	query := v.entry.Query
	for at := from; at < len(query); {
		pair, _, _ := strings.Cut(query[at:], "&")
		at += len(pair) + 1
		key, value, _ := strings.Cut(pair, "=")
		if value = plain(value); value != "" && plain(key) == name {
			return value, at
		}
	}
	return "", 0
}

func plain(s string) string {
	if strings.ContainsAny(s, "%+") {
		if decoded, err := url.QueryUnescape(s); err == nil {
			return decoded
		}
	}
	return s
}

// attributes returns those that the entry has; nil if the log has none at all.
func (v *values) attributes() map[string]string {
	clear(v.named)
	for i, x := range v.extra {
		if x.Kind == Attribute && v.entry.Extra[i] != "" {
			if v.named == nil {
				v.named = make(map[string]string)
			}
			v.named[x.Name] = v.entry.Extra[i]
		}
	}
	return v.named
}
