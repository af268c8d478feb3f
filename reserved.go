package weir

import "time"

const (
	// ReservedRetry is the RetryAfter of a denial at most, if what is missing is only reserved:
	// a hold may be settled with less at any time.
	ReservedRetry = time.Second

	// maxReturns is at how many open holds of a key a denial looks.
	maxReturns = 64
)

// OpenHolds returns of the i-th open hold of a key what can be given back now, and the limit that
// it was charged under; nil if there are no more.
type OpenHolds func(i int) (*Compiled, Held)

// TellReserved says of the denied op of a request whether what is missing is only reserved:
// whether it would be allowed if open holds of its key were settled with 0 now. Then Reserved is
// how many units it lacks, and RetryAfter at most ReservedRetry. For stores, after Take, Peek
// and Reserve.
//
// It looks at 64 holds at most. A hold counts with what Release would give back, so not with
// what has expired or drained since. Nothing is told to ops with Always, Final or Look; of limits
// with CountDenied, which charge who asks again, with Shape, whose queue gives back its last
// place only, and InFlight, whose places are not used up; and of a bucket whose N was changed since.
func (c *Pending) TellReserved(d *Decision, now Micros, open OpenHolds) {
	if c.Op.asksAgain(d) && !c.Op.Limit.limit.CountDenied {
		c.tellReserved(c.Op, d, now, open)
	}
}

// TellAllReserved says of the denied ops of a request what TellReserved does: nothing, if the
// request counts under any limit although it is denied. open returns the open holds of an op's
// key, or nil.
func TellAllReserved(decisions []Decision, charges []Pending, now Micros, open func(op int) OpenHolds) {
	for i := range charges {
		if op := charges[i].Op; op.Limit.limit.CountDenied && !op.Look {
			return
		}
	}
	var sum Op
	for i := range charges {
		if d, c := &decisions[i], &charges[i]; c.Op.asksAgain(d) {
			if holds := open(i); holds != nil {
				c.tellReserved(together(charges, i, anyLimit, &sum), d, now, holds)
			}
		}
	}
}

// ShortenRetries does what TellAllReserved does for a store with an arithmetic of its own, which has
// set Reserved.
func ShortenRetries(decisions []Decision, ops []Op) {
	counts := false
	for i := range ops {
		counts = counts || ops[i].Limit.limit.CountDenied && !ops[i].Look
	}
	for i := range ops {
		d := &decisions[i]
		if d.Reserved > 0 && !counts && ops[i].asksAgain(d) {
			d.RetryAfter = min(d.RetryAfter, ReservedRetry)
		} else {
			d.Reserved = 0
		}
	}
}

// asksAgain reports whether an op was denied, and may be told to come back sooner.
func (op *Op) asksAgain(d *Decision) bool {
	l := &op.Limit.limit
	return !d.Allowed && d.RetryAfter != Never && op.IsHeld() && !op.Always && !l.Shape && l.Algorithm != InFlight
}

func (c *Pending) tellReserved(op *Op, d *Decision, now Micros, open OpenHolds) {
	r := returns{view: view{c: op.Limit, old: c.Prev, tail: c.Tail, now: max(0, now)}}
	r.measure()
	missing := op.Cost + op.Leave + c.Leased - r.free
	for i := range maxReturns {
		under, h := open(i)
		if under == nil {
			return
		}
		if r.add(under, &h); r.units() >= missing {
			d.Reserved, d.RetryAfter = missing, min(d.RetryAfter, ReservedRetry)
			return
		}
	}
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
