package redis

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
)

// link is the connection to Redis. If its client is the store's own, it may be made again.
type link struct {
	client  Client
	made    *redislink.Link // nil if the client is of another library
	cluster bool
	timeout time.Duration // of a call
	patient time.Duration // how long a probe of what is down waits for an answer
}

// ownLink is a link by rueidis.
func ownLink(made *redislink.Link, cluster bool, timeout time.Duration) link {
	l := newLink(native{made, cluster}, cluster, timeout)
	l.made = made
	return l
}

func newLink(client Client, cluster bool, timeout time.Duration) link {
	return link{client: client, cluster: cluster, timeout: timeout, patient: min(max(minProbe, timeout), maxProbe)}
}

// probe asks whether there are such keys, and returns the error of each. When there is no answer at all
// from what is down, it tries a new connection; but a cluster's client knows by itself when its map is old,
// and some of its connections may be in good use.
func (l *link) probe(keys []string, down bool) []error {
	if !down {
		return l.exist(keys, max(l.patient, l.timeout))
	}
	errs := l.exist(keys, l.patient)
	if slices.ContainsFunc(errs, ready) || l.made == nil {
		return errs
	}
	if _, err := l.made.Current(); l.cluster && err == nil {
		return errs
	}
	if l.made.Renew() == nil {
		return l.exist(keys, l.patient)
	}
	return errs
}

// close ends the connection if the store has made it.
func (l *link) close() {
	if l.made != nil {
		l.made.Close()
	}
}

// A probe waits longer than a check may take, because a client may have to connect first:
// where that takes several round trips, it would never be back otherwise. But it does not
// wait long for a machine that has disappeared.
const minProbe, maxProbe = 500 * time.Millisecond, 2 * time.Second

// exist asks for all keys at once.
func (l *link) exist(keys []string, patience time.Duration) []error {
	due := time.Now().Add(patience)
	ctx, cancel := context.WithDeadline(context.Background(), due)
	defer cancel()
	errs := l.client.Exists(ctx, keys)
	if overslept(patience, due, time.Now()) {
		for i, err := range errs {
			if !ready(err) {
				errs[i] = weir.ErrBusy
			}
		}
	}
	return errs
}

// ready reports whether an answer came from a Redis that can be used.
func ready(err error) bool {
	_, replied := replyOf(err)
	return err == nil || replied && !saysAny(err, "LOADING", "CLUSTERDOWN", "TRYAGAIN")
}
