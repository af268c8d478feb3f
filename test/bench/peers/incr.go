package peers

import (
	"context"

	"github.com/redis/rueidis"
)

// RawIncr is the name of the yardstick.
const RawIncr = "INCR alone"

// rawIncr is the least that a counter in Redis can cost: one command, no script,
// by the client that weir uses. It counts and forgets nothing.
func rawIncr(addr string) Contestant {
	return Contestant{
		Name:    RawIncr,
		Promise: "counts for ever; the yardstick, and no limiter",
		Key:     "incr:KEY, a number without a time to live",
		New: func(limit Limit, _ int) Limiter {
			return incrLimiter{newRueidis(addr), int64(limit.N)}
		},
	}
}

type incrLimiter struct {
	client rueidis.Client
	n      int64
}

func (l incrLimiter) Take(key string) bool {
	return must(l.client.Do(context.Background(), l.client.B().Incr().Key("incr:"+key).Build()).AsInt64()) <= l.n
}

func (l incrLimiter) Drain(key string) {
	must(l.client.Do(context.Background(), l.client.B().Incrby().Key("incr:"+key).Increment(l.n).Build()).AsInt64())
}

func (l incrLimiter) Close() { l.client.Close() }
