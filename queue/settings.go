package queue

import (
	"cmp"
	"fmt"
	"strings"
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
	// a store that was unavailable for a while should not stand still for it.
	MaxSweep = 100
)

// Settings of one queue. Every process that uses it should have the same: each goes by
// its own.
type Settings struct {
	// N items in a Period are released. N is at least 1, and Period a whole number of
	// microseconds, up to weir.MaxPeriod.
	N      int64
	Period time.Duration

	// Capacity is how many items may be in the queue: waiting, delayed after a
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

	// Backoff is how long an item is delayed after its first failure. It doubles
	// with each further one, up to MaxBackoff. Default DefaultBackoff.
	Backoff time.Duration

	// MaxBackoff is the longest that an item is delayed. Default DefaultMaxBackoff,
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
	if name == "" || len(name) > MaxNameLen || strings.Trim(name, alphanumeric+"-_.") != "" {
		return invalid("queue", "%.*q is no name; write 1 to %d letters, digits, and any of - _ .", MaxNameLen+1, name, MaxNameLen)
	}
	return nil
}

func (s Settings) compile() (*Terms, error) {
	// The pace is that of a shaping leaky bucket; what it denies cannot be kept here.
	limit := weir.Limit{Algorithm: weir.LeakyBucket, N: s.N, Period: s.Period, Burst: 1, Shape: true}
	compiled, err := limit.Compile()
	if err != nil {
		return nil, err
	}
	t := &Terms{Settings: s}
	const micros = "whole microseconds up to"
	err = cmp.Or(
		bound("capacity", "1 to", &t.Capacity, DefaultCapacity, MaxCapacity, 1),
		bound("max_payload", "1 to", &t.MaxPayload, DefaultMaxPayload, MaxPayload, 1),
		bound("max_tries", "1 to", &t.MaxTries, DefaultMaxTries, MaxTries, 1),
		bound("max_dead", "1 to", &t.MaxDead, DefaultMaxDead, MaxDead, 1),
		bound("visibility", micros, &t.Visibility, DefaultVisibility, MaxVisibility, time.Microsecond),
		bound("backoff", micros, &t.Backoff, DefaultBackoff, MaxBackoff, time.Microsecond),
		bound("max_backoff", micros, &t.MaxBackoff, max(DefaultMaxBackoff, s.Backoff), MaxBackoff, time.Microsecond),
		bound("remember", micros, &t.Remember, 0, MaxRemember, time.Microsecond),
	)
	if err != nil {
		return nil, err
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

// bound fills in what is usual, and makes sure that a value is a multiple of a step and at
// most so much, which the words say.
func bound[T int | time.Duration](field, words string, value *T, usual, most, step T) error {
	*value = cmp.Or(*value, usual)
	if *value < 0 || *value > most || *value%step != 0 {
		return invalid(field, "%v is out of range; write %s %v, or 0 for the default of %v", *value, words, most, usual)
	}
	return nil
}

// RetryDelay is how many microseconds an item is delayed after so many tries.
func (t *Terms) RetryDelay(tries int) int64 {
	d := t.BackoffMicros
	for i := 1; i < tries && d < t.MaxBackoffMicros; i++ {
		d *= 2
	}
	return min(d, t.MaxBackoffMicros)
}
