package stats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Usage is how full the limits of a rule got.
type Usage struct {
	Range
	Limits []LimitUsage
}

// LimitUsage is how many units of a limit were in use after each allowed request, for all
// clients together. Numbers of units are never less than the true ones, and at most an
// eighth more.
type LimitUsage struct {
	Tier   string // "" for requests without a tier, or of a tier that the rule does not name
	Period time.Duration
	Limit  int64 // units of the limit in force; 0 if there is none for this tier and period
	UnitUsage
}

// UnitUsage is how many units were in use after requests.
type UnitUsage struct {
	Requests int64 `json:"requests"` // as in Suggestion
	Denied   int64 `json:"denied"`   // requests that found no room; they are not in Slots

	P50   int64       `json:"p50"`
	P90   int64       `json:"p90"`
	P99   int64       `json:"p99"`
	Max   int64       `json:"max"`
	Slots []UsageSlot `json:"slots"` // slots with a count, in order
}

// UsageSlot counts the requests after which From to UpTo units were in use.
type UsageSlot struct {
	From  int64 `json:"from"`
	UpTo  int64 `json:"up_to"`
	Count int64 `json:"count"`
}

// Usage returns the distribution of how full each limit of a rule got between two times.
func (r *Recorder) Usage(ctx context.Context, id string, from, to time.Time) (*Usage, error) {
	if _, err := lengthOf(from, to); err != nil {
		return nil, err
	}
	return ask(ctx, r, func(a archive.Store) (*Usage, error) {
		g := r.planKept(a, archive.Rules, from.Unix(), to.Unix())
		detail, err := g.detail(ctx, a, id)
		if err != nil {
			return nil, err
		}
		usage := &Usage{Range: g.span()}
		for q, u := range detail.Usage {
			capacity := int64(0)
			if l, _ := r.index.Load().limit(id, q); l != nil {
				capacity = l.Capacity()
			}
			usage.Limits = append(usage.Limits, limitUsage(q, u, capacity))
		}
		slices.SortFunc(usage.Limits, func(a, b LimitUsage) int {
			return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Period, b.Period))
		})
		return usage, nil
	})
}

func limitUsage(q archive.Quota, u *archive.Usage, limit int64) LimitUsage {
	one := LimitUsage{
		Tier: q.Tier, Period: time.Duration(q.Period) * time.Microsecond, Limit: limit,
		UnitUsage: UnitUsage{Requests: u.Used.Count + u.Denied, Denied: u.Denied},
	}
	// A slot can reach beyond the limit, but no client can have used more than the limit.
	within := func(units int64) int64 {
		if limit > 0 && units > limit && archive.HistogramSlot(uint64(units)) == archive.HistogramSlot(uint64(limit)) {
			return limit
		}
		return units
	}
	for top, n := range u.Used.All() {
		one.Slots = append(one.Slots, UsageSlot{archive.SlotBottom(archive.HistogramSlot(uint64(top))), within(top), n})
	}
	one.P50, one.P90, one.P99 = within(u.Used.Value(0.5)), within(u.Used.Value(0.9)), within(u.Used.Value(0.99))
	one.Max = within(u.Used.Rank(u.Used.Count))
	return one
}
