package frame

import (
	"cmp"
	"maps"
	"slices"
)

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
