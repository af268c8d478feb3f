package peers

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// xTimeRate is what most Go programs begin with: one rate.Limiter a key in a
// sync.Map. Nothing ever leaves that map; a program would have to add that.
func xTimeRate() Contestant {
	return Contestant{
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
}
