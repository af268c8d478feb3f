package peers

import (
	"context"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/store/redis/goredis"
)

// promises say what each of weir's algorithms keeps, on any store.
var promises = map[weir.Algorithm]string{
	weir.TokenBucket:    "token bucket in whole numbers; at most burst + N in a period",
	weir.LeakyBucket:    "leaky bucket; at most burst + N in a period",
	weir.FixedWindow:    "fixed window; up to 2N around a boundary",
	weir.SlidingWindow:  "two-counter sliding window; up to 2N for one who knows its boundaries",
	weir.SlidingLog:     "exact: never more than N in any period",
	weir.SlidingBuckets: "sixty sub-windows; never more than N in any period",
}

// algorithms are all of weir's, with the headline first.
func algorithms() []weir.Algorithm {
	all := []weir.Algorithm{weir.TokenBucket}
	for _, a := range weir.Algorithms() {
		if a != weir.TokenBucket {
			all = append(all, a)
		}
	}
	return all
}

// weirsInMemory are all algorithms, and the shaping queue, on the memory store.
func weirsInMemory() []Contestant {
	var all []Contestant
	for _, a := range algorithms() {
		all = append(all, weirWith(weir.Limit{Algorithm: a}, promises[a]))
	}
	shape := weir.Limit{Algorithm: weir.LeakyBucket, Shape: true}
	return append(all, weirWith(shape, "a queue with a constant outflow; Take tells how long to hold"))
}

func weirWith(kind weir.Limit, promise string) Contestant {
	c := Contestant{
		Name:    "weir " + kind.Algorithm.String(),
		Weir:    true,
		Promise: promise,
		Key:     "keeps a seeded 128-bit hash",
		New: func(limit Limit, keys int) Limiter {
			l := kind
			l.N, l.Period = int64(limit.N), limit.Period
			// The default, or room for half as many keys again, so that no key is evicted; the
			// peers evict none either. A smaller store would have fewer locks.
			store := memory.New(memory.Options{MaxKeys: max(memory.DefaultMaxKeys, keys+keys/2)})
			limiter := must(weir.NewLimiter(store, l))
			take := by(l.N, func(key string, units int64) bool {
				return must(limiter.Take(context.Background(), key, units)).Allowed
			})
			if !l.Shape { // which has to ask for the whole decision, with the delay
				take.Take = func(key string) bool { return must(limiter.Allow(context.Background(), key)) }
			}
			return take
		},
	}
	if kind.Shape {
		c.Name += " shape"
	}
	if kind.Algorithm == weir.SlidingLog {
		c.Allow = logThatAllows
		c.Note = "a log cannot have a huge N: where all are allowed it has 100 units per 2 µs × keys (of many keys, per month), of which some tens are in the log at any time"
	}
	return c
}

// logThatAllows is a limit that is never reached at the speed at which a
// harness can ask, up to 50 million a second, and yet keeps the log in use. Of
// very many keys none is asked for more than a few dozen times in a whole run,
// and the log should not be forgotten between two rounds.
func logThatAllows(keys int) Limit {
	if keys >= 100_000 {
		return Limit{N: 100, Period: Month}
	}
	return Limit{N: 100, Period: time.Duration(keys) * 2 * time.Microsecond}
}

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
		limits := func(limit Limit) []weir.Limit {
			return []weir.Limit{{Algorithm: a, N: int64(limit.N), Period: limit.Period}}
		}
		c := weirOnRedis(addr, opened, limits)
		c.Name, c.Promise = "weir "+a.String(), promises[a]
		c.Key = "weir:KIND{KEY}, " + stateOf(a)
		if a == weir.SlidingLog {
			c.Allow = redisLogThatAllows
			c.Note = "a log cannot have a huge N: where all are allowed it has 10 000 units per 10 ms × keys, of which some tens are in the log of one key among many, and some thousands in that of a single one"
		}
		all = append(all, c)
		if c.Name == WeirHeadline {
			lent := weirOnRedis(addr, onGoRedis, limits)
			lent.Name, lent.Promise, lent.Key = WeirOnGoRedis, c.Promise, c.Key
			all = append(all, lent)
		}
	}
	three := weirOnRedis(addr, opened, func(limit Limit) []weir.Limit {
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

// opened is a store as weir serve has it, which is closed with its client.
func opened(addr string) (store *redis.Store, stop func()) {
	store = must(redis.Open("redis://" + addr + "?timeout=" + patience.String()))
	return store, store.Close
}

// onGoRedis is a store on a client of go-redis, set as the package advises.
func onGoRedis(addr string) (store *redis.Store, stop func()) {
	client := goredisclient.NewClient(&goredisclient.Options{Addr: addr, PoolSize: Callers, ReadTimeout: patience, ContextTimeoutEnabled: true})
	store = must(goredis.New(client, redis.Options{Timeout: patience}))
	return store, func() {
		store.Close()
		client.Close()
	}
}

// others make more keys of a client's one, for a request with several limits.
var others = [...]string{"", "@address", "@tenant"}

func weirOnRedis(addr string, open func(addr string) (*redis.Store, func()), limits func(Limit) []weir.Limit) Contestant {
	return Contestant{
		Weir: true,
		New: func(limit Limit, _ int) Limiter {
			store, stop := open(addr)
			var compiled []*weir.Compiled
			for _, l := range limits(limit) {
				compiled = append(compiled, must(l.Compile()))
			}
			l := by(int64(limit.N), func(key string, units int64) bool {
				ops := make([]weir.Op, len(compiled))
				for i, limit := range compiled {
					ops[i] = weir.Op{Key: key + others[i], Limit: limit, Cost: units}
				}
				return weir.Allowed(must(store.Take(context.Background(), nil, ops...)))
			})
			l.Stop = stop
			return l
		},
	}
}

// redisLogThatAllows is a limit that is not reached by less than a million
// checks a second, nor by all callers at one instant, and yet keeps the log in
// use, for long enough that it is not forgotten when the machine does something
// else for a moment.
func redisLogThatAllows(keys int) Limit {
	return Limit{N: 10_000, Period: time.Duration(keys) * 10 * time.Millisecond}
}
