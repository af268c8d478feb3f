package peers

import (
	"context"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	store "github.com/ulule/limiter/v3/drivers/store/redis"
)

// OnRedis returns the yardstick, the peers, then weir's algorithms with the headline
// first, all on the Redis at addr. What a limiter has stored outlives it: empty the
// server before the next one with another limit. Only the two variants of a peer share
// their keys, as two programs would.
func OnRedis(addr string) []Contestant {
	return slices.Concat(
		[]Contestant{rawIncr(addr)},
		bothWays(addr, redisRate), bothWays(addr, throttledOnRedis), bothWays(addr, ululeOnRedis),
		weirsOnRedis(addr),
	)
}

// Callers is how many goroutines the clients are set up for.
const Callers = 128

// patience is what a client waits for an answer: long enough for a busy machine
// to slow a run down and not to end it.
const patience = 5 * time.Second

// newRueidis returns the client of weir and of the yardstick. A few connections
// serve all goroutines: what waits is sent in one write.
func newRueidis(addr string) rueidis.Client {
	return must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, DisableRetry: true,
	}))
}

// goRedisPeer is a contestant that talks to Redis by go-redis.
type goRedisPeer struct {
	Contestant
	on func(client redis.UniversalClient, limit Limit) Limiter
}

// bothWays returns a peer with a connection for each caller, which is how people
// use it, and on go-redis's autopipeline, which is marked experimental and
// faster for many callers. redis_rate was tried with pools of 8 to 128
// connections, RESP2 and RESP3, and six settings of the autopipeline: of the
// latter, full duplex was the fastest, and the others made no clear difference.
func bothWays(addr string, p goRedisPeer) []Contestant {
	way := func(suffix string, asks func(*redis.Client) redis.UniversalClient) Contestant {
		c := p.Contestant
		c.Name += suffix
		c.New = func(limit Limit, _ int) Limiter {
			client := redis.NewClient(&redis.Options{
				Addr: addr, PoolSize: Callers, PipelinePoolSize: Callers,
				ReadTimeout: patience, WriteTimeout: patience,
			})
			l := p.on(asks(client), limit)
			l.Stop = func() { check(client.Close()) }
			return l
		}
		return c
	}
	return []Contestant{
		way("", func(client *redis.Client) redis.UniversalClient { return client }),
		way(", autopipeline", func(client *redis.Client) redis.UniversalClient {
			return must(client.AutoPipelineWithOptions(&redis.AutoPipelineOptions{FullDuplex: true}))
		}),
	}
}

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
			client, n := newRueidis(addr), int64(limit.N)
			return Limiter{
				Take: func(key string) bool {
					return must(client.Do(context.Background(), client.B().Incr().Key("incr:"+key).Build()).AsInt64()) <= n
				},
				Drain: func(key string) {
					must(client.Do(context.Background(), client.B().Incrby().Key("incr:"+key).Increment(n).Build()).AsInt64())
				},
				Stop: client.Close,
			}
		},
	}
}

// RedisRate is the peer to measure up to.
const RedisRate = "redis_rate"

// redisRate is go-redis/redis_rate: a script a check.
var redisRate = goRedisPeer{
	Contestant{
		Name:    RedisRate,
		Promise: "token bucket as one timestamp in float64 seconds",
		Key:     "rate:KEY, a decimal number",
	},
	func(client redis.UniversalClient, limit Limit) Limiter {
		limiter := redis_rate.NewLimiter(client)
		all := redis_rate.Limit{Rate: limit.N, Burst: limit.N, Period: limit.Period}
		return by(limit.N, func(key string, units int) bool {
			return must(limiter.AllowN(context.Background(), key, all, units)).Allowed > 0
		})
	},
}

// throttledOnRedis keeps the timestamp in Redis and the arithmetic here.
var throttledOnRedis = goRedisPeer{
	Contestant{
		Name:    "throttled (GCRA)",
		Promise: "token bucket as one timestamp; two round trips, and two more after each lost race",
		Key:     "throttled:KEY, a number",
	},
	func(client redis.UniversalClient, limit Limit) Limiter {
		return newGCRA(must(goredisstore.NewCtx(client, "throttled:")), limit)
	},
}

// ululeOnRedis is ulule/limiter with its Redis store, a counter in a script.
var ululeOnRedis = goRedisPeer{
	Contestant{
		Name:    "ulule/limiter",
		Promise: "fixed window from the key's first request, denials counted; up to 2N around a boundary",
		Key:     "limiter:KEY, a number",
	},
	func(client redis.UniversalClient, limit Limit) Limiter {
		return newUlule(must(store.NewStore(client)), limit)
	},
}
