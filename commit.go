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
	if need := limit.TailLen(next); need > len(r.Tail) {
		longer := make([]int64, max(need, min(2*len(r.Tail), int(limit.capacity))))
		limit.MoveTail(longer, r.Tail, r.State)
		r.Tail = longer
	}
	limit.Commit(r.Tail, r.State, next)
	r.State = next
}

// MoveTail copies the tail of state s to dst, which has at least TailLen(s)
// words.
func (c *Compiled) MoveTail(dst, src []int64, s State) {
	if len(src) == 0 {
		return
	}
	if c.limit.Algorithm == SlidingLog {
		moveSlidingLog(dst, src, s)
		return
	}
	copy(dst, src)
}
