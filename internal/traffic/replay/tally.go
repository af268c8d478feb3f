package replay

import (
	"cmp"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/rule"
)

// tally is what happened so far.
type tally struct {
	Report                       // as far as it is counted
	whole                   bool // no time had a fraction of a second
	addresses, users, hosts int64

	rules  []ruleTally
	index  map[*rule.Entry]int
	demand map[demandKey]*demand
	top    *top
}

// ruleTally is what happened to one rule.
type ruleTally struct {
	RuleReport // as far as it is counted
	rule       *rule.Entry
	demands    []*demand
}

// defaults are the limits of clients without a tier, at each level if the rule has levels.
func defaults(c *rule.Entry) iter.Seq[demandKey] {
	return func(yield func(demandKey) bool) {
		for _, level := range append(c.Levels(), "")[:max(1, len(c.Levels()))] {
			identity := ""
			if level != "" {
				identity = level + ":"
			}
			for _, limit := range c.Limits(identity, "") {
				if !yield(demandKey{limit, level}) {
					return
				}
			}
		}
	}
}

// maxArrivals is the default of Options.MaxArrivals.
const maxArrivals = 1 << 23

func newTally(o *Options) *tally {
	t := &tally{
		Report: Report{series: newSeries(), Top: []Denied{}}, whole: true, top: newTop(maxDenied),
		index: make(map[*rule.Entry]int), demand: make(map[demandKey]*demand),
	}
	limits := 0
	for _, c := range o.Table.Rules() {
		for range defaults(c) {
			limits++
		}
	}
	room := min(1<<21, o.MaxArrivals/max(1, limits))
	for i, c := range o.Table.Rules() {
		t.index[c] = i
		rt := ruleTally{rule: c, RuleReport: RuleReport{ID: c.ID, Key: notation.Join(c.Key, "|"), Mode: c.Mode}}
		for key := range defaults(c) {
			if key.limit.Algorithm() == weir.InFlight {
				continue // a log does not say how long requests took
			}
			d := newDemand(key, max(1, c.Cost), room)
			t.demand[key] = d
			rt.demands = append(rt.demands, d)
		}
		for _, level := range c.Levels() {
			rt.Levels = append(rt.Levels, LevelReport{Level: level})
		}
		t.rules = append(t.rules, rt)
	}
	return t
}

// countVerdict counts one verdict.
func (t *tally) countVerdict(now int64, e *Entry, v *engine.Verdict) {
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
	case v.Reason == engine.Blocked, v.Reason == engine.UnknownClient:
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
	t.series.countRequest(now, !v.Allowed)
	t.countRules(now, v.Results)
}

// countRules counts what each rule says. The limits of one follow upon each other.
func (t *tally) countRules(now int64, results []engine.Result) {
	for len(results) > 0 {
		r := &results[0]
		i, n, denied := t.index[r.Rule], 0, false
		for n < len(results) && results[n].Rule == r.Rule {
			if !denied && !results[n].Allowed {
				r, denied = &results[n], true // whose client it is about
			}
			if d := t.demand[demandKey{results[n].Compiled, results[n].Level()}]; d != nil {
				d.addArrival(results[n].Key, now)
			}
			n++
		}
		t.rules[i].countLevels(results[:n])
		t.rules[i].Applied++
		if denied {
			t.rules[i].Denied++
			t.series.countRuleDenial(i)
			t.top.countDenial(i, r.Key, now)
		}
		results = results[n:]
	}
}

// countLevels counts at which levels a request is limited, and at which it was denied.
func (rt *ruleTally) countLevels(results []engine.Result) {
	for i := range rt.Levels {
		l, applied, denied := &rt.Levels[i], int64(0), int64(0)
		for j := range results {
			if results[j].Level() == l.Level {
				if applied = 1; !results[j].Allowed {
					denied = 1
				}
			}
		}
		l.Applied, l.Denied = l.Applied+applied, l.Denied+denied
	}
}

// values finds in an entry what rules may be keyed by.
type values struct {
	entry *Entry
	extra []Extra
	named map[string]string // attributes, used again for each request
}

func (v *values) Header(name string, from int) (string, int) {
	return rule.OneValue(v.extraValue(Header, name), from)
}

func (v *values) Cookie(name string, from int) (string, int) {
	return rule.OneValue(v.extraValue(Cookie, name), from)
}

