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
		Promise: "fixed window from the key's first request, refusals counted; up to 2N around a boundary",
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
			Promise: "fixed window from the key's first request, refusals counted; up to 2N around a boundary",
			Key:     "limiter:KEY, a number",
		},
		func(client redis.UniversalClient, limit Limit) Limiter {
			return newUlule(must(store.NewStore(client)), limit)
		},
	}
}

func newUlule(store limiter.Store, limit Limit) *ululeLimiter {
	return &ululeLimiter{limiter.New(store, limiter.Rate{Limit: int64(limit.N), Period: limit.Period})}
}

type ululeLimiter struct{ limiter *limiter.Limiter }

func (l *ululeLimiter) Take(key string) bool {
	c, err := l.limiter.Get(context.Background(), key)
	if err != nil {
		panic(err)
	}
	return !c.Reached
}

func (l *ululeLimiter) Drain(key string) {
	if _, err := l.limiter.Increment(context.Background(), key, l.limiter.Rate.Limit); err != nil {
		panic(err)
	}
}

// Close does nothing: a finalizer stops the cleaner of the memory store.
func (l *ululeLimiter) Close() {}
