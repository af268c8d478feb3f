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
	Details []archive.Denial // of Client, a sample, without those for which the store was unavailable
}

// maxAccused is how many of the most denied clients are looked at for one to act on.
const maxAccused = 10

// Accuse finds who is denied most. Clients on the lists of the rules are left out, and those who
// were denied only from addresses on the lists: somebody has already decided about them. So are
// clients that were denied by other keys of their requests, which are ranked themselves.
func Accuse(ctx context.Context, d Denials, from, to time.Time) (*Accused, error) {
	all, err := d.Clients(ctx, stats.ClientsQuery{From: from, To: to, By: stats.ByDenied, N: maxAccused})
	if err != nil {
		return nil, err
	}
	open := slices.DeleteFunc(slices.Clone(all.Clients), func(c stats.Client) bool {
		own := len(c.Rules) == 0 || slices.ContainsFunc(c.Rules, func(r stats.RuleCount) bool { return !r.Other && !r.Shadow })
		return !own || d.Listed(c.Key)
	})
	for len(open) > 0 {
		at := culprit(open)
		details, err := d.Denials(ctx, stats.LatestQuery{Key: open[at].Key, N: stats.MaxLatest, Since: from})
		if err != nil {
			return nil, err
		}
		events := slices.DeleteFunc(details.Events, func(e archive.Denial) bool { return e.Degraded })
		if decided(d, events) {
			open = slices.Delete(open, at, at+1)
			continue
		}
		a := &Accused{All: all, Client: &open[at], Details: events}
		if open[0].Count > a.Client.Count {
			a.Most = &open[0].Entry
		}
		return a, nil
	}
	return &Accused{All: all}, nil
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
