package weir

// Token bucket and leaky bucket are one arithmetic: tokens taken are a level
// that drains. The level is counted in parts, p to a unit, of which n drain
// each microsecond; see Compiled.
//
//	Fresh  when the level is down to nothing
//	A      the level at the last charge, in parts
//	B      the N under which the parts were counted
//
// The time of the last charge need not be kept: from there the level takes
// A/n, rounded up, to Fresh.

func (v *view) lookBucket() {
	c := v.c
	v.pending.A, v.now = c.level(v.old, v.now)
	v.pending.B = c.limit.N
	v.free = floorDiv(c.full-v.pending.A, c.p)
}

// level returns the level at an instant, which is never before the last charge.
func (c *Compiled) level(s State, now Micros) (int64, Micros) {
	if now >= s.Fresh || s.B <= 0 {
		return 0, now
	}
	n, level := c.n, s.A
	if s.B != c.limit.N {
		n, level = c.recount(level, s.B)
	}
	last := s.Fresh - Micros(divUp(s.A, n))
	now = max(now, last)
	return level - min(level, mulCap(int64(now-last), c.n)), now
}

// recount turns a level that was counted under another N into parts of this
// limit, rounded up: what was used stays used. It also returns the old rate, by
// which Fresh was computed. From the last charge on, the new rate applies.
func (c *Compiled) recount(level, under int64) (n, parts int64) {
	n, p := lowestTerms(under, c.period)
	if level/p >= (exact-1)/c.p {
		return n, exact - 1
	}
	return n, mulDivUp(level, c.p, p)
}

func (v *view) chargeBucket(cost int64) State { return v.c.fill(v.pending.A, cost, v.now) }

// fill returns the state after a charge on top of a level.
func (c *Compiled) fill(level, cost int64, now Micros) State {
	level += cost * c.p
	return State{Fresh: now + Micros(divUp(level, c.n)), A: level, B: c.limit.N}
}

// roomInBucket leaves Fresh an exact number, too.
func (v *view) roomInBucket(most int64) int64 {
	most = min(most, mulCap(int64(exact-1-v.now), v.c.n))
	return (most - v.pending.A) / v.c.p
}

func (v *view) waitBucket(cost int64) Micros {
	return Micros(divUp(cost*v.c.p-(v.c.full-v.pending.A), v.c.n))
}

// delay is how long the level before a request takes to drain, which is when
// its turn comes.
func (v *view) delay() Micros { return Micros(divUp(v.pending.A, v.c.n)) }

// refundBucket lowers the level as it was at the last charge. A charge drains
// after all that was in the bucket before it, and the last of it at its receipt:
// what others have seen drain by their time is gone. Of a queue's places, only the
// last can be given back.
func (c *Compiled) refundBucket(s State, receipt Micros, cost int64) State {
	if s.B <= 0 {
		return s
	}
	n, level := c.n, s.A
	if s.B != c.limit.N {
		n, level = c.recount(level, s.B)
	}
	last := s.Fresh - Micros(divUp(s.A, n))
	back := min(cost, (exact-1)/c.p) * c.p
	if receipt < s.Fresh && c.limit.Shape {
		return s
	}
	// Above a million units a second, several charges can have the same receipt.
	if receipt < s.Fresh || c.p < c.n {
		left := mulCap(int64(max(0, receipt-last)), c.n) - (c.n - 1)
		back = min(back, max(0, left))
	}
	if level <= back {
		return State{}
	}
	level -= back
	return State{Fresh: last + Micros(divUp(level, c.n)), A: level, B: c.limit.N}
}
