package redis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
)

// link is the connection to Redis, which may be made anew. Either the client is the
// caller's, or connect makes one: then it need not be there from the beginning.
type link struct {
	current atomic.Pointer[rueidis.Client]
	connect func() (rueidis.Client, error)
	cluster bool
}

var errNotConnected = fmt.Errorf("redis: %w: there is no connection yet", weir.ErrUnavailable)

func (l *link) client() (rueidis.Client, error) {
	if c := l.current.Load(); c != nil {
		return *c, nil
	}
	return nil, errNotConnected
}

// probe asks whether there are such keys, and reports of which it was told
// anything. When there is no answer at all, it tries a new connection: the old one
// may lead to a machine that is gone without a word, or to what is no longer the
// master.
func (l *link) probe(keys []string) []bool {
	answers := make([]bool, len(keys))
	if client, err := l.client(); err == nil && exist(client, keys, answers) {
		return answers
	}
	if l.renew() {
		if client, err := l.client(); err == nil {
			exist(client, keys, answers)
		}
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

// renew makes a new connection, if it is ours to make, and takes leave of the old
// one. A cluster's client knows by itself when its map is old, and some of its
// connections may be in good use.
func (l *link) renew() bool {
	if l.connect == nil || l.cluster && l.current.Load() != nil {
		return false
	}
	client, err := l.connect()
	if err != nil {
		if client != nil { // one that could connect later
			client.Close()
		}
		return false
	}
	if old := l.current.Swap(&client); old != nil {
		go (*old).Close() // it may wait for answers that never come
	}
	return true
}

func (l *link) close() {
	if c := l.current.Load(); c != nil && l.connect != nil {
		(*c).Close()
	}
}
