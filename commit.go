package weir

// TailLen returns how many words of tail the state needs: none but for
// SlidingLog, a word for each unit that counts, and SlidingBuckets, one for
// each sub-window. A longer tail is welcome.
func (c *Compiled) TailLen(s State) int {
	switch c.limit.Algorithm {
	case SlidingLog:
		return int(s.B)
	case SlidingBuckets:
		return int(c.buckets)
	}
	return 0
}

// Readable reports whether s, with its tail, can have been written by a limiter of
// this kind. What is not, and comes out of a damaged store, counts as nothing:
// Decide takes it for the zero State, and whoever commits has to do the same.
func (c *Compiled) Readable(s State, tail []int64) bool {
	switch c.limit.Algorithm {
	case SlidingLog:
		return s.B <= s.A && s.B <= int64(len(tail))
	case SlidingBuckets:
		return s == State{} || c.buckets <= int64(len(tail)) && c.newest(s) >= 0
	}
	return true
}

// Commit puts into tail what Decide on prev found out when it returned next.
// The tail must have been prev's, and have at least TailLen(next) words; see
// [Compiled.MoveTail] to give it more. Keeping next itself is the caller's part.
func (c *Compiled) Commit(tail []int64, prev, next State) {
	if prev == next {
		return
	}
	switch c.limit.Algorithm {
	case SlidingLog:
		c.commitSlidingLog(tail, prev, next)
	case SlidingBuckets:
		c.commitSlidingBuckets(tail, prev, next)
	}
}

// Record is a key's state and tail in ordinary memory, for those who have no
// better place for them.
type Record struct {
	State State
	Tail  []int64
}

// Keep puts next, which Decide returned for the record's state, into effect. A
// tail that has to grow doubles, for a log that gets longer by one unit at a
// time would be copied as often.
func (r *Record) Keep(limit *Compiled, next State) {
	if next == r.State {
		return
	}
	prev := r.State
	if !limit.Readable(prev, r.Tail) {
		prev = State{}
	}
	if need := limit.TailLen(next); need > len(r.Tail) {
		longer := make([]int64, max(need, min(2*len(r.Tail), int(limit.capacity))))
		limit.MoveTail(longer, r.Tail, prev)
		r.Tail = longer
	}
	limit.Commit(r.Tail, prev, next)
	r.State = next
}

// MoveTail copies the tail of state s to dst, which has at least TailLen(s) words,
// wherever a tail of that length has them.
func (c *Compiled) MoveTail(dst, src []int64, s State) {
	switch {
	case s == State{} || len(src) == 0:
	case c.limit.Algorithm == SlidingLog:
		moveRing(dst, src, s.A-s.B, s.A)
	case c.limit.Algorithm == SlidingBuckets:
		newest := c.newest(s)
		moveRing(dst, src, max(0, newest-c.buckets), newest)
	}
}

// moveRing copies what has the numbers from one to another, the latter excluded,
// into a ring of another length.
func moveRing(dst, src []int64, from, to int64) {
	for i := from; i < to; i++ {
		dst[i%int64(len(dst))] = src[i%int64(len(src))]
	}
}
