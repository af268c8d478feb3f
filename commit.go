package weir

import "math/bits"

// TailLen returns the number of tail words that the state needs. SlidingLog and
// InFlight need one for each microsecond at which units that still count were taken, and
// SlidingBuckets one for each sub-window; the other algorithms need none. A longer tail is fine, but
// the length of a log's tail must be a power of two.
func (c *Compiled) TailLen(s State) int {
	switch c.limit.Algorithm {
	case SlidingLog, InFlight:
		return int(s.B >> maxRankBits)
	case SlidingBuckets:
		return int(c.buckets)
	}
	return 0
}

// Readable reports whether a limiter of this kind can have written s and its tail. An
// unreadable state comes from a damaged store and counts as nothing: Decide treats it
// as the zero State, and the code that commits must do the same.
func (c *Compiled) Readable(s State, tail []int64) bool {
	switch c.limit.Algorithm {
	case SlidingLog, InFlight:
		return readableLog(s, tail)
	case SlidingBuckets:
		return s == State{} || c.buckets <= int64(len(tail)) && c.newest(s) >= 0
	}
	return true
}

// Commit updates the tail after Decide on prev returned next. The tail must be prev's
// and have at least TailLen(next) words; [Compiled.MoveTail] makes a longer one. The
// caller stores next itself.
func (c *Compiled) Commit(tail []int64, prev, next State) {
	if prev == next {
		return
	}
	switch c.limit.Algorithm {
	case SlidingLog, InFlight:
		c.commitSlidingLog(tail, next)
	case SlidingBuckets:
		c.commitSlidingBuckets(tail, prev, next)
	}
}

// Record holds a key's state and tail in ordinary memory, for stores without a layout
// of their own.
type Record struct {
	State State
	Tail  []int64
}

// Keep stores next, which Decide returned for the record's state. A tail that must grow
// doubles, because a log that grew by one entry at a time would be copied each time.
func (r *Record) Keep(limit *Compiled, next State) {
	if next == r.State {
		return
	}
	prev := r.State
	if !limit.Readable(prev, r.Tail) {
		prev = State{}
	}
	if need := limit.TailLen(next); need > len(r.Tail) {
		longer := make([]int64, 1<<bits.Len(uint(need-1)))
		limit.MoveTail(longer, r.Tail, prev)
		r.Tail = longer
	}
	limit.Commit(r.Tail, prev, next)
	r.State = next
}

// MoveTail copies the tail of state s to dst, which needs at least TailLen(s) words.
// The position of a word depends on the length of the tail.
func (c *Compiled) MoveTail(dst, src []int64, s State) {
	switch {
	case s == State{} || len(src) == 0:
	case c.limit.Algorithm.logs():
		l := c.log(s, src)
		for i := l.first; i < l.end; i++ {
			dst[i&int64(len(dst)-1)] = *l.word(i)
		}
	case c.limit.Algorithm == SlidingBuckets:
		newest := c.newest(s)
		for i := max(0, newest-c.buckets); i < newest; i++ {
			dst[i%int64(len(dst))] = src[i%int64(len(src))]
		}
	}
}

// Refund gives back cost units that the decision with this receipt charged to a key in
// state s. It returns the new state and changes the tail.
//
// Windows, sub-windows and the log are then as if the charge had never happened,
// whatever was charged since. Units that have already expired are not given back again.
// A bucket may have fewer units than that: it gives back only what of the charge has not
// drained yet, if what came first drains first. A shaping queue gives back only its last
// place, because later requests already know their turn.
//
// The receipt of a bucket does not know what was given back of charges before it. So after
// several refunds, a bucket can have as many units too many as those after the first gave
// back, if some of their charges had drained by then. It never has if the units are those of
// holds instead, and no other units of the key are refunded; see [Compiled.Release].
//
// If the clock steps back after a refund, the key may have fewer units than before it.
func (c *Compiled) Refund(s State, tail []int64, receipt Receipt, cost int64) State {
	if s.Fresh <= 0 || receipt <= 0 || cost <= 0 || !c.Readable(s, tail) {
		return s
	}
	if s = c.refund(s, tail, Micros(receipt), cost); s.Fresh <= 0 {
		return State{} // there was nothing more, or it was damaged
	}
	return s
}

func (c *Compiled) refund(s State, tail []int64, receipt Micros, cost int64) State {
	switch c.limit.Algorithm {
	case FixedWindow:
		return c.refundFixedWindow(s, receipt, cost)
	case SlidingWindow:
		return c.refundSlidingWindow(s, receipt, cost)
	case SlidingLog, InFlight:
		return c.refundSlidingLog(s, tail, receipt, cost)
	case SlidingBuckets:
		return c.refundSlidingBuckets(s, tail, receipt, cost)
	default:
		return c.refundBucket(s, receipt, cost)
	}
}

// Refund gives back the charge that the op's receipt identifies.
func (r *Record) Refund(op *Op) {
	r.State = op.Limit.Refund(r.State, r.Tail, op.Receipt, op.Cost)
}
