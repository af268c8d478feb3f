package weir

// Bound returns the most units that one key can get in any interval (t − Period, t], if
// no request costs more than largest. A delayed request counts when its delay ends.
// Some traffic reaches this bound.
//
// For periods of the calendar, whose lengths differ, the bound holds in any interval that
// contains no whole period, as long as the limit does not change.
func (c *Compiled) Bound(largest int64) int64 {
	n, p := c.limit.N, c.period // p in microseconds; requests are allowed at whole microseconds
	switch c.limit.Algorithm {
	case FixedWindow:
		// An interval covers parts of two windows, unless it is a single microsecond. To cover
		// parts of three it would have to contain the one in the middle.
		if p == 1 {
			return n
		}
		return 2 * n
	case SlidingWindow:
		// With b ≤ N units in the previous window, all of them after e, and
		// the last of this window at e, the estimate leaves room for
		// N − floor(b(p−e)/p). The sum grows with b and e; b = N at the very
		// end of the window leaves e = p − 2.
		if p == 1 {
			return n
		}
		return 2*n - 2*n/p
	case TokenBucket, LeakyBucket:
		if c.limit.Shape {
			// All but the last request of the interval drained in less than a period, so they
			// cost less than N together; the last one leaves as a whole.
			return n - 1 + min(largest, c.capacity)
		}
		// A full bucket, and what refills within p − 1.
		return c.capacity + n - (n+p-1)/p
	}
	return n // the log and the sub-windows are exact, or stricter
}