func (v *values) extraValue(kind ExtraKind, name string) string {
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

// Bounds on what is remembered about time.
const (
	maxSlices = 480
	maxLanes  = 64 // rules whose denials are kept apart
)

// widths are the lengths of a slice in seconds, each a multiple of the one before,
// so that slices can be put together.
var widths = []int64{1, 5, 15, 30, 60, 300, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 28 * 86400, 364 * 86400}

// series counts over time, in slices that get longer as the log does.
type series struct {
	width int // of widths
	begin int64
	slice int // of the latest request

	offered []int64
	denied  []int64
	rules   map[int][]int64 // denials by rule, for the first that deny
}

func newSeries() *series { return &series{rules: make(map[int][]int64)} }

func (s *series) length() int64 { return widths[s.width] * 1_000_000 }

// countRequest counts a request. Time does not go back.
func (s *series) countRequest(now int64, denied bool) {
	if len(s.offered) == 0 {
		s.begin = now - now%s.length()
	}
	for (now-s.begin)/s.length() >= maxSlices {
		s.widen()
	}
	s.slice = int((now - s.begin) / s.length())
	s.offered, s.denied = grow(s.offered, s.slice+1), grow(s.denied, s.slice+1)
	s.offered[s.slice]++
	if denied {
		s.denied[s.slice]++
	}
}

// countRuleDenial counts that a rule denies the request that was added last.
func (s *series) countRuleDenial(rule int) {
	counts := s.rules[rule]
	if counts == nil && len(s.rules) == maxLanes {
		return
	}
	counts = grow(counts, s.slice+1)
	counts[s.slice]++
	s.rules[rule] = counts
}

func grow(counts []int64, n int) []int64 {
	if n > len(counts) {
		counts = append(counts, make([]int64, n-len(counts))...)
	}
	return counts
}

// widen puts slices together, as many as make one of the next length.
func (s *series) widen() {
	old, begin := s.length(), s.begin
	s.width++
	s.begin -= s.begin % s.length()
	join := func(counts []int64) []int64 {
		var joined []int64
		for i, n := range counts {
			at := int((begin + int64(i)*old - s.begin) / s.length())
			joined = grow(joined, at+1)
			joined[at] += n
		}
		return joined
	}
	s.offered, s.denied = join(s.offered), join(s.denied)
	for rule, counts := range s.rules {
		s.rules[rule] = join(counts)
	}
}

// fitted returns the series in at most so many slices.
func (s *series) fitted(columns int) *series {
	f := &series{width: s.width, begin: s.begin, offered: slices.Clone(s.offered), denied: slices.Clone(s.denied), rules: make(map[int][]int64)}
	for rule, counts := range s.rules {
		f.rules[rule] = slices.Clone(counts)
	}
	for len(f.offered) > columns && f.width+1 < len(widths) {
		f.widen()
	}
	for rule, counts := range f.rules {
		f.rules[rule] = grow(counts, len(f.offered))
	}
	return f
}

// maxDenied bounds the clients whose denials are counted apart.
const maxDenied = 1 << 14

// top counts denials by rule and client, exactly as long as there is room. From then on
// a new one takes the place of the one with the fewest, and its count, which bounds by
// how much its own is too high: the Space-Saving algorithm of Metwally, Agrawal and El
// Abbadi. Every client with more than the smallest count is in the list.
type top struct {
	room    int
	clients map[topKey]*denials
	heap    order.Heap[*denials] // the fewest on top
	taken   int64                // how often a place was taken over
	rules   map[int]int64        // how many clients each rule has denied, while that is exact
}

type topKey struct {
	rule   int
	client string
}

type denials struct {
	topKey
	count, tooHigh int64
	first, last    int64 // when
	place          int32 // in the heap
}

func (d *denials) Before(other *denials) bool { return d.count < other.count }
func (d *denials) Index() *int32              { return &d.place }

func newTop(room int) *top {
	return &top{room: room, clients: make(map[topKey]*denials), rules: make(map[int]int64)}
}

// countDenial counts a denial. The client's bytes are the caller's.
func (t *top) countDenial(rule int, client string, now int64) {
	if d := t.clients[topKey{rule, client}]; d != nil {
		d.count++
		d.last = now
		t.heap.Fix(d)
		return
	}
	key := topKey{rule, string([]byte(client))}
	if len(t.heap) < t.room {
		t.rules[rule]++
		t.clients[key] = &denials{topKey: key, count: 1, first: now, last: now}
		t.heap.Push(t.clients[key])
		return
	}
	t.taken++
	least := t.heap[0]
	delete(t.clients, least.topKey)
	*least = denials{topKey: key, count: least.count + 1, tooHigh: least.count, first: now, last: now}
	t.clients[key] = least
	t.heap.Fix(least)
}

// most returns those with the most denials.
func (t *top) most(n int) []*denials {
	all := slices.Clone(t.heap)
	slices.SortFunc(all, func(a, b *denials) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.rule, b.rule), cmp.Compare(a.client, b.client))
	})
	return all[:min(n, len(all))]
}
