package stats

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirhq/weir/stats/archive"
)

// By is the order of a ranking.
type By uint8

const (
	ByTotal By = iota
	ByAllowed
	ByDenied
	ByShadowDenied // only in a RuleQuery, as the next; rankings of clients count it in ByDenied of the rule
	BySoftDenied
)

var byNames = [...]string{"total", "allowed", "denied", "shadow_denied", "soft_denied"}

func (b By) String() string { return byNames[b] }

// ParseBy parses "total", "allowed" or "denied".
func ParseBy(name string) (By, error) {
	if i := slices.Index(byNames[:ByShadowDenied], name); i >= 0 {
		return By(i), nil
	}
	return 0, wrongQuery("%q is no ranking; write total, allowed or denied", name)
}

// ParseRuleBy parses what ParseBy does, and "shadow_denied" and "soft_denied".
func ParseRuleBy(name string) (By, error) {
	if i := slices.Index(byNames[:], name); i >= 0 {
		return By(i), nil
	}
	return 0, wrongQuery("%q is nothing that rules decide; write total, allowed, denied, shadow_denied or soft_denied", name)
}

// Window is the time range of a ranking.
type Window uint8

const (
	LastMinute Window = iota
	LastHour
	LastDay
)

var windows = [...]struct {
	name string
	long int64 // seconds
}{{"minute", 60}, {"hour", 3600}, {"day", 24 * 3600}}

func (w Window) String() string { return windows[w].name }

// ParseWindow parses "minute", "hour" or "day".
func ParseWindow(name string) (Window, error) {
	for i, w := range windows {
		if w.name == name {
			return Window(i), nil
		}
	}
	return 0, wrongQuery("%q is no time to look back; write minute, hour or day", name)
}

// TopQuery selects a ranking of keys.
type TopQuery struct {
	// Rule selects the results of one rule, by the keys of its clients; if it counts all
	// clients together, by another key of the request. Default "": the outcomes of requests,
	// whatever each rule said; then a request counts once for each key that rules found
	// in it.
	Rule string

	By     By
	Window Window
	N      int // number of keys; default 10, at most archive.MaxRankedAll
}

// Top is a ranking of the most frequent keys.
type Top struct {
	Range
	Total int64 // requests that had a key

	// Keys are the first keys of the ranking. Each had at least Count-Error and at most
	// Count requests, if Sampling is 1.
	Keys []archive.Entry

	// Sampling is above 1 if there were too many requests to look at all of them. At times, one
	// in so many was counted, as so many, and all counts are estimates: of a key with c requests,
	// the standard deviation is up to √(c·(Sampling-1)).
	Sampling int64

	// Floor is the maximum number of requests of a key that is not listed.
	Floor int64
}

// Top returns the most frequent keys. A ranking is at most two seconds old. The window
// includes the slot that is still being counted, so it may be longer by a twelfth.
func (r *Recorder) Top(ctx context.Context, q TopQuery) (*Top, error) {
	if q.By > ByDenied || int(q.Window) >= len(windows) {
		return nil, wrongQuery("there is no such ranking; use the constants")
	}
	if q.N < 0 {
		return nil, wrongQuery("%d keys cannot be shown; leave it 0 for 10", q.N)
	}
	q.N = cmp.Or(q.N, 10)
	return ask(ctx, r, func(a archive.Store) (*Top, error) {
		level := a.Levels(archive.Top)[q.Window]
		now := r.options.Clock().Unix()
		g := gridOf(int(q.Window), now-windows[q.Window].long, now+1, level.Step)
		var all []*archive.Sketch
		sampling := int64(1)
		err := g.each(ctx, a, archive.Top, func(s archive.Slot) {
			sampling = max(sampling, s.Frame.Sampling)
			all = append(all, q.By.halves(s.Frame.Top[q.Rule])...)
		})
		ranked := archive.SumSketches(all)
		ranked.Trim(min(q.N, archive.MaxRankedAll))
		return &Top{Range: g.span(), Total: ranked.Total, Keys: ranked.Entries, Sampling: sampling, Floor: ranked.Floor}, err
	})
}

// ranks are the keys of the last ten seconds, counted.
type ranks struct {
	all    [2]*archive.Counter             // allowed and denied, by the request
	byRule map[string]*[2]*archive.Counter // by the rule

	denials denials
	warned  archive.Warned

	sampling int64 // a key counted at most so often for once
	draft
}

// Places for keys: four times as many as an archive keeps, so that the counts that are kept
// have little error.
const (
	placesAll  = 4 * archive.MaxRankedAll
	placesRule = 4 * archive.MaxRanked
)

func newRanks() *ranks {
	return &ranks{
		all:    [2]*archive.Counter{archive.NewCounter(placesAll), archive.NewCounter(placesAll)},
		byRule: map[string]*[2]*archive.Counter{},
	}
}

// count counts a key n times: for the rule by what it said, unless it failed closed, and over all
// rules by what became of the request, once for each key and request.
func (r *ranks) count(rule string, f flags, key []byte, n int64) {
	r.changed = true
	if f&ruleClosed == 0 {
		r.of(rule)[f.half(ruleDenied)].Add(key, n)
	}
	switch all := r.all[f.half(requestDenied)]; {
	case f&sameKey != 0:
	case f&otherKey != 0:
		all.AddAnother(key, n)
	default:
		all.Add(key, n)
	}
}

// of returns the ranking of a rule: allowed and denied.
func (r *ranks) of(rule string) *[2]*archive.Counter {
	of := r.byRule[rule]
	if of == nil {
		of = &[2]*archive.Counter{archive.NewCounter(placesRule), archive.NewCounter(placesRule)}
		r.byRule[rule] = of
	}
	return of
}

// put writes what was counted into a frame.
func (r *ranks) put(f *archive.Frame) {
	f.Sampling = r.sampling
	if len(r.byRule) > 0 {
		all := f.Ranking("")
		all.Allowed, all.Denied = r.all[0].Sketch(), r.all[1].Sketch()
	}
	for id, of := range r.byRule {
		one := f.Ranking(id)
		one.Allowed, one.Denied = of[0].Sketch(), of[1].Sketch()
	}
	f.Trim()
}
