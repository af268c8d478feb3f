package weir

// A sliding window remembers the counts of two fixed windows, and takes the
// previous one to have been uniform.
//
//	Fresh  when A, as the previous count, weighs less than one unit: between
//	       the end of the window (exclusive) and the end of the one after it
//	A      units in the current window
//	B      units in the previous window

// windowStart is the start of the window in which s was charged. Fresh lies
// within the window after that one, its end included.
func (c *Compiled) windowStart(s State) Micros {
	period := Micros(c.period)
	return (s.Fresh-1)/period*period - period
}

// lookSlidingWindow keeps the previous count even when it has faded, for the
// clock may step back to where it has not.
func (v *view) lookSlidingWindow() {
	period := Micros(v.c.period)
	if start := v.c.windowStart(v.old); v.old.Fresh > 0 && v.now < start+2*period {
		v.now = max(v.now, start)
		if v.now < start+period {
			v.pending = v.old
		} else {
			v.pending.B = v.old.A
		}
	}
	left := v.c.period - int64(v.now%period)
	v.free = v.c.limit.N - mulDiv(v.pending.B, left, v.c.period) - v.pending.A
}

func (v *view) chargeSlidingWindow(cost int64, debt bool) State {
	s, period := v.pending, Micros(v.c.period)
	s.A = counted(s.A, cost, debt)
	start := v.now - v.now%period
	s.Fresh = start + period + Micros(v.c.faded(s.A, 0))
	return s
}

// waitSlidingWindow looks first into this window, where the previous count
// fades, then into the next, where this window's does.
func (v *view) waitSlidingWindow(cost int64) Micros {
	period := Micros(v.c.period)
	start := v.now - v.now%period
	if room := v.c.limit.N - v.pending.A - cost; room >= 0 {
		return start + Micros(v.c.faded(v.pending.B, room)) - v.now
	}
	return start + period + Micros(v.c.faded(v.pending.A, v.c.limit.N-cost)) - v.now
}

// faded returns how far into a window the previous count weighs at most room:
// the least elapsed with floor(count × (period − elapsed) / period) ≤ room.
func (c *Compiled) faded(count, room int64) int64 {
	return c.period - (mulDivUp(room+1, c.period, count) - 1)
}

// refundSlidingWindow finds the charge in this window, or in the one before.
func (c *Compiled) refundSlidingWindow(s State, receipt Micros, cost int64) State {
	if receipt == Micros(Latest) {
		receipt = s.Fresh
	}
	start, period := c.windowStart(s), Micros(c.period)
	switch c.windowStart(State{Fresh: receipt}) {
	case start:
		s.A -= min(s.A, cost)
	case start - period:
		s.B -= min(s.B, cost)
	}
	switch {
	case s.A > 0:
		s.Fresh = start + period + Micros(c.faded(s.A, 0))
		return s
	case s.B > 0:
		// The last charge was in the window before. What came before that one
		// is not known any more: for a clock that steps back, it was full.
		return State{Fresh: start + Micros(c.faded(s.B, 0)), A: s.B, B: c.limit.N}
	}
	return State{}
}
