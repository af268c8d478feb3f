package httpapi

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

const (
	// recently is the time in which the most denied client is looked for.
	recently = 5 * time.Minute

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
	Active   int           `json:"active"`   // without those that are silenced
	Silenced int           `json:"silenced"` // active, too
	Latest   []alert.Alert `json:"latest"`   // of the first kind, the newest first
}

// NowDenied is which client was denied most in the last minutes.
type NowDenied struct {
	Window      int64      `json:"window_s"`
	Local       bool       `json:"local,omitempty"`       // as in SummaryAnswer
	Unavailable bool       `json:"unavailable,omitempty"` // the statistics cannot be read, so it is not known
	Client      *NowClient `json:"client,omitempty"`      // nil if no client was denied that is on no list of the rules
}

// NowClient is a client that was denied, at least Count-Error times and at most Count times.
type NowClient struct {
	archive.Entry
	Rule     string       `json:"rule,omitempty"`     // which denied it most, as far as is known
	Endpoint *NowEndpoint `json:"endpoint,omitempty"` // of most denials by that rule that were sampled
	LastAt   int64        `json:"last_at"`
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
		if one.Silenced {
			a.Silenced++
		} else {
			loud = append(loud, one)
		}
	}
	a.Active, a.Latest = len(loud), readableAlerts(loud[:min(len(loud), maxNowAlerts)])
	return a
}

// deniedNow finds who is denied most. Clients on the lists of the rules are left out: somebody has
// already decided about them.
func (h *Handler) deniedNow(ctx context.Context, table *rule.Table, now time.Time) *NowDenied {
	d := &NowDenied{Window: int64(recently / time.Second)}
	err := h.inTurn(ctx, maxFirst, func(ctx context.Context) error {
		all, err := h.options.Stats.Clients(ctx, stats.ClientsQuery{From: now.Add(-recently), To: now.Add(time.Second), By: stats.ByDenied, N: maxDeniedSeen})
		if err != nil {
			return err
		}
		d.Local = all.Local
		for _, who := range all.Clients {
			if table.Listed(who.Key) {
				continue
			}
			details, err := h.options.Stats.Denials(ctx, stats.LatestQuery{Key: who.Key, N: stats.MaxLatest, Since: now.Add(-recently)})
			if err != nil {
				return err
			}
			d.Client = clientNow(who, details.Events)
			return nil
		}
		return nil
	})
	d.Unavailable = err != nil
	return d
}

// clientNow is a client with the rule and the endpoint of most of its denials.
func clientNow(who stats.Client, details []archive.Denial) *NowClient {
	c := &NowClient{Entry: who.Entry, LastAt: who.Last.Unix()}
	c.Key = readable(c.Key)
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
