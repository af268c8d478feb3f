package weir

// view is a key's standing at one instant: its state brought up to date, with
// the units that are free. Everything a decision needs is asked of it.
type view struct {
	c    *Compiled
	old  State   // as it was remembered
	tail []int64 // as it was remembered
	now  Micros  // never before the key's last charge, whatever the clock says

	// pending is old brought to now and, once charged, with the charge.
	pending State
	free    int64 // units that could be taken now
}

// look brings s to now. A clock that steps back finds time standing still at
// the key's last charge, so it never mints budget.
func (c *Compiled) look(s State, tail []int64, now Micros) view {
	if c.forgets(s, now) || !c.readable(s, tail) {
		s, tail = State{}, nil
	}
	v := view{c: c, old: s, tail: tail, now: now}
	switch c.limit.Algorithm {
	case FixedWindow:
		v.lookFixedWindow()
	case SlidingWindow:
		v.lookSlidingWindow()
	case SlidingLog:
		v.lookSlidingLog()
	case SlidingBuckets:
		v.lookSlidingBuckets()
	default:
		v.lookBucket()
	}
	v.free = max(0, v.free)
	return v
}

// forgets reports whether nothing of s counts at now, nor at any earlier instant
// that the clock may still step back to once the key is charged anew. That is
// so when s is as good as new, except in a sliding window: there, what has faded
// weighs again earlier in the same window.
func (c *Compiled) forgets(s State, now Micros) bool {
	if c.limit.Algorithm == SlidingWindow {
		return s.Fresh == 0 || now >= c.windowStart(s)+2*Micros(c.period)
	}
	return now >= s.Fresh
}

// readable reports whether s can be a state of this kind of limit. What comes
// out of a damaged store must not crash the limiter; it counts as nothing.
func (c *Compiled) readable(s State, tail []int64) bool {
	switch c.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		return s.B > 0
	case SlidingLog:
		return 0 < s.B && s.B <= s.A && s.B <= int64(len(tail))
	case SlidingBuckets:
		return c.buckets <= int64(len(tail))
	}
	return true
}

// charge returns the pending state with cost units more, and the instant at
// which it is as good as new.
func (v *view) charge(cost int64) State {
	switch v.c.limit.Algorithm {
	case FixedWindow:
		return v.chargeFixedWindow(cost)
	case SlidingWindow:
		return v.chargeSlidingWindow(cost)
	case SlidingLog:
		return v.chargeSlidingLog(cost)
	case SlidingBuckets:
		return v.chargeSlidingBuckets(cost)
	default:
		return v.chargeBucket(cost)
	}
}

// wait returns how long it takes from now until cost units fit on top of the
// pending state. They do not fit yet, and are no more than the capacity.
func (v *view) wait(cost int64) Micros {
	switch v.c.limit.Algorithm {
	case FixedWindow:
		return v.waitFixedWindow()
	case SlidingWindow:
		return v.waitSlidingWindow(cost)
	case SlidingLog:
		return v.waitSlidingLog(cost)
	case SlidingBuckets:
		return v.waitSlidingBuckets(cost)
	default:
		return v.waitBucket(cost)
	}
}

// fresh reports whether nothing of the key's past counts any more.
func (v *view) fresh() bool { return v.old.Fresh == 0 }

// counted adds to a count that denials may drive up without end.
func counted(count, cost int64) int64 { return min(count+cost, MaxUnits) }
