package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/alert"
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

	// maxNow is how many alerts, and how many blocked clients, the answer names.
	maxNow = 5
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

// NowDenied is how many requests were denied in the last minutes, and which client most. It counts
// neither requests that the block list denied, nor denials of clients about whom somebody has
// decided since; see alert.Accuse.
type NowDenied struct {
	Window      int64           `json:"window_s"`
	Requests    int64           `json:"requests"`
	Denied      int64           `json:"denied"`                // by limits, also local ones, but not because the store was unavailable
	Share       float64         `json:"denied_share"`          // 0 to 1
	High        bool            `json:"high,omitempty"`        // the share is so high that somebody should look
	Rule        string          `json:"rule,omitempty"`        // which denied most requests; "" if none did
	Local       bool            `json:"local,omitempty"`       // as in SummaryAnswer
	Unavailable bool            `json:"unavailable,omitempty"` // the statistics cannot be read, so it is not known
	Client      *NowClient      `json:"client,omitempty"`      // nil if no client was denied that is on no list of the rules
	Blocked     []archive.Entry `json:"blocked,omitempty"`     // clients on the block list that limits denied before

	// CompleteSince is as in StatsRecorder, if that is within the window.
	CompleteSince *int64 `json:"complete_since,omitempty"`
}

// NowClient is a client that was denied, at least Count-Error times and at most Count times, if
// Sampling is 1.
type NowClient struct {
	archive.Entry
	High     bool           `json:"high,omitempty"`     // its denials alone are so many that somebody should act
	Sampling int64          `json:"sampling"`           // as in TopAnswer
	Rule     string         `json:"rule,omitempty"`     // which denied it most, as far as is known
	Endpoint *NowEndpoint   `json:"endpoint,omitempty"` // of most denials by that rule that were sampled
	LastAt   int64          `json:"last_at"`
	Most     *archive.Entry `json:"most,omitempty"` // the most denied key, if that is another one; see alert.Accuse
}

// NowEndpoint is what was requested, as in archive.Denial.
type NowEndpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// LeasesAnswer is what GET /v1/leases answers: how the instance that answers has decided, since its start, under limits of
// which it leases units.
type LeasesAnswer struct {
	Messages int64       `json:"messages"` // to the store, about leases
	Keys     int64       `json:"keys"`     // that have a lease here now
	Rules    []RuleLease `json:"rules"`    // by id
}

// RuleLease has the decisions of a rule by how they were made, and its units. A request under several rules counts for each.
type RuleLease struct {
	Rule     string `json:"rule"`     // "" is all those beyond lease.MaxNames
	Local    int64  `json:"local"`    // allowed without asking the store
	Denied   int64  `json:"denied"`   // without asking the store
	Asked    int64  `json:"asked"`    // the store
	Leased   int64  `json:"leased"`   // units that can be spent without asking, now
	Returned int64  `json:"returned"` // units that were returned unspent
	Lost     int64  `json:"lost"`     // units whose lease ended before they were spent or returned
}

var leasing = having(func(o *Options) bool { return o.Leases != nil }, "leases-off", "This server keeps limits in memory, so it decides without leases.")

