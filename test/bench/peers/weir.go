package peers

import (
	"context"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// promises say what each of weir's algorithms keeps, on any store.
var promises = map[weir.Algorithm]string{
	weir.TokenBucket:    "token bucket in whole numbers; at most burst + N in a period",
	weir.LeakyBucket:    "leaky bucket; at most burst + N in a period",
	weir.FixedWindow:    "fixed window; up to 2N around a boundary",
	weir.SlidingWindow:  "two-counter sliding window; up to 2N for one who knows its boundaries",
	weir.SlidingLog:     "exact: never more than N in any period",
	weir.SlidingBuckets: "sixty sub-windows; never more than N in any period",
}

// algorithms are all of weir's, with the headline first.
func algorithms() []weir.Algorithm {
	all := []weir.Algorithm{weir.TokenBucket}
	for _, a := range weir.Algorithms() {
		if a != weir.TokenBucket {
			all = append(all, a)
		}
	}
	return all
}

// weirsInMemory are all algorithms, and the shaping queue, on the memory store.
func weirsInMemory() []Contestant {
	var all []Contestant
	for _, a := range algorithms() {
		all = append(all, weirWith(weir.Limit{Algorithm: a}, promises[a]))
	}
	shape := weir.Limit{Algorithm: weir.LeakyBucket, Shape: true}
	return append(all, weirWith(shape, "a queue with a constant outflow; Take tells how long to hold"))
}

func weirWith(kind weir.Limit, promise string) Contestant {
	c := Contestant{
		Name:    "weir " + kind.Algorithm.String(),
		Weir:    true,
		Promise: promise,
		Key:     "keeps a seeded 128-bit hash",
		New: func(limit Limit, keys int) Limiter {
			l := kind
			l.N, l.Period = int64(limit.N), limit.Period
			// The default, or room for half as many keys again, so that no key is evicted; the
			// peers evict none either. A smaller store would have fewer locks.
			store := memory.New(memory.Options{MaxKeys: max(memory.DefaultMaxKeys, keys+keys/2)})
			limiter := must(weir.NewLimiter(store, l))
			take := by(l.N, func(key string, units int64) bool {
				return must(limiter.Take(context.Background(), key, units)).Allowed
			})
			if !l.Shape { // which has to ask for the whole decision, with the delay
				take.Take = func(key string) bool { return must(limiter.Allow(context.Background(), key)) }
			}
			return take
		},
	}
	if kind.Shape {
		c.Name += " shape"
	}
	if kind.Algorithm == weir.SlidingLog {
		c.Allow = logThatAllows
		c.Note = "a log cannot have a huge N: where all are allowed it has 100 units per 2 µs × keys (of many keys, per month), of which some tens are in the log at any time"
	}
	return c
}

// logThatAllows is a limit that is never reached at the speed at which a
// harness can ask, up to 50 million a second, and yet keeps the log in use. Of
// very many keys none is asked for more than a few dozen times in a whole run,
// and the log should not be forgotten between two rounds.
func logThatAllows(keys int) Limit {
	if keys >= 100_000 {
		return Limit{N: 100, Period: Month}
	}
	return Limit{N: 100, Period: time.Duration(keys) * 2 * time.Microsecond}
}
