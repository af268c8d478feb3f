package peers

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// RedisRate is the peer to measure up to.
const RedisRate = "redis_rate"

// redisRate is go-redis/redis_rate: a script a check.
func redisRate() goRedisPeer {
	return goRedisPeer{
		Contestant{
			Name:    RedisRate,
			Promise: "token bucket as one timestamp in float64 seconds",
			Key:     "rate:KEY, a decimal number",
		},
		func(client redis.UniversalClient, limit Limit) Limiter {
			return redisRateLimiter{
				redis_rate.NewLimiter(client),
				redis_rate.Limit{Rate: limit.N, Burst: limit.N, Period: limit.Period},
			}
		},
	}
}

type redisRateLimiter struct {
	limiter *redis_rate.Limiter
	limit   redis_rate.Limit
}

func (l redisRateLimiter) Take(key string) bool {
	return must(l.limiter.Allow(context.Background(), key, l.limit)).Allowed > 0
}

func (l redisRateLimiter) Drain(key string) {
	must(l.limiter.AllowN(context.Background(), key, l.limit, l.limit.Burst))
}

func (l redisRateLimiter) Close() {}
