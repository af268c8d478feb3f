package peers

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

// GoLimiter is sethvargo/go-limiter: a map of counters that start again with
// every interval since the key's first request. The sweep, every six hours by
// default, does not come within a measurement.
var GoLimiter = Contestant{
	Name:    "sethvargo/go-limiter",
	Promise: "fixed window from the key's first request; up to 2N around a boundary",
	Key:     "refers to the caller's string",
	New: func(limit Limit, keys int) Limiter {
		store := must(memorystore.New(&memorystore.Config{
			Tokens:       uint64(limit.N),
			Interval:     limit.Period,
			InitialAlloc: keys,
		}))
		take := func(key string) bool {
			_, _, _, ok, err := store.Take(context.Background(), key)
			check(err)
			return ok
		}
		return Limiter{
			Take: take,
			// A bucket of one token, which is taken: the store cannot take several
			// at once, and a bucket denies in the same way whatever its size was.
			Drain: func(key string) {
				check(store.Set(context.Background(), key, 1, limit.Period))
				take(key)
			},
			Stop: func() { check(store.Close(context.Background())) },
		}
	},
}

// xTimeRate is what most Go programs begin with: one rate.Limiter a key in a
// sync.Map. Nothing ever leaves that map; a program would have to add that.
var xTimeRate = Contestant{
	Name:    "x/time/rate + sync.Map",
	Promise: "token bucket in float64; keys are never forgotten",
	Key:     "refers to the caller's string",
	New: func(limit Limit, _ int) Limiter {
		per := rate.Limit(float64(limit.N) / limit.Period.Seconds())
		var keys sync.Map // string to *rate.Limiter
		of := func(key string) *rate.Limiter {
			if l, ok := keys.Load(key); ok {
				return l.(*rate.Limiter)
			}
			l, _ := keys.LoadOrStore(key, rate.NewLimiter(per, limit.N))
			return l.(*rate.Limiter)
		}
		return Limiter{
			Take:  func(key string) bool { return of(key).Allow() },
			Drain: func(key string) { of(key).AllowN(time.Now(), limit.N) },
		}
	},
}

// httpRate is go-chi/httprate without HTTP. OnLimit is the lowest call that
// decides: below it are a counter that only counts and a Status that only
// looks, between which anybody could slip through. The header names are empty,
// so no response is needed and none is written; that it still prints two or
// three numbers for the headers is part of its decision, and its allocations.
var httpRate = Contestant{
	Name:    "go-chi/httprate",
	Promise: "two-counter sliding window, one lock for all keys",
	Key:     "keeps a 64-bit hash; keys that collide share a count",
	New: func(limit Limit, _ int) Limiter {
		limiter := httprate.NewRateLimiter(limit.N, limit.Period, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
		one := new(http.Request)
		all := one.WithContext(httprate.WithIncrement(context.Background(), limit.N))
		return Limiter{
			Take:  func(key string) bool { return !limiter.OnLimit(nil, one, key) },
			Drain: func(key string) { limiter.OnLimit(nil, all, key) },
		}
	},
}

// throttledInMemory is throttled/throttled with its memory store, unbounded:
// with a bound it keeps an LRU list behind one lock and is slower.
var throttledInMemory = Contestant{
	Name:    "throttled (GCRA)",
	Promise: "token bucket as one timestamp; keys are never forgotten",
	Key:     "refers to the caller's string",
	New: func(limit Limit, _ int) Limiter {
		return newGCRA(must(memstore.NewCtx(0)), limit)
	},
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

// ululeInMemory is ulule/limiter with its memory store. Its cleaner walks all keys
// every thirty seconds by default; an hour keeps it out of the measurement.
var ululeInMemory = Contestant{
	Name:    "ulule/limiter",
	Promise: "fixed window from the key's first request, denials counted; up to 2N around a boundary",
	Key:     "copies it behind a prefix",
	New: func(limit Limit, _ int) Limiter {
		inMemory := memory.NewStoreWithOptions(limiter.StoreOptions{
			Prefix:          limiter.DefaultPrefix,
			CleanUpInterval: time.Hour,
		})
		return newUlule(inMemory, limit)
	},
}

// newUlule need not be stopped: a finalizer stops the cleaner of the memory store.
func newUlule(store limiter.Store, limit Limit) Limiter {
	l := limiter.New(store, limiter.Rate{Limit: int64(limit.N), Period: limit.Period})
	return Limiter{
		Take:  func(key string) bool { return !must(l.Get(context.Background(), key)).Reached },
		Drain: func(key string) { must(l.Increment(context.Background(), key, l.Rate.Limit)) },
	}
}
