// Package peers puts weir and the limiters that people compare it with behind
// one small interface, so that all can be asked the same questions. Each says what
// it promises and how it is called, and is given its fastest settings. Its tests prove
// that each limits every key by itself: a benchmark of limiters without this proof has
// been published with one empty key throughout.
//
// It measures what one check costs in memory, side by side, and on a Redis. All contestants get
// the same keys, the same limit, the same goroutines and the same order of the keys; on a Redis,
// they get as much time. A figure is the median of the rounds. If a contestant denies a request
// that should be allowed, or the other way round, the run fails.
package peers

import "time"

// Limiter is one contestant with its own memory. Take and Drain are safe for
// concurrent use.
type Limiter struct {
	// Take asks for one unit of the key and reports whether it was allowed.
	// The question has no error: a contestant that cannot answer panics, since
	// its figures would mean nothing.
	Take func(key string) bool

	// Drain uses up all N units of a key at once, so that a million keys can be
	// exhausted before a measurement begins.
	Drain func(key string)

	// Stop stops what runs in the background; nil if nothing does.
	Stop func()
}

// by returns a limiter that takes any number of units, of which there are n.
func by[N int | int64](n N, take func(key string, units N) bool) Limiter {
	return Limiter{
		Take:  func(key string) bool { return take(key, 1) },
		Drain: func(key string) { take(key, n) },
	}
}

// Close stops what runs in the background.
func (l Limiter) Close() {
	if l.Stop != nil {
		l.Stop()
	}
}

// Contestant is a way to make a limiter.
type Contestant struct {
	Name string

	// Weir is true for our own; the others are the peers to measure up to.
	Weir bool

	// Promise says what is limited, and what is bought with it.
	Promise string

	// Key says what becomes of the key's text, to read the bytes a key by.
	Key string

	// Allow, if set, replaces the limit for a run without denials, for an algorithm that
	// cannot have a huge N. Note says so below the table.
	Allow func(keys int) Limit
	Note  string

	// New makes a limiter that has room for so many keys.
	New func(limit Limit, keys int) Limiter
}

// Outcome is what all checks of a scenario come to.
type Outcome bool

// The two of them.
const (
	Allowed Outcome = true
	Denied  Outcome = false
)

func (o Outcome) String() string {
	if o == Allowed {
		return "allowed"
	}
	return "denied"
}

// InMemory returns the peers, then weir's algorithms with the headline first.
func InMemory() []Contestant {
	others := []Contestant{GoLimiter, xTimeRate, throttledInMemory, httpRate, ululeInMemory}
	return append(others, weirsInMemory()...)
}

// must is for constructors whose arguments are the harness's own.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// check is must for what returns nothing else.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Limit is the limit of every contestant: N units per Period; a new key can take N at
// once.
type Limit struct {
	N      int
	Period time.Duration
}

// Month is a period in which nothing comes back while a run lasts.
const Month = 30 * 24 * time.Hour

// Exhaustible is the limit of those who are to be denied.
var Exhaustible = Limit{N: 100, Period: Month}

// Limit is what the contestant has to keep in a run over so many keys. If
// everything is to be allowed, it is a billion checks in all before one is
// denied, spread over the keys so that a key never recovers between two visits
// and is neither new nor used up, as that of a busy client.
func (c Contestant) Limit(keys int, outcome Outcome) Limit {
	switch {
	case outcome == Denied:
		return Exhaustible
	case c.Allow != nil:
		return c.Allow(keys)
	}
	return Limit{N: max(1000, 1_000_000_000/keys), Period: Month}
}
