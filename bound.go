package weir

// Bound returns the most units that one key can get in any stretch (t − Period, t],
// delays included, if no request costs more than largest. Some traffic reaches this
// bound.
//
// In the code, p is the period in microseconds, and a request is allowed at a whole
// microsecond.
func (c *Compiled) Bound(largest int64) int64 {
	n, p := c.limit.N, c.period
	switch c.limit.Algorithm {
	case FixedWindow:
		// A stretch touches two windows, unless it is a single microsecond.
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
			// All but the last of the stretch have drained in less than a
			// period, so they are less than N; the last leaves whole.
			return n - 1 + min(largest, c.capacity)
		}
		// A full bucket, and what flows back until p − 1 later.
		return c.capacity + n - (n+p-1)/p
	}
	return n // the log and the sub-windows are exact, or stricter
}
