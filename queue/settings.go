package queue

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// Defaults of Settings.
const (
	DefaultCapacity   = 1000
	DefaultMaxPayload = 64 << 10
	DefaultVisibility = 30 * time.Second
	DefaultMaxTries   = 5
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = 5 * time.Minute
	DefaultMaxDead    = 1000
)

// Bounds on settings and arguments.
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
	MaxReasonLen  = 512              // bytes in the reason of a failure; the rest is cut off
	MaxBatch      = 100              // leases in one batch, and dead letters in one call
	MaxAhead      = 10 * time.Second // how long before its release an item can be leased
	MaxPageBytes  = 1 << 20          // payload in one answer, after which no further item is added

	// MaxSweep is how many overdue items one call moves, so that a store does not stall
	// after it was unavailable.
	MaxSweep = 100
)

// Settings configures one queue. Every process that uses the queue should have the same
// settings, because each uses its own.
type Settings struct {
	// N items per Period are released. N is at least 1, and Period a whole number of
	// microseconds, up to weir.MaxPeriod.
	N      int64
	Period time.Duration

	// Capacity is the maximum number of items in the queue: ready, delayed after a
	// failure, and leased. Default DefaultCapacity. Capacity and MaxDead times
	// MaxPayload bound the memory.
	Capacity int

	// MaxPayload is the maximum length of a payload in bytes. Default
	// DefaultMaxPayload.
	MaxPayload int

	// Visibility is how long a lease lasts. After that the worker is considered dead,
	// and the item goes to another. Default DefaultVisibility. Run extends the lease
	// while the handler works.
	Visibility time.Duration

	// MaxTries is how often an item is tried before it becomes a dead letter. Default
	// DefaultMaxTries.
	MaxTries int

	// Backoff is the delay of an item after its first failure. It doubles with each
	// further failure, up to MaxBackoff. Default DefaultBackoff.
	Backoff time.Duration

	// MaxBackoff is the maximum delay after a failure. Default DefaultMaxBackoff, or
	// Backoff if that is longer.
	MaxBackoff time.Duration

	// MaxDead is the maximum number of dead letters. Default DefaultMaxDead. When there
	// are more, the oldest is dropped and counted in Stats.
	MaxDead int

	// Remember is how long the ID of a finished item is remembered, so that pushing it
	// again is a duplicate. Default 0: only while the item is in the queue. At most
	// Capacity IDs are remembered.
	Remember time.Duration
}

// Terms are validated settings with derived numbers, for stores. Durations are
// microseconds.
type Terms struct {
	Settings // with defaults filled in

	// Rate and Span are N/Period in lowest terms: releases are Span/Rate microseconds
	// apart.
	Rate, Span int64

	VisibilityMicros, BackoffMicros, MaxBackoffMicros, RememberMicros int64
}

// Declare validates the settings of queues and prepares them, for stores.
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
		return invalid("queue", "%.*q is not a valid name; write 1 to %d letters, digits, and any of - _ .", MaxNameLen+1, name, MaxNameLen)
	}
	return nil
}

func (s Settings) compile() (*Terms, error) {
	// The pace is the same as that of a shaping leaky bucket, so the bounds are the same.
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

// RetryDelay returns the delay of an item, in microseconds, after this many tries.
func (t *Terms) RetryDelay(tries int) int64 {
	d := t.BackoffMicros
	for i := 1; i < tries && d < t.MaxBackoffMicros; i++ {
		d *= 2
	}
	return min(d, t.MaxBackoffMicros)
}
