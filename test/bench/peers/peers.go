// Package peers puts weir and the limiters that people compare it with behind
// one small interface, so that all can be asked the same questions. There is
// one file for each of them, which says what it promises and how it is called;
// each is given its fastest settings.
//
// [Check] proves that a limiter limits each key by itself. A benchmark of
// limiters that skips this proof has been published with one empty key
// throughout.
package peers

// Limiter is one contestant with its own memory. Take and Drain are safe for
// concurrent use.
type Limiter interface {
	// Take asks for one unit of the key and reports whether it was admitted.
	// The question has no error: a contestant that cannot answer panics, since
	// its figures would mean nothing.
	Take(key string) bool

	// Drain uses up all N units of a key at once, so that a million keys can be
	// exhausted before a measurement begins.
	Drain(key string)

	// Close stops what runs in the background.
	Close()
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

	// Admit, if set, replaces the limit for a run in which nobody may be
	// refused, for an algorithm that cannot have a huge N. Note says so below
	// the table.
	Admit func(keys int) Limit
	Note  string

	// New makes a limiter that has room for so many keys.
	New func(limit Limit, keys int) Limiter
}

// InMemory returns the peers, then weir's algorithms with the headline first.
func InMemory() []Contestant {
	others := []Contestant{goLimiter(), xTimeRate(), throttledInMemory(), httpRate(), ululeInMemory()}
	return append(others, weirsInMemory()...)
}

// must is for constructors whose arguments are the harness's own.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
