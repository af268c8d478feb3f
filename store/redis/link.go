package redis

import (
	"context"
	"time"

	"github.com/weirhq/weir/internal/redislink"
)

// link is the connection to Redis. If its client is the store's own, it may be made again.
type link struct {
	client  Client
	made    *redislink.Link // nil if the client is of another library
	cluster bool
	patient time.Duration // how long a probe waits for an answer
}

// ownLink is a link by rueidis.
func ownLink(made *redislink.Link, cluster bool, timeout time.Duration) link {
	l := newLink(native{made, cluster}, cluster, timeout)
	l.made = made
	return l
}

func newLink(client Client, cluster bool, timeout time.Duration) link {
	return link{client: client, cluster: cluster, patient: min(max(minProbe, timeout), maxProbe)}
}

// probe asks whether there are such keys, and reports of which it was told
// anything. When there is no answer at all, it tries a new connection; but a cluster's
// client knows by itself when its map is old, and some of its connections may be in good
// use.
func (l *link) probe(keys []string) []bool {
	answers := make([]bool, len(keys))
	if l.exist(keys, answers) || l.made == nil || l.cluster && l.made.Current() != nil {
		return answers
	}
	if l.made.Renew() == nil {
		l.exist(keys, answers)
	}
	return answers
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

// exist asks for all keys at once, and reports whether any answer came.
func (l *link) exist(keys []string, answers []bool) (some bool) {
	ctx, cancel := context.WithTimeout(context.Background(), l.patient)
	defer cancel()
	for i, err := range l.client.Exists(ctx, keys) {
		answers[i] = ready(err)
		some = some || answers[i]
	}
	return some
}

// ready reports whether an answer came from a Redis that can be used.
func ready(err error) bool {
	_, replied := replyOf(err)
	return err == nil || replied && !saysAny(err, "LOADING", "CLUSTERDOWN", "TRYAGAIN")
}
