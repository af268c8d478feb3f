package weir

// view is a key's standing at one instant: its state brought up to date, with
// the units that are free. Everything a decision needs is asked of it.
type view struct {
	c    *Compiled
	old  State   // as it was remembered; zero if nothing of it counts
	tail []int64 // as it was remembered
	now  Micros  // never before the key's last charge, whatever the clock says

	// pending is old brought to now and, once charged, with the charge.
	pending State
	free    int64 // units that could be taken now
}

// look brings the old state to now. A clock that steps back finds time standing
// still at the key's last charge, so it never mints budget.
//
// Each algorithm also rejects what no limiter of its kind has written:
// what comes out of a damaged store counts as nothing, and must not crash.
func (v *view) look() {
	switch v.c.limit.Algorithm {
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
}

// charge returns the pending state with cost units more, and the instant at
// which it is fully reset.
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

// counted adds to a count that denials may drive up without end.
func counted(count, cost int64) int64 { return min(count+cost, MaxUnits) }
