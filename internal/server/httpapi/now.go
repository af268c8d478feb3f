package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

const (
	// recently is the time in which denials are looked at, and slot that of rankings: of the
	// window, the part that whole slots cover.
	recently = 5 * time.Minute
	slot     = 10 * time.Second

	// From these on, the share of denied requests is high: a limit is wrong, or somebody attacks.
	highShare  = 0.1
	highDenied = 10

	// maxDeniedSeen is how many of the most denied clients are looked at for one that is on no
	// list of the rules.
	maxDeniedSeen = 10

	// maxNowAlerts is how many alerts the answer names.
	maxNowAlerts = 5
)

// NowAnswer is what GET /v1/now answers: the state of the instance that answers. Times are Unix
// seconds, except those of alerts.
type NowAnswer struct {
	At     int64      `json:"at"`
	Store  NowStore   `json:"store"`
	Rules  NowRules   `json:"rules"`
	Alerts *NowAlerts `json:"alerts,omitempty"` // nil if the server does not evaluate any
	Denied *NowDenied `json:"denied,omitempty"` // nil if the server keeps no statistics
}

// NowStore is the store of limits.
type NowStore struct {
	Kind string `json:"kind,omitempty"` // memory or redis
	StatsStore
}

// NowRules are the rules by which this instance decides.
type NowRules struct {
	Version   int64      `json:"version"`              // 0 if none were loaded
	Count     int        `json:"count"`                // of rules
	WrittenAt *int64     `json:"written_at,omitempty"` // when the version was
	NotLoaded *NotLoaded `json:"not_loaded,omitempty"` // nil if the stored rules are in force
}

// NowAlerts are the alerts that fire.
type NowAlerts struct {
	Active   int           `json:"active"`          // whose condition holds, without those that are silenced
	Silenced int           `json:"silenced"`        // likewise
	Latest   []alert.Alert `json:"latest"`          // the active ones, the newest first
	Quiet    []alert.Alert `json:"quiet,omitempty"` // whose condition no longer holds, without those that are silenced
}

// NowDenied is how many requests were denied in the last minutes, and which client most.
type NowDenied struct {
	Window      int64      `json:"window_s"`
	Requests    int64      `json:"requests"`
	Denied      int64      `json:"denied"`
	Share       float64    `json:"denied_share"`          // 0 to 1
	High        bool       `json:"high,omitempty"`        // the share is so high that somebody should look
	Rule        string     `json:"rule,omitempty"`        // which denied most requests
	Local       bool       `json:"local,omitempty"`       // as in SummaryAnswer
	Unavailable bool       `json:"unavailable,omitempty"` // the statistics cannot be read, so it is not known
	Client      *NowClient `json:"client,omitempty"`      // nil if no client was denied that is on no list of the rules
}

// NowClient is a client that was denied, at least Count-Error times and at most Count times, if
// Sampling is 1.
type NowClient struct {
	archive.Entry
	Sampling int64          `json:"sampling"`           // as in TopAnswer
	Rule     string         `json:"rule,omitempty"`     // which denied it most, as far as is known
	Endpoint *NowEndpoint   `json:"endpoint,omitempty"` // of most denials by that rule that were sampled
	LastAt   int64          `json:"last_at"`
	Most     *archive.Entry `json:"most,omitempty"` // the most denied key, if that is another one; see alert.Culprit
}

// NowEndpoint is what was requested, as in archive.Denial.
type NowEndpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// getNow answers GET /v1/now. It counts nothing itself, and what it cannot find out in time is
// marked in the answer.
func (h *Handler) getNow(c *call) (any, error) {
	o, now := &h.options, h.options.Clock()
	table, version := o.Engine.Rules()
	answer := &NowAnswer{
		At: now.Unix(), Store: NowStore{o.StoreKind, storeOf(o.Outage())},
		Rules: NowRules{Version: version, Count: len(table.Rules()), NotLoaded: notLoaded(o.NotLoaded())},
	}
	if v, ok := o.Editor.InForce(); ok && v.Number == version && !v.Time.IsZero() {
		at := v.Time.Unix()
		answer.Rules.WrittenAt = &at
	}
	if o.Alerts != nil {
		answer.Alerts = alertsNow(o.Alerts.Active())
	}
	if o.Stats != nil {
		answer.Denied = h.deniedNow(c.r.Context(), table, now)
	}
	return answer, nil
}

