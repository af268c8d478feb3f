package frame

import (
	"math"
	"time"
)

// InFlight holds how many requests of a rule were in flight, and for how long. All of it can be
// merged over time and over instances: a number that is in flight now could not.
type InFlight struct {
	// Busy is the sum of the microseconds that requests were in flight within the time
	// range. Divided by the length of the range, it is the average number in flight. It is
	// below 0 for an instance that has ended what another counts from its beginning; the sum
	// of all instances is right.
	Busy int64

	// Highest is the largest number that one client had in flight at the same time, on all
	// instances.
	Highest int64

	held Histogram // in microseconds, of the requests that ended
}

// Hold counts a request that ended.
func (f *InFlight) Hold(held time.Duration) {
	n := max(held.Microseconds(), 0)
	f.held.Put(Slot(uint64(n)), 1)
	f.held.Sum = min(f.held.Sum+n, maxExact)
}

// Use counts time during which requests were in flight.
func (f *InFlight) Use(d time.Duration) { f.use(d.Microseconds()) }

func (f *InFlight) use(micros int64) { f.Busy = max(-maxExact, min(f.Busy+micros, maxExact)) }

// Mean returns the average number in flight in a time range of this length.
func (f *InFlight) Mean(length time.Duration) float64 {
	if length <= 0 {
		return 0
	}
	return max(0, float64(f.Busy)/float64(length.Microseconds()))
}

// Ended returns how many requests ended.
func (f *InFlight) Ended() int64 { return f.held.Count }

// Held returns the q-quantile of how long the requests that ended were in flight. It is never
// less than the true quantile, and at most an eighth more. More than four hours are four
// hours.
func (f *InFlight) Held(q float64) time.Duration {
	if f.held.Count == 0 {
		return 0
	}
	return time.Duration(f.held.Value(q))*time.Microsecond + time.Microsecond - 1
}

// MeanHeld returns the exact average of how long they were in flight.
func (f *InFlight) MeanHeld() time.Duration {
	if f.held.Count == 0 {
		return 0
	}
	return time.Duration(min(f.held.Sum/f.held.Count, math.MaxInt64/1000)) * time.Microsecond
}

// Merge adds another time range, or another instance.
func (f *InFlight) Merge(other *InFlight) {
	f.use(other.Busy)
	f.Highest = max(f.Highest, other.Highest)
	f.held.Merge(&other.held)
	f.held.Sum = min(f.held.Sum, maxExact)
}

// IsZero reports whether nothing was counted.
func (f *InFlight) IsZero() bool { return f.Busy == 0 && f.Highest == 0 && f.held.Count == 0 }

// weight grows with everything that is added.
func (f *InFlight) weight() int64 { return max(f.Busy, -f.Busy) + f.Highest + f.held.Count }
