// Package peers puts weir and the limiters that people compare it with behind
// one small interface, so that all can be asked the same questions. Each says what
// it promises and how it is called, and is given its fastest settings.
//
// [Check] proves that a limiter limits each key by itself. A benchmark of
// limiters that skips this proof has been published with one empty key
// throughout.
package peers

import (
	"fmt"
	"io"
	"time"
)

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

// MarshalText names the contestant in raw results.
func (c Contestant) MarshalText() ([]byte, error) { return []byte(c.Name), nil }

// WriteNote writes what is to be said of the contestant below the tables, if anything is.
func (c Contestant) WriteNote(w io.Writer) {
	if c.Note != "" {
		fmt.Fprintf(w, "\n%s: %s.\n", c.Name, c.Note)
	}
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

// MarshalText is for raw results.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Of requires that so many of all checks were allowed as this outcome means.
func (o Outcome) Of(allowed, all int) error {
	want := 0
	if o == Allowed {
		want = all
	}
	if allowed != want {
		return fmt.Errorf("%d of %d checks were allowed instead of %d", allowed, all, want)
	}
	return nil
}

// InMemory returns the peers, then weir's algorithms with the headline first.
func InMemory() []Contestant {
	others := []Contestant{goLimiter, xTimeRate, throttledInMemory, httpRate, ululeInMemory}
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

// Check proves that a limiter of n units limits each of the keys separately:
// exactly n are allowed to each, whatever the others do in between, the next
// one is denied, and neither helps or harms a key that was not there yet. The
// limiter must be new, have a period much longer than the check, and at least
// four keys.
func Check(l Limiter, n int, keys []string) error {
	asked, drained, untouched := keys[:len(keys)-2], keys[len(keys)-2], keys[len(keys)-1]
	for i := range n {
		for _, key := range asked {
			if !l.Take(key) {
				return fmt.Errorf("peers: %q was denied unit %d of %d", key, i+1, n)
			}
		}
	}
	for _, key := range asked {
		if l.Take(key) {
			return fmt.Errorf("peers: %q was allowed unit %d of %d", key, n+1, n)
		}
	}
	l.Drain(drained)
	if l.Take(drained) {
		return fmt.Errorf("peers: %q was allowed after all its %d units were drained", drained, n)
	}
	for i := range n {
		if !l.Take(untouched) {
			return fmt.Errorf("peers: %q was denied unit %d of %d although only others had taken", untouched, i+1, n)
		}
	}
	if l.Take(untouched) {
		return fmt.Errorf("peers: %q was allowed unit %d of %d", untouched, n+1, n)
	}
	return nil
}
