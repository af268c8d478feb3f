package weir

import "math"

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