// getLeases answers GET /v1/leases.
func (h *Handler) getLeases(c *call) (any, error) {
	q := c.query("rule")
	id := q.text("rule")
	if q.err != nil {
		return nil, q.err
	}
	s := h.options.Leases()
	answer := &LeasesAnswer{Messages: s.Messages, Keys: s.Keys, Rules: []RuleLease{}}
	for _, n := range s.Names {
		if id == "" || n.Name == id {
			answer.Rules = append(answer.Rules, RuleLease{n.Name, n.Local, n.Denied, n.Asked, n.Leased, n.Returned, n.Lost})
		}
	}
	return answer, nil
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
	if v, ok := o.Editor.InForce(); ok && v.Number == version {
		answer.Rules.WrittenAt = unixOf(v.Time)
	}
	if o.Alerts != nil {
		answer.Alerts = alertsNow(o.Alerts.Active())
	}
	if o.Stats != nil {
		answer.Denied = h.deniedNow(c.r.Context(), now)
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
	a.Active, a.Latest = len(loud), readableAlerts(loud[:min(len(loud), maxNow)])
	a.Quiet = readableAlerts(a.Quiet[:min(len(a.Quiet), maxNow)])
	return a
}

// deniedNow finds how much is denied, and who most.
func (h *Handler) deniedNow(ctx context.Context, now time.Time) *NowDenied {
	d := &NowDenied{Window: int64(recently / time.Second)}
	from, to := now.Add(slot-recently-1).Truncate(slot), now.Add(time.Second)
	err := h.inTurn(ctx, maxFirst, func(ctx context.Context) error {
		sum, err := h.options.Stats.Summary(ctx, from, to)
		if err != nil {
			return err
		}
		who, err := alert.Accuse(ctx, h.options.Stats, from, to)
		if err != nil {
			return err
		}
		most, left := int64(0), int64(0)
		for _, r := range sum.Rules {
			if r.Rule == archive.Other {
				continue
			}
			most = max(most, r.Denied)
			if open := r.Denied - who.DecidedOf(func(c *stats.Client) int64 { return deniedBy(c, r.Rule) }); open > left {
				left, d.Rule = open, r.Rule
			}
		}
		// Of requests that were denied without the store, those count that a local limit denied, as
		// in rankings.
		d.Denied = max(sum.Denied, min(sum.Denied+sum.DegradedDenied, max(most, who.All.Total)))
		decided := min(d.Denied, who.DecidedOf(alert.Surely))
		d.Denied -= decided
		d.Requests, d.Local = max(d.Denied, sum.Requests-sum.Blocked-decided), sum.Local || who.All.Local
		d.Share, d.High = shareOf(d.Denied, d.Requests)
		if who.Client != nil {
			d.Client = clientNow(who.Client, who.Details)
			d.Client.Sampling = who.All.Sampling
			_, d.Client.High = shareOf(alert.Surely(who.Client), d.Requests)
			if who.Most != nil {
				d.Client.Most = readableEntry(*who.Most)
			}
		}
		if since := h.options.Stats.Health().CompleteSince; since.After(from) && !d.Local {
			d.CompleteSince = unixOf(since)
		}
		table, _ := h.options.Engine.Rules()
		for _, c := range who.Decided {
			if len(d.Blocked) < maxNow && table.Blocks(c.Key) {
				d.Blocked = append(d.Blocked, *readableEntry(c.Entry))
			}
		}
		return nil
	})
	if err != nil {
		return &NowDenied{Window: d.Window, Unavailable: true}
	}
	return d
}

// shareOf is the share of denied requests, and whether it is high.
func shareOf(denied, all int64) (share float64, high bool) {
	share = float64(denied) / float64(max(all, 1))
	return share, denied >= highDenied && share >= highShare
}

// deniedBy is how many requests of a client a rule denied.
func deniedBy(c *stats.Client, id string) int64 {
	at := slices.IndexFunc(c.Rules, func(r stats.RuleCount) bool { return r.Rule == id })
	if at < 0 {
		return 0
	}
	return c.Rules[at].Count
}

func readableEntry(e archive.Entry) *archive.Entry {
	e.Key = readable(e.Key)
	return &e
}

// clientNow is a client with the rule and the endpoint of most of its denials.
func clientNow(who *stats.Client, details []archive.Denial) *NowClient {
	c := &NowClient{Entry: who.Entry, LastAt: who.Last.Unix(), Rule: alert.RuleOf(who)}
	c.Key = readable(c.Key)
	for _, d := range details { // rankings know only the ten seconds
		if !d.Shadow {
			c.LastAt = max(c.LastAt, int64(d.At)/time.Second.Microseconds())
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