func alertsNow(active []alert.Alert) *NowAlerts {
	a := &NowAlerts{}
	var loud []alert.Alert
	for _, one := range active {
		switch quiet := !one.QuietSince.IsZero(); {
		case quiet && !one.Silenced:
			a.Quiet = append(a.Quiet, one)
		case quiet:
		case one.Silenced:
			a.Silenced++
		default:
			loud = append(loud, one)
		}
	}
	a.Active, a.Latest = len(loud), readableAlerts(loud[:min(len(loud), maxNowAlerts)])
	a.Quiet = readableAlerts(a.Quiet[:min(len(a.Quiet), maxNowAlerts)])
	return a
}

// deniedNow finds how much is denied, and who most.
func (h *Handler) deniedNow(ctx context.Context, table *rule.Table, now time.Time) *NowDenied {
	d := &NowDenied{Window: int64(recently / time.Second)}
	from, to := now.Add(slot-recently-1).Truncate(slot), now.Add(time.Second)
	err := h.inTurn(ctx, maxFirst, func(ctx context.Context) error {
		sum, err := h.options.Stats.Summary(ctx, from, to)
		if err != nil {
			return err
		}
		d.Requests, d.Denied, d.Share = sum.Requests, sum.Denied, sum.DeniedShare()
		d.High = d.Denied >= highDenied && d.Share >= highShare
		most := int64(0)
		for _, r := range sum.Rules {
			if r.Denied > most && r.Rule != archive.Other {
				most, d.Rule = r.Denied, r.Rule
			}
		}
		d.Client, d.Local, err = h.mostDenied(ctx, table, from, to)
		d.Local = d.Local || sum.Local
		return err
	})
	if err != nil {
		return &NowDenied{Window: d.Window, Unavailable: true}
	}
	return d
}

// mostDenied finds who is denied most. Clients on the lists of the rules are left out, and those
// who were denied only from addresses on the lists: somebody has already decided about them. So are
// clients that were denied by other keys of their requests, which are ranked themselves.
func (h *Handler) mostDenied(ctx context.Context, table *rule.Table, from, to time.Time) (*NowClient, bool, error) {
	all, err := h.options.Stats.Clients(ctx, stats.ClientsQuery{From: from, To: to, By: stats.ByDenied, N: maxDeniedSeen})
	if err != nil {
		return nil, false, err
	}
	open := slices.DeleteFunc(all.Clients, func(c stats.Client) bool {
		own := len(c.Rules) == 0 || slices.ContainsFunc(c.Rules, func(r stats.RuleCount) bool { return !r.Other && !r.Shadow })
		return !own || table.Listed(c.Key)
	})
	for len(open) > 0 {
		ranked := make([]archive.Entry, len(open))
		for i := range open {
			ranked[i] = open[i].Entry
		}
		at := alert.Culprit(ranked)
		details, err := h.options.Stats.Denials(ctx, stats.LatestQuery{Key: open[at].Key, N: stats.MaxLatest, Since: from})
		if err != nil {
			return nil, false, err
		}
		if decided(table, details.Events) {
			open = slices.Delete(open, at, at+1)
			continue
		}
		c := clientNow(open[at], details.Events)
		if c.Sampling = all.Sampling; ranked[0].Count > c.Count {
			ranked[0].Key = readable(ranked[0].Key)
			c.Most = &ranked[0]
		}
		return c, all.Local, nil
	}
	return nil, all.Local, nil
}

// decided reports whether all addresses from which a client was denied are on lists.
func decided(table *rule.Table, details []archive.Denial) bool {
	return len(details) > 0 && !slices.ContainsFunc(details, func(d archive.Denial) bool { return d.Address == "" || !table.Listed("ip:"+d.Address) })
}

// clientNow is a client with the rule and the endpoint of most of its denials.
func clientNow(who stats.Client, details []archive.Denial) *NowClient {
	c := &NowClient{Entry: who.Entry, LastAt: who.Last.Unix()}
	c.Key = readable(c.Key)
	for _, d := range details { // rankings know only the ten seconds
		if !d.Shadow {
			c.LastAt = max(c.LastAt, int64(d.At)/time.Second.Microseconds())
		}
	}
	for _, r := range who.Rules {
		if !r.Shadow {
			c.Rule = r.Rule
			break
		}
	}
	most, counts := 0, map[NowEndpoint]int{}
	for _, d := range details { // the newest first, which is taken of those that came equally often
		if d.Rule == c.Rule && !d.Shadow {
			counts[NowEndpoint{d.Method, readable(d.Path)}]++
		}
	}
	for _, d := range details {
		if e := (NowEndpoint{d.Method, readable(d.Path)}); counts[e] > most {
			most, c.Endpoint = counts[e], &e
		}
	}
	return c
}
