package alert

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// Denials are what Accuse looks at: a *stats.Recorder.
type Denials interface {
	Clients(context.Context, stats.ClientsQuery) (*stats.Clients, error)
	Denials(context.Context, stats.LatestQuery) (*stats.Latest[archive.Denial], error)
	Listed(key string) bool
}

// Accused is the client that is denied most, if it is one to act on.
type Accused struct {
	All     *stats.Clients   // the most denied clients
	Client  *stats.Client    // nil if there is none to act on
	Most    *archive.Entry   // of those to act on, one that was denied more often than Client; nil if that is the first
	Details []archive.Denial // of Client, a sample, without those by the block list, or for which the store was unavailable
	Decided []stats.Client   // those about whom somebody has decided
}

// maxAccused is how often the denials of a client are looked at to find one to act on.
const maxAccused = 10

// Accuse finds who is denied most. Clients on the lists of the rules are left out, and those who
// were denied only from addresses on the lists: somebody has already decided about them. So are
// clients that were denied by other keys of their requests, which are ranked themselves.
func Accuse(ctx context.Context, d Denials, from, to time.Time) (*Accused, error) {
	all, err := d.Clients(ctx, stats.ClientsQuery{From: from, To: to, By: stats.ByDenied, N: stats.MaxClients})
	if err != nil {
		return nil, err
	}
	a := &Accused{All: all}
	var open []stats.Client
	for _, c := range all.Clients {
		own := func(r stats.RuleCount) bool { return !r.Other && !r.Shadow }
		if d.Listed(c.Key) {
			a.Decided = append(a.Decided, c)
		} else if len(c.Rules) == 0 || slices.ContainsFunc(c.Rules, own) {
			open = append(open, c)
		}
	}
	for at, looks := 0, 0; at < len(open) && looks < maxAccused; looks++ {
		details, err := d.Denials(ctx, stats.LatestQuery{Key: open[at].Key, N: stats.MaxLatest, Since: from})
		if err != nil {
			return nil, err
		}
		events := slices.DeleteFunc(details.Events, func(e archive.Denial) bool { return e.Degraded || e.Blocked || e.Unknown })
		isUnknown := len(open[at].Rules) == 0 && len(events) == 0 // by what it was denied: few denials, maybe of another key
		if isUnknown || decided(d, events) {
			if !isUnknown {
				a.Decided = append(a.Decided, open[at])
			}
			open, at = slices.Delete(open, at, at+1), 0
			continue
		}
		if next := culprit(open); next != at { // the first one is named, too
			at = next
			continue
		}
		a.Client, a.Details = &open[at], events
		if open[0].Count > a.Client.Count {
			a.Most = &open[0].Entry
		}
		break
	}
	return a, nil
}

// DecidedOf returns how many denials, of those that the function counts, are of clients about whom
// somebody has decided: at least so many. A request is counted for each of its keys, so it is the
// most that keys of one kind have.
func (a *Accused) DecidedOf(count func(*stats.Client) int64) (most int64) {
	sums := map[string]int64{}
	for i := range a.Decided {
		kind := kindOf(a.Decided[i].Key)
		sums[kind] += count(&a.Decided[i])
		most = max(most, sums[kind])
	}
	return most
}

// Surely is how many denials a client had at least.
func Surely(c *stats.Client) int64 { return c.Count - c.Error }

// kindOf returns of which kind a key is, of a rule or of Envoy's descriptors: "ip", "attr:account"
// or "route|user". Different keys of one kind are of different requests.
func kindOf(key string) string {
	pieces := strings.Split(key, "|")
	for i, piece := range pieces {
		attr := len(piece) - len(strings.TrimPrefix(piece, "attr:"))
		pieces[i] = piece[:attr+max(0, strings.IndexAny(piece[attr:], ":="))]
	}
	return strings.Join(pieces, "|")
}

// decided reports whether all addresses from which a client was denied are on lists.
func decided(d Denials, details []archive.Denial) bool {
	return len(details) > 0 && !slices.ContainsFunc(details, func(e archive.Denial) bool { return e.Address == "" || !d.Listed("ip:"+e.Address) })
}

// culprit returns which of the most denied clients to name: the first one, unless an address was
// denied at least half as often. Whoever guesses a password is denied by address and by account;
// the account is whom it is done to.
func culprit(ranked []stats.Client) int {
	for i, c := range ranked {
		if 2*c.Count < ranked[0].Count {
			break
		}
		if strings.HasPrefix(c.Key, "ip:") {
			return i
		}
	}
	return 0
}

// RuleOf returns the rule that denied a client most, or "" if that is not known.
func RuleOf(c *stats.Client) string {
	for _, r := range c.Rules { // those that have its key come first
		if !r.Shadow {
			return r.Rule
		}
	}
	return ""
}
