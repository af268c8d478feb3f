package archive

import (
	"math"
	"time"
)

// Counts holds the number of requests, or of decisions of a rule, by outcome. Each has
// exactly one outcome.
type Counts struct {
	Allowed         int64 `json:"allowed"`
	Denied          int64 `json:"denied"`
	ShadowDenied    int64 `json:"shadow_denied"`    // allowed; a shadow rule would have denied it
	SoftDenied      int64 `json:"soft_denied"`      // allowed; a soft rule would have denied it, and the client was told
	DegradedAllowed int64 `json:"degraded_allowed"` // allowed while the store was unavailable
	DegradedDenied  int64 `json:"degraded_denied"`  // denied while the store was unavailable
	Blocked         int64 `json:"blocked"`
	UnknownClient   int64 `json:"unknown_client"` // denied because no directory knows the client
}

// fields are in the order in which they are encoded.
func (c *Counts) fields() [8]*int64 {
	return [...]*int64{&c.Allowed, &c.Denied, &c.ShadowDenied, &c.DegradedAllowed, &c.DegradedDenied, &c.Blocked, &c.SoftDenied, &c.UnknownClient}
}

// Total returns the sum of all counts.
func (c Counts) Total() int64 {
	return c.Allowed + c.Denied + c.ShadowDenied + c.SoftDenied + c.DegradedAllowed + c.DegradedDenied + c.Blocked + c.UnknownClient
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	theirs := other.fields()
	for i, n := range c.fields() {
		*n += *theirs[i]
	}
}

// DeniedShare returns the share that limits denied, 0 to 1.
func (c Counts) DeniedShare() float64 { return float64(c.Denied) / float64(max(c.Total(), 1)) }

// Priorities holds the requests whose priority is not normal. All others are normal, so that
// programs without priorities count and store nothing.
type Priorities struct{ Critical, High, Low Counts }

// Normal returns the counts of requests with normal priority: those of all requests less the
// others. A request may be counted here a moment before it is counted among all, so that the
// difference of a short time can be too low, but never below 0.
func (p *Priorities) Normal(all Counts) Counts {
	normal := all.fields()
	for _, other := range p.all() {
		for i, n := range other.fields() {
			*normal[i] = max(0, *normal[i]-*n)
		}
	}
	return all
}

// Merge adds the requests of another time range, or another instance.
func (p *Priorities) Merge(other *Priorities) {
	p.Critical.Add(other.Critical)
	p.High.Add(other.High)
	p.Low.Add(other.Low)
}

func (p *Priorities) all() [3]*Counts { return [...]*Counts{&p.Critical, &p.High, &p.Low} }

func (p *Priorities) total() int64 { return p.Critical.Total() + p.High.Total() + p.Low.Total() }

// HoldCounts holds what became of the holds of a rule. The units that were reserved and used
// are those of holds that were settled.
type HoldCounts struct {
	Opened    int64 `json:"opened"` // reservations that were allowed
	Settled   int64 `json:"settled"`
	Cancelled int64 `json:"cancelled"`
	Overruns  int64 `json:"overruns"` // settled with more than was reserved
	Charges   int64 `json:"charges"`  // made without a hold
	Crowded   int64 `json:"crowded"`  // reservations that were denied because too many holds were open, and not by a limit

	Reserved int64 `json:"reserved_units"`
	Used     int64 `json:"used_units"`
	Charged  int64 `json:"charged_units"` // by Charges
	Excess   int64 `json:"excess_units"`  // of Used and Charged, what was not charged
}

// Add adds other counts. Sums stay exact numbers, whatever clients say that they have used.
func (c *HoldCounts) Add(other HoldCounts) {
	theirs := other.fields()
	for i, n := range c.fields() {
		*n = min(*n+min(*theirs[i], maxExact), maxExact)
	}
}

func (c *HoldCounts) fields() [10]*int64 {
	return [...]*int64{&c.Opened, &c.Settled, &c.Cancelled, &c.Overruns, &c.Charges, &c.Reserved, &c.Used, &c.Charged, &c.Excess, &c.Crowded}
}

// Holds holds what became of the holds of a rule, and how good their estimates were.
type Holds struct {
	HoldCounts

	// ratio is what each settled hold used of what it had reserved. A ratio of 1 is the last
	// number of its slot, so that it is exact; so are 1/2, 2 and others.
	ratio Histogram
}

// whole is how many parts of a ratio are 1.
const whole = 1024

// Settle counts a hold that was settled.
func (h *Holds) Settle(reserved, used, excess int64) {
	one := HoldCounts{Settled: 1, Reserved: reserved, Used: used, Excess: excess}
	if used > reserved {
		one.Overruns = 1
	}
	h.Add(one)
	if reserved > 0 {
		parts := math.Ceil(float64(used) / float64(reserved) * whole)
		h.ratio.Put(HistogramSlot(uint64(max(parts-1, 0))), 1)
	}
}

// Ratio returns the q-quantile of what each settled hold used of what it had reserved. It
// is never less than the true quantile, and at most an eighth more; less than a thousandth
// is 0.
func (h *Holds) Ratio(q float64) float64 {
	n := h.ratio.Value(q)
	if n == 0 {
		return 0
	}
	return float64(n+1) / whole
}

// Merge adds other holds.
func (h *Holds) Merge(other *Holds) {
	h.Add(other.HoldCounts)
	h.ratio.Merge(&other.ratio)
}

// weight grows with every event.
func (h *Holds) weight() int64 { return h.Opened + h.Settled + h.Cancelled + h.Charges + h.Crowded }

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
	f.held.Put(HistogramSlot(uint64(n)), 1)
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
