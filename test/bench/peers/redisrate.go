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
			limiter := redis_rate.NewLimiter(client)
			all := redis_rate.Limit{Rate: limit.N, Burst: limit.N, Period: limit.Period}
			return by(limit.N, func(key string, units int) bool {
				return must(limiter.AllowN(context.Background(), key, all, units)).Allowed > 0
			})
		},
	}
}
