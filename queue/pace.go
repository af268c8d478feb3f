package queue

import (
	"math/bits"
	"time"

	"github.com/weirhq/weir"
)

// Pace is the instant of the next release, exactly: Next microseconds and Part/Rate of
// one. The zero Pace is that of a queue that nothing has left yet. It is for those who
// write a store.
type Pace struct {
	Next weir.Micros
	Part int64
	Rate int64 // under which Part was counted
}

// Slot is when an item may be released at the earliest, seen from now.
//
// No release was ever given away more than MaxAhead in advance. A pace that is further
// away comes from a clock that has stepped back since; it is believed as far as it can
// be true, so that the queue goes on without a release too many.
func (t *Terms) Slot(p Pace, now weir.Micros) Pace {
	if p.Rate != t.Rate && p.Part > 0 {
		p.Next, p.Part = p.Next+1, 0
	}
	p.Rate = t.Rate
	if p.Release() < now { // and not p.Next: a fraction of a microsecond is nobody's fault
		p.Next, p.Part = now, 0
	}
	if furthest := now + weir.Micros(MaxAhead.Microseconds()+(t.Span+t.Rate-1)/t.Rate); p.Next > furthest {
		p.Next, p.Part = furthest, 0
	}
	return p
}

// Release is the first whole microsecond of a slot.
func (p Pace) Release() weir.Micros {
	if p.Part > 0 {
		return p.Next + 1
	}
	return p.Next
}

// After is the slot that comes after one.
func (t *Terms) After(slot Pace) Pace {
	slot.Next += weir.Micros(t.Span / t.Rate)
	slot.Part += t.Span % t.Rate
	if slot.Part >= t.Rate {
		slot.Next, slot.Part = slot.Next+1, slot.Part-t.Rate
	}
	return slot
}

// Wait is how long from now until the item at a position among those that are ready is
// released, if workers are there and nothing comes before it.
func (t *Terms) Wait(slot Pace, now weir.Micros, position int64) time.Duration {
	if position < 1 {
		return 0
	}
	// (position−1) × Span / Rate: at most a million times ten years, over 1 or more.
	high, low := bits.Mul64(uint64(position-1), uint64(t.Span))
	low, carry := bits.Add64(low, uint64(slot.Part+t.Rate-1), 0)
	high += carry
	if high >= uint64(t.Rate) {
		return weir.Never
	}
	q, _ := bits.Div64(high, low, uint64(t.Rate))
	if q > uint64(weir.Never/time.Microsecond)/2 {
		return weir.Never
	}
	return time.Duration(int64(slot.Next-now)+int64(q)) * time.Microsecond
}
