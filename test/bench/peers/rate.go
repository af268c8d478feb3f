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
			return &rateMap{
				rate:  rate.Limit(float64(limit.N) / limit.Period.Seconds()),
				burst: limit.N,
			}
		},
	}
}

type rateMap struct {
	rate  rate.Limit
	burst int
	keys  sync.Map // string to *rate.Limiter
}

func (m *rateMap) of(key string) *rate.Limiter {
	if l, ok := m.keys.Load(key); ok {
		return l.(*rate.Limiter)
	}
	l, _ := m.keys.LoadOrStore(key, rate.NewLimiter(m.rate, m.burst))
	return l.(*rate.Limiter)
}

func (m *rateMap) Take(key string) bool { return m.of(key).Allow() }
func (m *rateMap) Drain(key string)     { m.of(key).AllowN(time.Now(), m.burst) }
func (m *rateMap) Close()               {}
