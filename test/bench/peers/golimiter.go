package peers

import (
	"context"

	"github.com/sethvargo/go-limiter"
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
			return &goLimiterStore{store: store, limit: limit}
		},
	}
}

type goLimiterStore struct {
	store limiter.Store
	limit Limit
}

func (s *goLimiterStore) Take(key string) bool {
	_, _, _, ok, err := s.store.Take(context.Background(), key)
	if err != nil {
		panic(err)
	}
	return ok
}

// Drain gives the key a bucket of one token and takes it. The store cannot take
// several at once; a bucket refuses in the same way whatever its size was.
func (s *goLimiterStore) Drain(key string) {
	if err := s.store.Set(context.Background(), key, 1, s.limit.Period); err != nil {
		panic(err)
	}
	s.Take(key)
}

func (s *goLimiterStore) Close() {
	if err := s.store.Close(context.Background()); err != nil {
		panic(err)
	}
}
