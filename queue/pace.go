package queue

import (
	"math/bits"
	"time"

	"github.com/weirhq/weir"
)

// Pace is the exact instant of the next release: Next microseconds and Part/Rate of
// one. The zero Pace is that of a queue without releases. Only authors of a store need
// it.
type Pace struct {
	Next weir.Micros
	Part int64
	Rate int64 // the rate under which Part was counted
}

// Slot returns the earliest instant at which an item may be released, as of now.
//
// Stores never release an item more than MaxAhead in advance. If p is further in the
// future than that allows, the clock has stepped back. Slot then returns the furthest
// possible slot, so that the queue continues without releasing too much.
func (t *Terms) Slot(p Pace, now weir.Micros) Pace {
	if p.Rate != t.Rate && p.Part > 0 {
		p.Next, p.Part = p.Next+1, 0
	}
	p.Rate = t.Rate
	if p.Release() < now { // not p.Next, which ignores the fraction of a microsecond
		p.Next, p.Part = now, 0
	}
	if furthest := now + weir.Micros(MaxAhead.Microseconds()+(t.Span+t.Rate-1)/t.Rate); p.Next > furthest {
		p.Next, p.Part = furthest, 0
	}
	return p
}

// Release returns the first whole microsecond of the slot.
func (p Pace) Release() weir.Micros {
	if p.Part > 0 {
		return p.Next + 1
	}
	return p.Next
}

// After returns the next slot.
func (t *Terms) After(slot Pace) Pace {
	slot.Next += weir.Micros(t.Span / t.Rate)
	slot.Part += t.Span % t.Rate
	if slot.Part >= t.Rate {
		slot.Next, slot.Part = slot.Next+1, slot.Part-t.Rate
	}
	return slot
}

// Wait returns the time until the ready item at a position is released, if workers are
// free and no other item comes before it.
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
