package peers

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	store "github.com/ulule/limiter/v3/drivers/store/redis"
)

// ululeInMemory is ulule/limiter with its memory store. Its cleaner walks all keys
// every thirty seconds by default; an hour keeps it out of the measurement.
func ululeInMemory() Contestant {
	return Contestant{
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
}

// ululeOnRedis is ulule/limiter with its Redis store, a counter in a script.
func ululeOnRedis() goRedisPeer {
	return goRedisPeer{
		Contestant{
			Name:    "ulule/limiter",
			Promise: "fixed window from the key's first request, denials counted; up to 2N around a boundary",
			Key:     "limiter:KEY, a number",
		},
		func(client redis.UniversalClient, limit Limit) Limiter {
			return newUlule(must(store.NewStore(client)), limit)
		},
	}
}

// newUlule need not be stopped: a finalizer stops the cleaner of the memory store.
func newUlule(store limiter.Store, limit Limit) Limiter {
	l := limiter.New(store, limiter.Rate{Limit: int64(limit.N), Period: limit.Period})
	return Limiter{
		Take:  func(key string) bool { return !must(l.Get(context.Background(), key)).Reached },
		Drain: func(key string) { must(l.Increment(context.Background(), key, l.Rate.Limit)) },
	}
}
