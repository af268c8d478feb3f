package queue

import (
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

// What Settings stand for when they say nothing.
const (
	DefaultCapacity   = 1000
	DefaultMaxPayload = 64 << 10
	DefaultVisibility = 30 * time.Second
	DefaultMaxTries   = 5
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = 5 * time.Minute
	DefaultMaxDead    = 1000
)

// Bounds on what settings and callers may ask for.
const (
	MaxCapacity   = 1 << 20
	MaxPayload    = 1 << 20
	MaxVisibility = 12 * time.Hour
	MaxTries      = 1000
	MaxBackoff    = 24 * time.Hour
	MaxDead       = 1 << 16
	MaxRemember   = 7 * 24 * time.Hour
	MaxNameLen    = 100
	MaxIDLen      = 256
	MaxReasonLen  = 512              // of why an item failed; the rest is cut off
	MaxBatch      = 100              // leases in one answer, and dead letters in one call
	MaxAhead      = 10 * time.Second // how far ahead of its release an item is leased
	MaxPageBytes  = 1 << 20          // payload in one answer, from which on no further item is added

	// MaxSweep is how much of what has become due by itself one call clears away:
	// a store that was away for a while should not stand still for it.
	MaxSweep = 100
)

// Settings of one queue. Every process that uses it should have the same: each goes by
// its own.
type Settings struct {
	// N items in a Period are released. N is at least 1, and Period a whole number of
	// microseconds, up to weir.MaxPeriod.
	N      int64
	Period time.Duration

	// Capacity is how many items may be in the queue: waiting, held back after a
	// failure, and leased. Default DefaultCapacity. Memory is bounded by Capacity
	// and MaxDead times MaxPayload.
	Capacity int

	// MaxPayload is the length of the longest payload. Default DefaultMaxPayload.
	MaxPayload int

	// Visibility is how long a worker has an item before it is taken for dead, and
	// the item goes to another. Default DefaultVisibility. Run extends it while the
	// handler is at work.
	Visibility time.Duration

	// MaxTries is how often an item is tried before it is a dead letter. Default
	// DefaultMaxTries.
	MaxTries int

	// Backoff is how long an item is held back after its first failure. It doubles
	// with each further one, up to MaxBackoff. Default DefaultBackoff.
	Backoff time.Duration

	// MaxBackoff is the longest that an item is held back. Default DefaultMaxBackoff,
	// or Backoff if that is longer.
	MaxBackoff time.Duration

	// MaxDead is how many dead letters are kept. Default DefaultMaxDead. When there
	// are more, the oldest is dropped, and counted in Stats.
	MaxDead int

	// Remember is how long the ID of an item that was done is known: pushed again, it
	// is a duplicate. Default 0: as long as the item is in the queue. At most
	// Capacity of them are remembered.
	Remember time.Duration
}

// Terms are valid settings with their numbers made ready, for stores. Durations are
// microseconds.
type Terms struct {
	Settings // with their defaults

	// N/Period in lowest terms: Span/Rate microseconds lie between two releases.
	Rate, Span int64

	VisibilityMicros, BackoffMicros, MaxBackoffMicros, RememberMicros int64
}

// Declare checks the settings of queues and makes them ready, for stores.
func Declare(queues map[string]Settings) (map[string]*Terms, error) {
	declared := make(map[string]*Terms, len(queues))
	for name, s := range queues {
		if err := checkName(name); err != nil {
			return nil, err
		}
		terms, err := s.compile()
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", name, err)
		}
		declared[name] = terms
	}
	return declared, nil
}

// checkName keeps names to what is safe in a key, a path and a label.
func checkName(name string) error {
	good := len(name) >= 1 && len(name) <= MaxNameLen
	for i := 0; i < len(name) && good; i++ {
		c := name[i]
		good = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	if !good {
		return invalid("queue", "%.*q is no name; write 1 to %d letters, digits, and any of - _ .", MaxNameLen+1, name, MaxNameLen)
	}
	return nil
}

func (s Settings) compile() (*Terms, error) {
	// The pace is that of a shaping leaky bucket; what it refuses cannot be kept here.
	limit := weir.Limit{Algorithm: weir.LeakyBucket, N: s.N, Period: s.Period, Burst: 1, Shape: true}
	compiled, err := limit.Compile()
	if err != nil {
		return nil, err
	}
	t := &Terms{Settings: s}
	for _, f := range []struct {
		name       string
		value      *int
		usual, max int
	}{
		{"capacity", &t.Capacity, DefaultCapacity, MaxCapacity},
		{"max_payload", &t.MaxPayload, DefaultMaxPayload, MaxPayload},
		{"max_tries", &t.MaxTries, DefaultMaxTries, MaxTries},
		{"max_dead", &t.MaxDead, DefaultMaxDead, MaxDead},
	} {
		if *f.value < 0 || *f.value > f.max {
			return nil, invalid(f.name, "%d is out of range; write 1 to %d, or 0 for the default of %d", *f.value, f.max, f.usual)
		}
		if *f.value == 0 {
			*f.value = f.usual
		}
	}
	for _, f := range []struct {
		name       string
		value      *time.Duration
		usual, max time.Duration
	}{
		{"visibility", &t.Visibility, DefaultVisibility, MaxVisibility},
		{"backoff", &t.Backoff, DefaultBackoff, MaxBackoff},
		{"max_backoff", &t.MaxBackoff, max(DefaultMaxBackoff, t.Backoff), MaxBackoff},
		{"remember", &t.Remember, 0, MaxRemember},
	} {
		if *f.value == 0 {
			*f.value = f.usual
		}
		if *f.value < 0 || *f.value > f.max || *f.value%time.Microsecond != 0 {
			return nil, invalid(f.name, "%v is out of range; write whole microseconds up to %v, or 0 for the default of %v", *f.value, f.max, f.usual)
		}
	}
	if t.MaxBackoff < t.Backoff {
		return nil, invalid("max_backoff", "%v is less than the backoff of %v; raise it, or leave it out", t.MaxBackoff, t.Backoff)
	}
	numbers := compiled.Numbers()
	t.Rate, t.Span = numbers.Drain, numbers.Unit
	t.VisibilityMicros, t.RememberMicros = t.Visibility.Microseconds(), t.Remember.Microseconds()
	t.BackoffMicros, t.MaxBackoffMicros = t.Backoff.Microseconds(), t.MaxBackoff.Microseconds()
	return t, nil
}

// HeldBack is how many microseconds an item is held back after so many tries.
func (t *Terms) HeldBack(tries int) int64 {
	d := t.BackoffMicros
	for i := 1; i < tries && d < t.MaxBackoffMicros; i++ {
		d *= 2
	}
	return min(d, t.MaxBackoffMicros)
}
