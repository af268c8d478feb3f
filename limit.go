package weir

import (
	"time"

	"github.com/weirhq/weir/internal/notation"
)

// Bounds on limits. They keep every number below 2^53, the largest exact integer in a
// Redis script, and bound the memory of a key.
const (
	MaxUnits    = 1 << 50 // for N and Burst
	MaxPeriod   = 10 * 365 * 24 * time.Hour
	MaxLogUnits = 1 << 20 // for N of a sliding log or an in-flight limit; lower for periods over 100 days
	MaxBuckets  = 1<<12 - 1
	MaxNameLen  = 120

	defaultBuckets = 60
	maxRefill      = 10 * int64(MaxPeriod/time.Microsecond) // microseconds from full to empty
)

// Limit is N units per Period, with bursts of up to Burst units.
type Limit struct {
	// Name separates the usage of limits that share a store. Default "". The text
	// notation does not contain it.
	Name string

	// Algorithm selects how the limit counts. Default TokenBucket.
	Algorithm Algorithm

	// N is the number of units per Period; at least 1.
	N int64

	// Burst is the capacity of a token or leaky bucket. Default N. Windows and the log
	// have no burst.
	Burst int64

	// Period is a whole number of microseconds, up to 10 years. Month and Year are periods
	// of the calendar.
	Period time.Duration

	// Zone makes the Period one of the calendar: an hour, a day, a week, a Month or a Year by
	// the clocks of this time zone, as time.LoadLocation returns it. Default nil: Month and
	// Year in UTC, and other periods of constant length. Only a FixedWindow can follow the
	// calendar.
	//
	// Limits that differ only in Zone and Starts share their usage. If you change these, a
	// client's current period ends when it would have ended before, and the next one has
	// all of N and ends with a period of the new limit.
	Zone *time.Location

	// Starts is where a period of the calendar begins: "06:00" for days, "monday" for weeks,
	// "15" for Month, "04-01" for Year. In a shorter month the last day stands for a later
	// one. Default midnight, Monday, the 1st and January 1.
	Starts string

	// Buckets is the number of sub-windows of SlidingBuckets. Default 60.
	Buckets int

	// Shape turns a leaky bucket into a queue: allowed requests are delayed until their
	// turn, so that they leave at exactly N/Period.
	Shape bool

	// CountDenied makes windows and the log count denied requests too, so that a client
	// that keeps retrying stays denied. Default false: a denied request costs nothing.
	CountDenied bool

	// Release gives the units of a hold back if it expires. Default false: they stay
	// charged. It makes no difference without holds.
	Release bool

	// Lease is for how long a process can have units of a key, to decide by itself; package store/lease
	// does that. Default 0: the store decides. A limit with Shape, CountDenied or Release, and InFlight, cannot have it.
	Lease time.Duration
}

// PerSecond, PerMinute, PerHour and PerDay return a token bucket of n units per second,
// minute, hour or day. All n can be taken at once; then they refill at that rate.
func PerSecond(n int64) Limit { return Limit{N: n, Period: time.Second} }
func PerMinute(n int64) Limit { return Limit{N: n, Period: time.Minute} }
func PerHour(n int64) Limit   { return Limit{N: n, Period: time.Hour} }
func PerDay(n int64) Limit    { return Limit{N: n, Period: 24 * time.Hour} }

// Concurrent returns a limit of n requests at the same time. Take a place for each request,
// and refund it at the end. A place that is not refunded, because its process died, is free
// again after ttl; [Limiter.Renew] the place of a request that takes longer.
func Concurrent(n int64, ttl time.Duration) Limit {
	return Limit{Algorithm: InFlight, N: n, Period: ttl}
}

// PerMonth returns a quota of n units per calendar month of a time zone; nil is UTC.
func PerMonth(n int64, zone *time.Location) Limit {
	return Limit{Algorithm: FixedWindow, N: n, Period: Month, Zone: zone}
}

// Validate returns the first reason why the limit cannot be enforced, as an
// *InvalidError that names the field and the remedy.
func (l Limit) Validate() error {
	_, err := l.Compile()
	return err
}

