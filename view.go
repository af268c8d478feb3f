package weir

// view is a key's standing at one instant: its state brought up to date, with
// the units that are free. Everything a decision needs is asked of it.
type view struct {
	c    *Compiled
	old  State   // as it was remembered; zero if nothing of it counts
	tail []int64 // as it was remembered
	now  Micros  // never before the key's last charge, whatever the clock says

	leave  int64 // units that are left for others
	leased int64 // units on lease, which are left for those who have them
	kept   int64 // units of these that would be free

	// pending is old brought to now and, once charged, with the charge.
	pending State
	free    int64 // units that could be taken now, without those that are left
}

// look brings the old state to now, and leaves what is left for others.
func (v *view) look() {
	v.measure()
	free := max(0, v.free-v.leave)
	v.free = max(0, free-v.leased)
	v.kept = free - v.free
}

// measure brings the old state to now. A clock that steps back finds time standing
// still at the key's last charge, so it never mints budget. What is free is then below 0 if
// the key is in debt.
//
// Each algorithm also rejects what no limiter of its kind has written:
// what comes out of a damaged store counts as nothing, and must not crash.
func (v *view) measure() {
	switch v.c.limit.Algorithm {
	case FixedWindow:
		v.lookFixedWindow()
	case SlidingWindow:
		v.lookSlidingWindow()
	case SlidingLog, InFlight:
		v.lookSlidingLog()
	case SlidingBuckets:
		v.lookSlidingBuckets()
	default:
		v.lookBucket()
	}
}

// charge returns the pending state with cost units more, and the instant at
// which it is fully reset. Of a denied request, what would keep the key out no longer
// need not count; of a debt, every unit does, and there is room for it.
func (v *view) charge(cost int64, debt bool) State {
	switch v.c.limit.Algorithm {
	case FixedWindow:
		return v.chargeFixedWindow(cost, debt)
	case SlidingWindow:
		return v.chargeSlidingWindow(cost, debt)
	case SlidingLog, InFlight:
		return v.chargeSlidingLog(cost, debt)
	case SlidingBuckets:
		return v.chargeSlidingBuckets(cost, debt)
	default:
		return v.chargeBucket(cost)
	}
}

// room is how many units a key may be charged whether they fit or not, if it may have that much in use.
func (v *view) room(most int64) int64 {
	switch v.c.limit.Algorithm {
	case FixedWindow, SlidingWindow:
		return most - v.pending.A
	case SlidingLog, InFlight:
		return most - v.c.log(v.pending, nil).units
	case SlidingBuckets:
		return most - v.inSubWindows()
	default:
		return v.roomInBucket(most)
	}
}

// wait returns how long it takes from now until cost units, and those that are left, fit on
// top of the pending state. They do not fit yet, and are no more than the capacity.
func (v *view) wait(cost int64) Micros {
	if v.leased > 0 {
		return v.waitLeased(cost)
	}
	cost += v.leave
	switch v.c.limit.Algorithm {
	case FixedWindow:
		return v.waitFixedWindow()
	case SlidingWindow:
		return v.waitSlidingWindow(cost)
	case SlidingLog, InFlight:
		return v.waitSlidingLog(cost)
	case SlidingBuckets:
		return v.waitSlidingBuckets(cost)
	default:
		return v.waitBucket(cost)
	}
}

// waitLeased is wait as if what is on lease were spent now.
func (v *view) waitLeased(cost int64) Micros {
	spent := *v
	spent.leased = 0
	if units := min(v.leased, v.room(v.c.most)); units > 0 {
		spent.pending = v.charge(units, true)
	}
	return spent.wait(cost)
}

// counted adds to a count that denials may drive up without end.
func counted(count, cost int64, debt bool) int64 {
	if debt {
		return count + cost
	}
	return max(count, min(count+cost, MaxUnits))
}
