package weir

import "iter"

// Release gives back units of a hold to a key in state s, as of the time of the
// reservation: what expired since then does not come back. It returns the new state, and
// changes the tail. Of a bucket, it also returns how many parts it gave back: holds that
// were reserved later and are still open move up, so each of them has so much less in its
// Level when it ends, which may then be below 0. A store with many holds adds these up.
//
// Windows, sub-windows and the log are then as if the units had never been charged. A
// bucket never has more than that, for any number of holds, if nothing of it is given back
// by Refund meanwhile. A shaping queue gives back only its last place.
func (c *Compiled) Release(s State, tail []int64, h Held, units int64) (next State, back int64) {
	units = min(units, h.Cost)
	if !c.limit.Algorithm.leaks() {
		return c.Refund(s, tail, h.Receipt, units), 0
	}
	if s.Fresh <= 0 || s.B <= 0 || units <= 0 || c.limit.Shape && Micros(h.Receipt) != s.Fresh {
		return s, 0
	}
	n, level := c.n, s.A
	if s.B != c.limit.N {
		n, level = c.recount(level, s.B)
	}
	last := s.Fresh - Micros(divUp(s.A, n))
	back = min(units*c.p, level, h.Level-c.drained(last-h.At, s.B))
	if back <= 0 {
		return s, 0
	}
	if level -= back; level <= 0 {
		return State{}, back
	}
	return State{Fresh: last + Micros(divUp(level, c.n)), A: level, B: c.limit.N}, back
}

// drained is how much has left a bucket in a time at most, if its N may have been another.
func (c *Compiled) drained(time Micros, under int64) int64 {
	if time <= 0 {
		return 0
	}
	drained := mulCap(int64(time), c.n)
	if under > c.limit.N {
		n, p := lowestTerms(under, c.period)
		other := mulCap(int64(time), n)
		if other >= exact || other/p >= (exact-1)/c.p {
			return exact
		}
		drained = max(drained, mulDivUp(other, c.p, p))
	}
	return drained
}

// ReleaseAll is Release of all units of many holds, in one pass. Holds of a log, and of a bucket, come in the order
// of reservation and end in any; others end in the order in which they come. Level is what it was before any of them ended;
// when the next hold is asked for, that of the one before is how much it gave back. If the order of their ends makes a
// difference, as it can in a bucket after a plain [Compiled.Refund], and does in a shaping queue, ok is false and nothing
// has changed: release them one after the other.
func (c *Compiled) ReleaseAll(s State, tail []int64, holds iter.Seq[*Held]) (next State, ok bool) {
	switch {
	case c.limit.Shape:
		return s, false
	case c.limit.Algorithm.leaks():
		return c.releaseAllOfBucket(s, holds)
	case c.limit.Algorithm.logs():
		return c.releaseAllOfLog(s, tail, holds), true
	}
	var window Held // those that follow each other and were charged in the same one
	for h := range holds {
		if window.Cost > 0 && window.Cost < exact && c.sameWindow(window.Receipt, h.Receipt) {
			window.Cost += h.Cost
			continue
		}
		s, window = c.Refund(s, tail, window.Receipt, window.Cost), *h
	}
	return c.Refund(s, tail, window.Receipt, window.Cost), true
}

// sameWindow reports whether two charges were in the same window, or sub-window.
func (c *Compiled) sameWindow(a, b Receipt) bool {
	if c.limit.Algorithm != SlidingWindow {
		return a == b
	}
	return c.windowStart(State{Fresh: Micros(a)}) == c.windowStart(State{Fresh: Micros(b)})
}

// releaseAllOfBucket adds up. A hold gives back all of its cost, whatever holds before it gave back first, if so much
// has not drained even then; only the first that has anything left may have drained in part.
func (c *Compiled) releaseAllOfBucket(s State, holds iter.Seq[*Held]) (next State, ok bool) {
	if s.A != 0 && s.B != c.limit.N {
		return s, false
	}
	last, back := s.Fresh-Micros(divUp(s.A, c.n)), int64(0)
	for h := range holds {
		cost, rest := h.Cost*c.p, h.Level-c.drained(last-h.At, s.B)
		switch h.Level = 0; {
		case s.A == 0: // there is nothing in it
		case rest >= back+cost:
			h.Level = cost
		case rest > 0 && back == 0:
			h.Level = rest
		case rest > 0:
			return s, false
		}
		back += h.Level
	}
	switch left := s.A - back; {
	case left < 0:
		return s, false
	case back == 0:
		return s, true
	case left == 0:
		return State{}, true
	default:
		return State{Fresh: last + Micros(divUp(left, c.n)), A: left, B: s.B}, true
	}
}

// releaseAllOfLog takes units out of their entries, and moves up those that are left.
func (c *Compiled) releaseAllOfLog(s State, tail []int64, holds iter.Seq[*Held]) State {
	if s.Fresh <= 0 || !c.Readable(s, tail) {
		return s
	}
	l := c.log(s, tail)
	i, from, to, newest, gone, cost := l.first, l.units, l.first, l.newest, int64(0), int64(0)
	keep := func() { // the next entry, without cost units
		word, time, newer := *l.word(i), l.at(i), min(l.units, l.newer(i))
		has := from - newer
		back := max(0, min(cost, has))
		i, from, gone, cost = i+1, newer, gone+back, 0
		if back > 0 && back == has {
			return
		}
		*l.word(to) = word&^(1<<l.rankBits-1) | l.mod(word-gone)
		newest, to = time, to+1
	}
	for h := range holds {
		taken := int64(h.Receipt) - c.period
		for i < l.end && l.at(i) < taken {
			keep()
		}
		if i < l.end && l.at(i) == taken {
			cost += h.Cost
		}
	}
	for i < l.end {
		keep()
	}
	l.rank, l.units, l.newest, l.end = l.mod(l.rank-gone), l.units-gone, newest, to
	if l.units == 0 || l.first == l.end {
		return State{}
	}
	return c.logState(&l)
}
