package weir

import "iter"

// Sliding buckets count in sub-windows, aligned to the epoch and numbered from
// it. All that have an instant in the last period count in full: that is one
// more than Buckets unless the period ends just with a sub-window.
//
//	Fresh  when the newest sub-window stops counting
//	A      units in the newest sub-window
//
// The tail holds the older counts, sub-window i at i mod len(tail).

// stopsCounting is the instant from which sub-window i is out of the last
// period entirely.
func (c *Compiled) stopsCounting(i int64) Micros {
	return Micros((i+1)*c.width + c.period - 1)
}

// newest is the sub-window in which s was charged.
func (c *Compiled) newest(s State) int64 {
	return (int64(s.Fresh)+1-c.period)/c.width - 1
}

func (v *view) lookSlidingBuckets() {
	c := v.c
	current := int64(v.now) / c.width
	if !v.fresh() {
		if newest := c.newest(v.old); newest >= current {
			v.now = max(v.now, Micros(newest*c.width))
			current = newest
			v.pending.A = v.old.A
		}
	}
	v.pending.Fresh = c.stopsCounting(current)
	v.free = c.limit.N
	for _, count := range v.subWindows() {
		v.free -= count
	}
}

// subWindows yields the sub-windows that count, oldest first, with their
// counts; the charge, if there was one, included.
func (v *view) subWindows() iter.Seq2[int64, int64] {
	return func(yield func(int64, int64) bool) {
		c := v.c
		current := c.newest(v.pending)
		if !v.fresh() {
			newest := c.newest(v.old)
			length := int64(len(v.tail))
			oldest := max(0, int64(v.now)-c.period+1) / c.width
			for i, at := oldest, oldest%length; i < newest; i++ {
				if !yield(i, v.tail[at]) {
					return
				}
				if at++; at == length {
					at = 0
				}
			}
			if newest < current && !yield(newest, v.old.A) {
				return
			}
		}
		yield(current, v.pending.A)
	}
}

func (v *view) chargeSlidingBuckets(cost int64) State {
	s := v.pending
	s.A = counted(s.A, cost)
	return s
}

// waitSlidingBuckets waits until the oldest sub-windows have made enough room.
func (v *view) waitSlidingBuckets(cost int64) Micros {
	missing := cost - v.c.limit.N
	for _, count := range v.subWindows() {
		missing += count
	}
	for i, count := range v.subWindows() {
		if missing -= count; missing <= 0 {
			return v.c.stopsCounting(i) - v.now
		}
	}
	return 0 // not reached: the cost is no more than N
}

// commitSlidingBuckets retires the count that was the newest, and clears the
// sub-windows that nobody used.
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
