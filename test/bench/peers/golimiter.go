package peers

import (
	"context"

	"github.com/sethvargo/go-limiter/memorystore"
)

// goLimiter is sethvargo/go-limiter: a map of counters that start again with
// every interval since the key's first request. The sweep, every six hours by
// default, does not come within a measurement.
func goLimiter() Contestant {
	return Contestant{
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
}
