package peers

import (
	"context"
	"net/http"

	"github.com/go-chi/httprate"
)

// httpRate is go-chi/httprate without HTTP. OnLimit is the lowest call that
// decides: below it are a counter that only counts and a Status that only
// looks, between which anybody could slip through. The header names are empty,
// so no response is needed and none is written; that it still prints two or
// three numbers for the headers is part of its decision, and its allocations.
func httpRate() Contestant {
	return Contestant{
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
}
