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
		n, p := c.n, c.p
		if v.old.B != c.limit.N {
			n, p = lowestTerms(v.old.B, c.period)
		}
		last := v.old.Fresh - Micros(divUp(v.old.A, n))
		v.now = max(v.now, last)
		level = v.old.A - int64(v.now-last)*n
		if v.old.B != c.limit.N {
			level = c.recount(level, p)
		}
	}
	v.pending.A, v.pending.B = level, c.limit.N
	v.free = (c.full - level) / c.p
}

// recount turns a level of p parts a unit, from before the limit was changed,
// into one of c.p parts. What was used stays used, rounded up, as far as the
// new capacity knows it.
func (c *Compiled) recount(level, p int64) int64 {
	if level/p >= c.capacity {
		return c.full
	}
	return min(c.full, mulDivUp(level, c.p, p))
}

func (v *view) chargeBucket(cost int64) State {
	s := v.pending
	s.A += cost * v.c.p
	s.Fresh = v.now + Micros(divUp(s.A, v.c.n))
	return s
}

func (v *view) waitBucket(cost int64) Micros {
	return Micros(divUp(cost*v.c.p-(v.c.full-v.pending.A), v.c.n))
}

// delay is how long the level before a request takes to drain, which is when
// its turn comes.
func (v *view) delay() Micros { return Micros(divUp(v.pending.A, v.c.n)) }
