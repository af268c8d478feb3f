package peers

import (
	"context"
	"io"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/store/redis/goredis"
)

// WeirHeadline is the contestant that the aims are about, and WeirOnGoRedis the same on
// a client of go-redis.
const (
	WeirHeadline  = "weir token_bucket"
	WeirOnGoRedis = "weir token_bucket, go-redis"
)

// weirsOnRedis are all algorithms on the Redis store, the headline on go-redis, and a
// request that has three limits to pass.
func weirsOnRedis(addr string) []Contestant {
	var all []Contestant
	for _, a := range algorithms() {
		c := weirOnRedis(opened(addr), func(limit Limit) []weir.Limit {
			return []weir.Limit{{Algorithm: a, N: int64(limit.N), Period: limit.Period}}
		})
		c.Name, c.Promise = "weir "+a.String(), promises[a]
		c.Key = "weir:KIND{KEY}, " + stateOf(a)
		if a == weir.SlidingLog {
			c.Admit = redisLogThatAdmits
			c.Note = "a log cannot have a huge N: where all are admitted it has 10 000 units per 10 ms × keys, of which some tens are in the log of one key among many, and some thousands in that of a single one"
		}
		all = append(all, c)
		if c.Name == WeirHeadline {
			lent := weirOnRedis(onGoRedis(addr), func(limit Limit) []weir.Limit {
				return []weir.Limit{{Algorithm: a, N: int64(limit.N), Period: limit.Period}}
			})
			lent.Name, lent.Promise, lent.Key = WeirOnGoRedis, c.Promise, c.Key
			all = append(all, lent)
		}
	}
	three := weirOnRedis(opened(addr), func(limit Limit) []weir.Limit {
		n := int64(limit.N)
		return []weir.Limit{
			{Name: "user", Algorithm: weir.TokenBucket, N: n, Period: limit.Period},
			{Name: "address", Algorithm: weir.FixedWindow, N: n, Period: time.Hour},
			{Name: "tenant", Algorithm: weir.SlidingWindow, N: n, Period: 24 * time.Hour},
		}
	})
	three.Name = "weir three limits"
	three.Promise = "token_bucket, fixed_window 1h and sliding_window 1d on three keys; all or none"
	three.Key = "three of weir:NAME:KIND{KEY}, four numbers each"
	return append(all, three)
}

func stateOf(a weir.Algorithm) string {
	switch a {
	case weir.SlidingLog:
		return "four numbers and one for each unit"
	case weir.SlidingBuckets:
		return "four numbers and one for each sub-window"
	}
	return "four numbers"
}

// opened is a store as weir serve has it.
func opened(addr string) func() (*redis.Store, io.Closer) {
	return func() (*redis.Store, io.Closer) {
		return must(redis.Open("redis://" + addr + "?timeout=" + patience.String())), nil
	}
}

// onGoRedis is a store on a client of go-redis, set as the package advises.
func onGoRedis(addr string) func() (*redis.Store, io.Closer) {
	return func() (*redis.Store, io.Closer) {
		client := goredisclient.NewClient(&goredisclient.Options{Addr: addr, PoolSize: Callers, ReadTimeout: patience, ContextTimeoutEnabled: true})
		return must(goredis.New(client, redis.Options{Timeout: patience})), client
	}
}

func weirOnRedis(store func() (*redis.Store, io.Closer), limits func(Limit) []weir.Limit) Contestant {
	return Contestant{
		Weir: true,
		New: func(limit Limit, _ int) Limiter {
			l := weirRedisLimiter{n: int64(limit.N)}
			l.store, l.client = store()
			for _, limit := range limits(limit) {
				l.limits = append(l.limits, must(limit.Compile()))
			}
			return l
		},
	}
}

// redisLogThatAdmits is a limit that is not reached by less than a million
// checks a second, nor by all callers at one instant, and yet keeps the log in
// use, for long enough that it is not forgotten when the machine does something
// else for a moment.
func redisLogThatAdmits(keys int) Limit {
	return Limit{N: 10_000, Period: time.Duration(keys) * 10 * time.Millisecond}
}

type weirRedisLimiter struct {
	store  *redis.Store
	client io.Closer // unless the store has its own
	limits []*weir.Compiled
	n      int64
}

// others make more keys of a client's one, for a request with several limits.
var others = [...]string{"", "@address", "@tenant"}

func (l weirRedisLimiter) take(key string, cost int64) bool {
	ops := make([]weir.Op, len(l.limits))
	for i, limit := range l.limits {
		ops[i] = weir.Op{Key: key + others[i], Limit: limit, Cost: cost}
	}
	return weir.Admitted(must(l.store.Take(context.Background(), nil, ops...)))
}

func (l weirRedisLimiter) Take(key string) bool { return l.take(key, 1) }
func (l weirRedisLimiter) Drain(key string)     { l.take(key, l.n) }

func (l weirRedisLimiter) Close() {
	l.store.Close()
	if l.client != nil {
		l.client.Close()
	}
}
