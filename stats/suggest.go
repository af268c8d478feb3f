package stats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/stats/frame"
)

// Suggestion suggests limits for a tier and period of a rule.
type Suggestion struct {
	Rule   string
	Tier   string // "" for requests without a tier, or of a tier that the rule does not name
	Period time.Duration

	From, To time.Time // the data that it is based on
	Requests int64     // requests that reached the limit and were not denied by another rule; an estimate if Health.Sampling is above 1
	Denied   int64     // those that this limit denied

	// Targets are in the order of the requested shares.
	Targets []Target
}

// Target is the limit that would have denied a share of the requests.
type Target struct {
	Share float64

	// Units is the lowest limit that would have denied no more than the share; at most
	// an eighth above the true value.
	Units int64

	// Above reports that the present limit denies more than the share. The limit must
	// then be higher than Units, which is the highest usage that was seen, to within an
	// eighth. How much higher is unknown, because no client was allowed more.
	Above bool
}

// DefaultShares are the shares that Suggest uses by default.
var DefaultShares = []float64{0.001, 0.01}

// Suggest returns, for each limit of a rule, the limits that would have denied a share
// of the requests between two times. It uses the usage after each request: for a window
// the number of requests within it, for a bucket the burst at the present rate. The
// result is an estimate: with a lower limit, denied requests use nothing, so fewer
// requests would be denied than it says.
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
	detail, err := r.detail(ctx, r.archive, id, from.Unix(), to.Unix())
	if err != nil {
		return nil, err
	}
	var all []Suggestion
	for q, u := range detail.Usage {
		s := Suggestion{Rule: id, Tier: q.Tier, Period: time.Duration(q.Period) * time.Microsecond, From: from, To: to}
		s.Requests, s.Denied = u.Used.Count+u.Denied, u.Denied
		for _, share := range shares {
			s.Targets = append(s.Targets, targetOf(u, share))
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Period, b.Period))
	})
	return all, nil
}

// targetOf finds the least limit beyond which no more than the share went.
func targetOf(u *frame.Usage, share float64) Target {
	total := u.Used.Count + u.Denied
	allowance := int64(share * float64(total))
	if u.Denied > allowance {
		return Target{Share: share, Units: u.Used.Floor(), Above: true}
	}
	// As many as may be denied, besides those that are already.
	within := u.Used.Count - (allowance - u.Denied)
	return Target{Share: share, Units: max(u.Used.Rank(max(within, 1)), 1)}
}
