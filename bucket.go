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
	level := int64(0)
	if v.now < v.old.Fresh && v.old.B > 0 {
		n := c.n
		level = v.old.A
		if v.old.B != c.limit.N {
			n, level = c.recount(level, v.old.B)
		}
		last := v.old.Fresh - Micros(divUp(v.old.A, n))
		v.now = max(v.now, last)
		level -= min(level, mulCap(int64(v.now-last), c.n))
	}
	v.pending.A, v.pending.B = level, c.limit.N
	v.free = (c.full - level) / c.p
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

func (v *view) chargeBucket(cost int64) State {
	s := v.pending
	s.A += cost * v.c.p
	s.Fresh = v.now + Micros(divUp(s.A, v.c.n))
	return s
}

// roomInBucket leaves Fresh an exact number, too.
func (v *view) roomInBucket() int64 {
	most := min(v.c.most, mulCap(int64(exact-1-v.now), v.c.n))
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
