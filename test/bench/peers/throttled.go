package peers

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

// throttledInMemory is throttled/throttled with its memory store, unbounded:
// with a bound it keeps an LRU list behind one lock and is slower.
func throttledInMemory() Contestant {
	return Contestant{
		Name:    "throttled (GCRA)",
		Promise: "token bucket as one timestamp; keys are never forgotten",
		Key:     "refers to the caller's string",
		New: func(limit Limit, _ int) Limiter {
			return newGCRA(must(memstore.NewCtx(0)), limit)
		},
	}
}

// throttledOnRedis keeps the timestamp in Redis and the arithmetic here.
func throttledOnRedis() goRedisPeer {
	return goRedisPeer{
		Contestant{
			Name:    "throttled (GCRA)",
			Promise: "token bucket as one timestamp; two round trips, and two more after each lost race",
			Key:     "throttled:KEY, a number",
		},
		func(client redis.UniversalClient, limit Limit) Limiter {
			return newGCRA(must(goredisstore.NewCtx(client, "throttled:")), limit)
		},
	}
}

func newGCRA(store throttled.GCRAStoreCtx, limit Limit) Limiter {
	gcra := must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(limit.N, limit.Period),
		MaxBurst: limit.N - 1, // what comes on top of the first
	}))
	// By default it gives up after ten lost races; contention should show as
	// time, not as errors.
	gcra.SetMaxCASAttemptsLimit(1 << 20)
	return by(limit.N, func(key string, units int) bool {
		limited, _, err := gcra.RateLimitCtx(context.Background(), key, units)
		check(err)
		return !limited
	})
}
