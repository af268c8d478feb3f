package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
)

// link is the connection to Redis, which may be made again.
type link struct {
	*redislink.Link
	cluster bool
}

var errNotConnected = fmt.Errorf("redis: %w: there is no connection yet", weir.ErrUnavailable)

func (l *link) client() (rueidis.Client, error) {
	if c := l.Current(); c != nil {
		return c, nil
	}
	return nil, errNotConnected
}

// probe asks whether there are such keys, and reports of which it was told
// anything. When there is no answer at all, it tries a new connection; but a cluster's
// client knows by itself when its map is old, and some of its connections may be in good
// use.
func (l *link) probe(keys []string) []bool {
	answers := make([]bool, len(keys))
	client := l.Current()
	if client != nil && (exist(client, keys, answers) || l.cluster) {
		return answers
	}
	if l.Renew() == nil {
		exist(l.Current(), keys, answers)
	}
	return answers
}

// probeTimeout is longer than a check may take, for a client may have to connect
// first: where that takes several round trips, it would never be back otherwise.
const probeTimeout = 500 * time.Millisecond

// exist asks for all keys at once, and reports whether any answer came.
func exist(client rueidis.Client, keys []string, answers []bool) (some bool) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	commands := make(rueidis.Commands, len(keys))
	for i, key := range keys {
		commands[i] = client.B().Exists().Key(key).Build()
	}
	for i, r := range client.DoMulti(ctx, commands...) {
		answers[i] = ready(r.Error())
		some = some || answers[i]
	}
	return some
}

// ready reports whether an answer came from a Redis that can be used.
func ready(err error) bool {
	if reply := (*rueidis.RedisError)(nil); errors.As(err, &reply) {
		return !reply.IsLoading() && !reply.IsClusterDown() && !reply.IsTryAgain()
	}
	return err == nil
}
