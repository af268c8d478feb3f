package weir

import (
	"math"
	"math/bits"
)

// TailLen returns how many words of tail the state needs: none but for
// SlidingLog, a word for each microsecond at which units were taken that count, and
// SlidingBuckets, one for each sub-window. A longer tail is welcome, but that of a
// log has as many words as a power of two.
func (c *Compiled) TailLen(s State) int {
	switch c.limit.Algorithm {
	case SlidingLog:
		return int(s.B >> maxRankBits)
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
		return readableLog(s, tail)
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
		c.commitSlidingLog(tail, next)
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
// tail that has to grow doubles, for a log that gets longer by one entry at a
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
		longer := make([]int64, 1<<bits.Len(uint(need-1)))
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

// Latest, as a receipt, stands for the newest units of a key, whoever took them.
// It is for people who give a client something back.
const Latest Micros = math.MaxInt64

// Refund gives back cost units that a decision with this receipt charged to a key
// in state s. It returns the state to keep, and changes the tail.
//
// Windows, sub-windows and the log are afterwards as if the charge had never
// been, whatever was charged since; what has faded by itself is not given back a
// second time. A bucket is, too, unless it would have run empty in between and then
// been charged again: it keeps what would have drained to no use. Of a shaping queue, only
// the last place can be given back, for those behind it were told their turn.
//
// A clock that steps back after a refund may find less than was there before it.
func (c *Compiled) Refund(s State, tail []int64, receipt Micros, cost int64) State {
	if s.Fresh <= 0 || receipt <= 0 || cost <= 0 || !c.Readable(s, tail) {
		return s
	}
	if s = c.refund(s, tail, receipt, cost); s.Fresh <= 0 {
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
	case SlidingLog:
		return c.refundSlidingLog(s, tail, receipt, cost)
	case SlidingBuckets:
		return c.refundSlidingBuckets(s, tail, receipt, cost)
	default:
		return c.refundBucket(s, receipt, cost)
	}
}

// Refund gives back what the op's receipt stands for.
func (r *Record) Refund(op *Op) {
	r.State = op.Limit.Refund(r.State, r.Tail, op.Receipt, op.Cost)
}