// validateFields checks everything but the arithmetic's range, which Compile
// finds out as it scales.
func (l Limit) validateFields() error {
	if len(l.Name) > MaxNameLen {
		return invalid("name", "it has %d bytes, at most %d are allowed", len(l.Name), MaxNameLen)
	}
	if int(l.Algorithm) >= len(algorithmNames) {
		return invalid("algorithm", "%d is unknown; use one of the constants of package weir", uint8(l.Algorithm))
	}
	if l.N < 1 {
		return invalid("limit", "%d units allow no request; N must be at least 1 (to deny all clients, use block)", l.N)
	}
	if l.N > MaxUnits {
		return invalid("limit", "%d units are more than can be counted exactly; N is at most %d", l.N, int64(MaxUnits))
	}
	if err := validatePeriod(l.Period); err != nil {
		return err
	}
	if err := l.validateCalendar(); err != nil {
		return err
	}
	if err := l.validateBurst(); err != nil {
		return err
	}
	if err := l.validateBuckets(); err != nil {
		return err
	}
	if l.Shape && l.Algorithm != LeakyBucket {
		return invalid("shape", "only a leaky_bucket is a queue, %s is not; remove shape, or choose leaky_bucket", l.Algorithm)
	}
	if l.CountDenied && l.Algorithm.leaks() {
		return invalid("count_denied", "a %s cannot count denied requests; remove count_denied, or choose a window or sliding_log", l.Algorithm)
	}
	if err := l.validatePlaces(); err != nil {
		return err
	}
	if err := l.validateLease(); err != nil {
		return err
	}
	return l.validateLog()
}

func (l Limit) validateLease() error {
	switch {
	case l.Lease == 0:
		return nil
	case l.Lease < MinLease || l.Lease > MaxLease || l.Lease%time.Microsecond != 0:
		return invalid("lease", "%v is not a time for a lease; write %v to %v, such as 1s", l.Lease, MinLease, notation.FormatDuration(MaxLease))
	case !l.leasable():
		return invalid("lease", "units of a limit that shapes, counts denied requests, gives back what expires, or is in_flight cannot be leased; remove lease")
	}
	return nil
}

// leasable reports whether units can be leased. They cannot if a request may be delayed, if a denial counts, if units
// come back by themselves, or if holds that expire give back.
func (l *Limit) leasable() bool {
	return !l.Shape && !l.CountDenied && !l.Release && l.Algorithm != InFlight
}

func (l Limit) validatePlaces() error {
	switch {
	case l.Algorithm != InFlight:
		return nil
	case l.CountDenied:
		return invalid("count_denied", "a request that is denied is not in flight; remove count_denied, or choose a window or sliding_log")
	case l.Release:
		return invalid("release", "a place of in_flight is free when its time is over, with or without a hold; remove release")
	case l.N > min(MaxLogUnits, maxLogUnits(l.Period.Microseconds())):
		return invalid("limit", "%d places are too many to be kept for a key; write at most %d", l.N, min(MaxLogUnits, maxLogUnits(l.Period.Microseconds())))
	}
	return nil
}

func (l Limit) validateLog() error {
	if l.Algorithm != SlidingLog {
		return nil
	}
	if l.N > MaxLogUnits {
		return invalid("limit", "a sliding_log of %d units would keep %d bytes a key; N is at most %d here, choose sliding_window or sliding_buckets for more", l.N, l.N*8, MaxLogUnits)
	}
	if most := maxLogUnits(l.Period.Microseconds()); l.N > most {
		return invalid("limit", "a sliding_log over %s has room for %d units, not %d; lower N or the period, or choose sliding_buckets", notation.FormatDuration(l.Period), most, l.N)
	}
	return nil
}

func validatePeriod(p time.Duration) error {
	switch {
	case p <= 0:
		return invalid("period", "%v is not a valid period; write for example 100/1m", p)
	case p%time.Microsecond != 0:
		return invalid("period", "%v is not a whole number of microseconds; the shortest period is 1us", p)
	case p > MaxPeriod:
		return invalid("period", "%s is longer than ten years; choose a shorter one", notation.FormatDuration(p))
	}
	return nil
}

func (l Limit) validateBurst() error {
	switch {
	case l.Burst == 0:
		return nil
	case !l.Algorithm.leaks():
		return invalid("burst", "%s has no burst, it allows N at once anyway; remove burst, or choose token_bucket", l.Algorithm)
	case l.Burst < 0:
		return invalid("burst", "%d allows no request; write at least 1, or omit it for N", l.Burst)
	case l.Burst > MaxUnits:
		return invalid("burst", "%d units are more than can be counted exactly; burst is at most %d", l.Burst, int64(MaxUnits))
	}
	return nil
}

func (l Limit) validateBuckets() error {
	switch {
	case l.Buckets == 0:
		return nil
	case l.Algorithm != SlidingBuckets:
		return invalid("buckets", "only sliding_buckets has sub-windows, %s has none; remove buckets", l.Algorithm)
	case l.Buckets < 2:
		return invalid("buckets", "%d sub-windows cannot slide; write at least 2, or choose fixed_window", l.Buckets)
	case l.Buckets > MaxBuckets:
		return invalid("buckets", "%d sub-windows are too many; write at most %d, or choose sliding_log", l.Buckets, MaxBuckets)
	case int64(l.Buckets) > l.Period.Microseconds():
		return invalid("buckets", "%d sub-windows in %s would be shorter than a microsecond each; write at most %d", l.Buckets, notation.FormatDuration(l.Period), l.Period.Microseconds())
	}
	return nil
}
