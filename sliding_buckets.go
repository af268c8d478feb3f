package weir

// Sliding buckets count in sub-windows, aligned to the epoch and numbered from
// it. All that have an instant in the last period count in full: that is one
// more than Buckets unless the period ends just with a sub-window.
//
//	Fresh  when the newest sub-window stops counting
//	A      units in the newest sub-window
//	B      units in the older ones that count when the newest begins
//
// The tail holds the older counts, sub-window i at i mod len(tail). B spares
// adding them up: time only takes away from it, one sub-window after another.

// stopsCounting is the instant from which sub-window i is out of the last
// period entirely.
func (c *Compiled) stopsCounting(i int64) Micros {
	return Micros((i+1)*c.width + c.period - 1)
}

// newest is the sub-window in which s was charged.
func (c *Compiled) newest(s State) int64 {
	return (int64(s.Fresh)+1-c.period)/c.width - 1
}

// oldest is the first sub-window that counts at now.
func (c *Compiled) oldest(now int64) int64 {
	return max(0, now-c.period+1) / c.width
}

// lookSlidingBuckets forgets what does not count at any instant of the current
// sub-window, for the clock may step back to its beginning.
func (v *view) lookSlidingBuckets() {
	c := v.c
	current := int64(v.now) / c.width
	if current*c.width >= int64(v.old.Fresh) || !c.Readable(v.old, v.tail) {
		v.old = State{}
	} else if newest := c.newest(v.old); newest >= current {
		v.now = max(v.now, Micros(newest*c.width))
		current = newest
		v.pending.A, v.pending.B = v.old.A, v.old.B
	} else {
		v.pending.B = v.old.B + v.old.A - v.between(c.oldest(newest*c.width), c.oldest(current*c.width))
	}
	v.pending.Fresh = c.stopsCounting(current)
	v.free = c.limit.N - v.inSubWindows()
}

// inSubWindows is all that counts now; the charge, if there was one, included.
func (v *view) inSubWindows() int64 {
	begin := v.c.newest(v.pending) * v.c.width
	return v.pending.A + v.pending.B - v.between(v.c.oldest(begin), v.c.oldest(int64(v.now)))
}

// between adds up the sub-windows from one to another, the latter excluded,
// all before the pending one.
func (v *view) between(from, to int64) int64 {
	if v.old.Fresh == 0 {
		return 0
	}
	newest, sum := v.c.newest(v.old), int64(0)
	for i := from; i < min(to, newest); i++ {
		sum += v.tail[i%int64(len(v.tail))]
	}
	if from <= newest && newest < to {
		sum += v.old.A
	}
	return sum
}

// chargeSlidingBuckets counts denials up to N in a sub-window: more would keep
// the key out no longer, and the sum of all must stay exact.
func (v *view) chargeSlidingBuckets(cost int64, debt bool) State {
	s := v.pending
	if s.A += cost; !debt {
		s.A = max(s.A-cost, min(s.A, v.c.limit.N))
	}
	return s
}

// waitSlidingBuckets waits until the oldest sub-windows have made enough room.
func (v *view) waitSlidingBuckets(cost int64) Micros {
	c := v.c
	missing := cost + v.inSubWindows() - c.limit.N
	i, newest := c.oldest(int64(v.now)), c.newest(v.old)
	if i < newest {
		ring := v.tail
		for at := i % int64(len(ring)); i < newest; i++ {
			if missing -= ring[at]; missing <= 0 {
				return c.stopsCounting(i) - v.now
			}
			if at++; at == int64(len(ring)) {
				at = 0
			}
		}
	}
	if missing -= v.between(i, newest+1); missing <= 0 {
		return c.stopsCounting(newest) - v.now
	}
	return v.pending.Fresh - v.now
}

// commitSlidingBuckets moves the newest count to the tail, and clears the sub-windows
// without requests.
func (c *Compiled) commitSlidingBuckets(tail []int64, prev, next State) {
	current := c.newest(next)
	if int64(prev.Fresh) <= current*c.width {
		clear(tail)
		return
	}
	newest := c.newest(prev)
	if newest == current {
		return
	}
	length := int64(len(tail))
	tail[newest%length] = prev.A
	for i := newest + 1; i < current; i++ {
		tail[i%length] = 0
	}
}

// refundSlidingBuckets finds the charge in the newest sub-window, or in an older
// one that still counts.
func (c *Compiled) refundSlidingBuckets(s State, tail []int64, receipt Micros, cost int64) State {
	if receipt == Micros(Latest) {
		receipt = s.Fresh
	}
	length, newest := int64(len(tail)), c.newest(s)
	switch i := c.newest(State{Fresh: receipt}); {
	case i == newest:
		s.A -= min(s.A, cost)
	case c.oldest(newest*c.width) <= i && i < newest:
		count := &tail[i%length]
		back := min(*count, cost, s.B)
		*count -= back
		s.B -= back
	}
	if s.A > 0 {
		return s
	}
	// The newest sub-window is then the last one before it with anything in it.
	// What it could see and the other could not is not known in every ring.
	oldest := c.oldest(newest * c.width)
	for i := newest - 1; i >= oldest; i-- {
		count := tail[i%length]
		if count == 0 {
			continue
		}
		tail[i%length] = 0
		for j := c.oldest(i * c.width); j < oldest; j++ {
			tail[j%length] = 0
		}
		return State{Fresh: c.stopsCounting(i), A: count, B: max(0, s.B-count)}
	}
	return State{}
}
