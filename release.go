package weir

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

// ReleaseAll is Release of all units of many holds, in one pass. Holds of a log, and of a bucket that does not
// shape, come in the order of reservation and end in any; others end in the order in which they come. Those of a log come all
// at once. Others can come in several calls, of which each gets the state and the sum that the one before returned,
// beginning with 0; Level is what it was before the first call. Of a bucket, the Level of each is then how much it gave
// back, and the sum is that of all. If the order of their ends makes a difference in a bucket, as it can after a plain
// [Compiled.Refund], ok is false: release them as they were, one after the other.
func (c *Compiled) ReleaseAll(s State, tail []int64, holds []Held, sum int64) (next State, total int64, ok bool) {
	switch {
	case c.limit.Algorithm.logs():
		return c.releaseAllOfLog(s, tail, holds), 0, true
	case c.limit.Algorithm.leaks() && !c.limit.Shape:
		return c.releaseAllOfBucket(s, holds, sum)
	}
	for i := range holds {
		s, holds[i].Level = c.Release(s, tail, holds[i], holds[i].Cost)
	}
	return s, 0, true
}

// releaseAllOfBucket adds up. A hold gives back all of its cost, whatever holds before it gave back first, if so much
// has not drained even then; only the first that has anything left may have drained in part.
func (c *Compiled) releaseAllOfBucket(s State, holds []Held, sum int64) (next State, total int64, ok bool) {
	if s.A != 0 && s.B != c.limit.N || s.A == 0 && sum > 0 && len(holds) > 0 {
		return s, sum, false
	}
	last, left := s.Fresh-Micros(divUp(s.A, c.n)), s.A
	total = sum
	for i := range holds {
		h := &holds[i]
		cost, rest := h.Cost*c.p, h.Level-c.drained(last-h.At, s.B)
		switch h.Level = 0; {
		case s.A == 0: // there is nothing in it
		case rest >= total+cost:
			h.Level = cost
		case rest > 0 && total == 0:
			h.Level = rest
		case rest > 0:
			return s, sum, false
		}
		total += h.Level
	}
	switch left -= total - sum; {
	case left < 0:
		return s, sum, false
	case left == s.A:
		return s, total, true
	case left == 0:
		return State{}, total, true
	}
	return State{Fresh: last + Micros(divUp(left, c.n)), A: left, B: s.B}, total, true
}

// releaseAllOfLog takes units out of their entries, and moves up those that are left.
func (c *Compiled) releaseAllOfLog(s State, tail []int64, holds []Held) State {
	if s.Fresh <= 0 || !c.Readable(s, tail) {
		return s
	}
	l := c.log(s, tail)
	from, to, newest, gone := l.units, l.first, l.newest, int64(0)
	for i := l.first; i < l.end; i++ {
		word, time, newer, cost := *l.word(i), l.at(i), min(l.units, l.newer(i)), int64(0)
		for ; len(holds) > 0 && int64(holds[0].Receipt)-c.period <= time; holds = holds[1:] {
			if int64(holds[0].Receipt)-c.period == time {
				cost += holds[0].Cost
			}
		}
		has := from - newer
		back := max(0, min(cost, has))
		from, gone = newer, gone+back
		if back > 0 && back == has {
			continue
		}
		*l.word(to) = word&^(1<<l.rankBits-1) | l.mod(word-gone)
		newest, to = time, to+1
	}
	l.rank, l.units, l.newest, l.end = l.mod(l.rank-gone), l.units-gone, newest, to
	if l.units == 0 || l.first == l.end {
		return State{}
	}
	return c.logState(&l)
}
