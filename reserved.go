package weir

import "time"

const (
	// ReservedRetry is the RetryAfter of a denial at most, if what is missing is only reserved:
	// a hold may be settled with less at any time.
	ReservedRetry = time.Second

	// maxReturns is at how many open holds of a key a denial looks.
	maxReturns = 64
)

// TellReserved says of a denial of Reserve whether what is missing is only reserved: whether the
// op would be allowed if open holds of its key were settled with 0 now. Then Reserved is how
// many units it lacks, and RetryAfter at most ReservedRetry. For stores.
//
// open returns the limit and the charge of the i-th open hold, as of now, and nil if there are no
// more; it is asked for 64 at most. A hold counts with what Release would give back, so not with
// what has expired or drained since.
// Nothing is told of limits with CountDenied, which charge who asks again, with Shape, whose
// queue gives back its last place only, or InFlight, whose places nobody uses up; nor of a
// bucket whose N was changed since.
func (c *Pending) TellReserved(d *Decision, open func(i int) (*Compiled, Held), now Micros) {
	limit := c.Op.Limit
	if d.Allowed || d.RetryAfter == Never || !limit.tellsReserved() {
		return
	}
	r := returns{view: view{c: limit, old: c.Prev, tail: c.Tail, now: max(0, now)}}
	r.measure()
	missing := c.Op.Cost + c.Op.Leave - r.free
	for i := range maxReturns {
		under, h := open(i)
		if under == nil {
			return
		}
		if r.add(under, &h); r.units() >= missing {
			d.tellReserved(missing)
			return
		}
	}
}

// TellLacking says of a denial that so many units are missing that are only reserved, as
// TellReserved does. For stores with an arithmetic of their own.
func (c *Compiled) TellLacking(d *Decision, units int64) {
	if c.tellsReserved() {
		d.tellReserved(units)
	}
}

func (d *Decision) tellReserved(units int64) {
	d.Reserved, d.RetryAfter = units, min(d.RetryAfter, ReservedRetry)
}

func (c *Compiled) tellsReserved() bool {
	return !c.limit.CountDenied && !c.limit.Shape && c.limit.Algorithm != InFlight
}

// returns is what open holds would give back at an instant.
type returns struct {
	view
	back     int64 // units that count now; of a bucket, parts
	previous int64 // of a sliding window: units of the previous one
}

// add adds what a hold would give back that was charged under a limit.
func (r *returns) add(under *Compiled, h *Held) {
	switch c := r.c; c.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		if s := r.old; !under.limit.Shape && under.limit.N == c.limit.N && s.B == c.limit.N {
			last := s.Fresh - Micros(divUp(s.A, c.n))
			r.back += max(0, min(h.Cost*c.p, h.Level-c.drained(last-h.At, s.B)))
		}
	case SlidingWindow:
		period := Micros(c.period)
		switch start := r.now - r.now%period; c.windowStart(State{Fresh: Micros(h.Receipt)}) {
		case start:
			r.back += h.Cost
		case start - period:
			r.previous += h.Cost
		}
	default: // a receipt is when the charge stops counting
		if Micros(h.Receipt) > r.now {
			r.back += h.Cost
		}
	}
}

// units is how many units more there would be.
func (r *returns) units() int64 {
	c, used := r.c, r.pending
	switch c.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		return (c.full-used.A+min(used.A, r.back))/c.p - r.free
	case SlidingWindow:
		left := c.period - int64(r.now)%c.period
		weight := func(previous int64) int64 { return mulDiv(previous, left, c.period) }
		return min(used.A, r.back) + weight(used.B) - weight(max(0, used.B-r.previous))
	}
	return min(c.limit.N-r.free, r.back)
}
