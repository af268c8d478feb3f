package stats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Suggestion suggests limits for a tier and period of a rule.
type Suggestion struct {
	Rule   string
	Tier   string // "" for requests without a tier, or of a tier that the rule does not name
	Period time.Duration

	From, To time.Time // the data that it is based on; From is later than in the query if the data begins later
	Requests int64     // requests that reached the limit and were not denied by another rule; an estimate if Health.Sampling is above 1
	Denied   int64     // those that this limit denied

	// Targets are in the order of the requested shares. No limit is suggested for a period
	// that is longer than the data, nor if there is no such limit in force: these shares
	// are left out, unless Above is true.
	Targets []Target
}

// Target is the limit that would have denied a share of the requests.
type Target struct {
	Share float64 `json:"share"`

	// Units is the lowest limit that would have denied no more than the share, or for a
	// bucket the lowest burst at its present rate; at most an eighth above the true value.
	Units int64 `json:"units"`

	// Limit is the limit in force with these units, as a rule has it: "19/1m", or
	// "100/1s burst 7" for a bucket. It is "" if Above is true.
	Limit string `json:"limit,omitempty"`

	// Above reports that the present limit denies more than the share. The limit must
	// then be higher than Units, which is the highest usage that was seen, to within an
	// eighth. How much higher is unknown, because no client was allowed more.
	Above bool `json:"above"`

	Display string `json:"display,omitempty"` // Units of a rule that counts money: "$13.37"
}

// DefaultShares are the shares that Suggest uses by default.
var DefaultShares = []float64{0.001, 0.01}

// Suggest returns, for each limit of a rule, the limits that would have denied a share
// of the requests between two times. It uses the usage after each request: for a window
// the number of requests within it, for a bucket what is in use at the present rate, which
// says nothing about other rates. The result is an estimate: with a lower limit, denied
// requests use nothing, so fewer requests would be denied than it says.
func (r *Recorder) Suggest(ctx context.Context, id string, from, to time.Time, shares ...float64) ([]Suggestion, error) {
	if len(shares) == 0 {
		shares = DefaultShares
	}
	for _, s := range shares {
		if !(s >= 0 && s < 1) {
			return nil, wrongQuery("the share %v is none; write 0.01 for one in a hundred", s)
		}
	}
	if !to.After(from) {
		return nil, wrongQuery("the time ends before it begins; name an end that is later")
	}
	detail, err := r.planKept(r.archive, archive.Rules, from.Unix(), to.Unix()).detail(ctx, r.archive, id)
	if err != nil {
		return nil, err
	}
	begun, err := r.begun(ctx, id, from.Unix(), to.Unix())
	if err != nil {
		return nil, err
	}
	if now := r.options.Clock(); to.After(now) {
		to = now
	}
	var all []Suggestion
	for q, u := range detail.Usage {
		s := Suggestion{Rule: id, Tier: q.Tier, Period: time.Duration(q.Period) * time.Microsecond, From: from, To: to}
		if at, ok := begun[q]; ok && at > from.Unix() {
			s.From = time.Unix(at, 0).UTC()
		}
		s.Requests, s.Denied = u.Used.Count+u.Denied, u.Denied
		limit, money := r.index.Load().limit(id, q)
		if s.To.Sub(s.From) < s.Period {
			limit = nil
		}
		for _, share := range shares {
			if t := targetOf(u, share); t.within(limit, money) {
				s.Targets = append(s.Targets, t)
			}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Period, b.Period))
	})
	return all, nil
}

// begun returns when the data of each limit of a rule begins, at the latest: a slot of some
// minutes may have been empty until its end.
func (r *Recorder) begun(ctx context.Context, id string, from, to int64) (map[archive.Quota]int64, error) {
	begun := map[archive.Quota]int64{}
	for level, l := range r.archive.Levels(archive.Rules) {
		late := l.Step
		if level == 0 {
			late = 0
		}
		err := each(ctx, r.archive, archive.Rules, level, l.Start(max(from, r.options.Clock().Unix()-l.Keep)), to, func(s archive.Slot) {
			if d := s.Frame.Details[id]; d != nil {
				for q := range d.Usage {
					if at, ok := begun[q]; !ok || s.Start+late < at {
						begun[q] = s.Start + late
					}
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return begun, nil
}

// within names the limit, which is the one in force with other units. It reports whether
// there is something to say.
func (t *Target) within(in *weir.Compiled, money string) bool {
	if !t.Above && in == nil {
		return false
	}
	if !t.Above {
		t.Units = min(t.Units, in.Capacity())
	}
	if money != "" {
		t.Display = rule.MoneyText(money, t.Units)
	}
	if t.Above {
		return true
	}
	l := in.Limit()
	if l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket {
		l.Burst = t.Units
	} else {
		l.N = t.Units
	}
	if _, t.Limit, _ = strings.Cut(l.String(), " "); money != "" { // without the algorithm
		t.Limit = rule.Rate{N: l.N, Period: l.Period, Currency: money}.String()
	}
	return true
}

// targetOf finds the least limit beyond which no more than the share went.
func targetOf(u *archive.Usage, share float64) Target {
	total := u.Used.Count + u.Denied
	allowance := int64(share * float64(total))
	if u.Denied > allowance {
		return Target{Share: share, Units: u.Used.Floor(), Above: true}
	}
	// As many as may be denied, besides those that are already.
	within := u.Used.Count - (allowance - u.Denied)
	return Target{Share: share, Units: max(u.Used.Rank(max(within, 1)), 1)}
}
