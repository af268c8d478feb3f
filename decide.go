package weir

import "time"

// State is what a store keeps for one key. The zero State is a new key. The meaning of
// A and B depends on the algorithm. Two algorithms also keep a tail of words; see
// [Compiled.Commit].
type State struct {
	// Fresh is the instant at which the key is fully reset, so that the store can drop
	// its state. It also tells the algorithm when the key was last charged.
	Fresh Micros
	A, B  int64
}

// Decide answers the op for a key in state s and returns the key's next state. After a
// denial that is the same state, unless the limit counts denied requests. Decide writes
// nothing; Commit does.
func (op *Op) Decide(s State, tail []int64, now Micros) (State, Decision) {
	var d Decision
	next := op.decide(s, tail, now, &d)
	return next, d
}

// decide is Decide with a place for the decision, which is large enough for its
// copies to be felt.
func (op *Op) decide(s State, tail []int64, now Micros, d *Decision) State {
	if c := op.Limit; c.quick && !op.Look {
		// What fits is charged in the same way with Always, except that it keeps Fresh exact.
		if next, free, ok := c.take(s, op.Cost, op.Leave, max(0, now)); ok && (!op.Always || next.Fresh < exact) {
			d.Allowed, d.Limit, d.Remaining, d.Receipt = true, c.capacity, free, Receipt(next.Fresh)
			d.RetryAfter, d.Delay, d.Excess, d.Reserved, d.Leased = 0, 0, 0, 0, 0
			d.reset(next.Fresh, now)
			return next
		}
	}
	return op.decideAny(s, tail, now, 0, d)
}

// decideAny is decide for any op and limit, and for a key with units on lease.
func (op *Op) decideAny(s State, tail []int64, now Micros, leased int64, d *Decision) State {
	c := op.Limit
	// Not a literal, which would be built elsewhere and copied here: that takes
	// longer than the arithmetic.
	var v view
	v.c, v.old, v.tail, v.now, v.leave, v.leased = c, s, tail, max(0, now), op.Leave, leased
	v.look()
	v.judge(op, now, d)
	switch {
	case op.Look:
	case op.Always:
		s = v.chargeAlways(s, op, now, d)
	case d.Allowed:
		s = v.charge(op.Cost, false)
		d.Remaining -= op.Cost
		d.Receipt = Receipt(s.Fresh)
	case c.limit.CountDenied:
		cost := min(op.Cost, c.capacity)
		s = v.charge(cost, false)
		v.pending = s
		d.Remaining = max(0, v.free-cost)
		if d.RetryAfter != Never {
			d.RetryAfter = (v.wait(op.Cost) + v.now - now).duration()
		}
	}
	d.reset(s.Fresh, now)
	return s
}

// take charges a bucket or a window that needs no more than its state; see Compiled.quick. It
// returns the units that are then free besides those that are left; ok is false if the cost
// does not fit.
func (c *Compiled) take(s State, cost, leave int64, now Micros) (next State, free int64, ok bool) {
	if c.limit.Algorithm == FixedWindow {
		next = c.window(s, now)
		if free = c.limit.N - next.A - leave; cost > free {
			return s, 0, false
		}
		next.A += cost
		return next, free - cost, true
	}
	level, now := c.level(s, now)
	if free = (c.full-level)/c.p - leave; cost > free {
		return s, 0, false
	}
	return c.fill(level, cost, now), free - cost, true
}

// Simple reports whether the state of a key is all that the limit needs to decide: it is a
// bucket without Shape, or a fixed window without CountDenied.
func (c *Compiled) Simple() bool { return c.quick }

// Allow takes one unit of a key in state s, as Decide does for an op without options, but
// returns of the decision only whether it is allowed, which takes less time. For limits that
// are not [Compiled.Simple], ok is false, and Decide is to be called.
func (c *Compiled) Allow(s State, now Micros) (next State, allowed, ok bool) {
	switch now = max(0, now); {
	case !c.quick:
		return s, false, false
	case c.limit.Algorithm == FixedWindow:
		next = c.window(s, now)
		if next.A >= c.limit.N {
			return s, false, true
		}
		next.A++
		return next, true, true
	}
	level, now := c.level(s, now)
	if c.full-level < c.p {
		return s, false, true
	}
	return c.fill(level, 1, now), true, true
}

// chargeAlways charges as much of the cost as a key may owe.
func (v *view) chargeAlways(s State, op *Op, now Micros, d *Decision) State {
	cost := min(op.Cost, max(0, v.room(v.c.most)-v.leased))
	if cost > 0 {
		s = v.charge(cost, true)
		v.pending, d.Receipt = s, Receipt(s.Fresh)
	}
	d.Remaining, d.Delay, d.Excess = max(0, v.free-cost), 0, op.Cost-cost
	d.Leased = min(v.kept, max(0, v.free+v.kept-cost))
	switch {
	case d.Allowed:
	case v.canFit(1):
		d.RetryAfter = (v.wait(1) + v.now - now).duration()
	default:
		d.RetryAfter = Never
	}
	return s
}

// Peek answers the op as Decide does, but charges nothing. Remaining and ResetAfter
// describe the current usage.
func (op *Op) Peek(s State, tail []int64, now Micros) Decision { return op.peek(s, tail, now, 0) }

// peek is Peek for a key with units on lease.
func (op *Op) peek(s State, tail []int64, now Micros, leased int64) (d Decision) {
	v := view{c: op.Limit, old: s, tail: tail, now: max(0, now), leave: op.Leave, leased: leased}
	v.look()
	v.judge(op, now, &d)
	d.reset(s.Fresh, now)
	return d
}

// reset says when the key is fully reset.
func (d *Decision) reset(fresh, now Micros) {
	d.ResetAt = max(fresh, now)
	d.ResetAfter = (d.ResetAt - now).duration()
}

// judge decides by the usage before any charge.
func (v *view) judge(op *Op, now Micros, d *Decision) {
	d.Limit, d.Remaining = v.c.capacity, v.free
	d.RetryAfter, d.Delay, d.Receipt, d.Excess, d.Reserved, d.Leased = 0, 0, 0, 0, 0, v.kept
	if !v.canFit(op.Cost) {
		d.Allowed, d.RetryAfter = false, Never
		return
	}
	var wait Micros
	if op.Cost > v.free {
		wait = v.wait(op.Cost)
	}
	if v.c.limit.Shape {
		delay := v.delay()
		d.Delay = delay.duration()
		if most := Micros(op.MaxDelay.Microseconds()); op.MaxDelay > 0 && !op.Always {
			// A queue empties by one microsecond each microsecond, so a request
			// that is too impatient by so much has to come so much later.
			wait = max(wait, delay-most)
		}
	}
	if v.old.Fresh > v.now && v.leased == 0 {
		// From there on all is forgotten, whatever the limit was before.
		wait = min(wait, v.old.Fresh-v.now)
	}
	d.Allowed = wait <= 0
	if !d.Allowed {
		d.Delay = 0
		d.RetryAfter = (wait + v.now - now).duration()
	}
}

// canFit reports whether there can ever be so many units beside those that are left.
func (v *view) canFit(cost int64) bool { return cost <= v.c.capacity-v.leave }

func (m Micros) duration() time.Duration { return time.Duration(m) * time.Microsecond }
