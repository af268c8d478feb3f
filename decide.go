package weir

import "time"

// State is what is remembered of one key. The zero State is a key that was
// never seen. A and B belong to the algorithm; two algorithms keep a tail of
// words besides, see [Compiled.Commit].
type State struct {
	// Fresh is the instant from which the key is as good as new, so that its
	// state may be forgotten. It also tells each algorithm when the key was
	// last charged.
	Fresh Micros
	A, B  int64
}

// Decide answers the op for a key in state s, and returns the state that the
// key has if the answer is put into effect: the same state after a denial,
// unless the limit counts denials. It writes nothing; Commit does.
func (op *Op) Decide(s State, tail []int64, now Micros) (State, Decision) {
	c := op.Limit
	v := c.look(s, tail, now)
	d := op.judge(&v, now)
	next := s
	switch {
	case d.Allowed:
		next = v.charge(op.Cost)
		d.Remaining -= op.Cost
	case c.limit.CountDenied:
		next = v.charge(min(op.Cost, c.capacity))
		v.pending = next
		d.Remaining = max(0, v.free-min(op.Cost, c.capacity))
		if d.RetryAfter != Never {
			d.RetryAfter = (v.wait(op.Cost) + v.now - now).duration()
		}
	}
	d.ResetAfter = max(0, next.Fresh-now).duration()
	return next, d
}

// Peek answers the op as Decide does, but charges nothing: Remaining and
// ResetAfter are what stands.
func (op *Op) Peek(s State, tail []int64, now Micros) Decision {
	v := op.Limit.look(s, tail, now)
	d := op.judge(&v, now)
	d.ResetAfter = max(0, s.Fresh-now).duration()
	return d
}

// judge decides on the standing before any charge.
func (op *Op) judge(v *view, now Micros) Decision {
	c := op.Limit
	d := Decision{Limit: c.capacity, Remaining: v.free}
	if op.Cost > c.capacity {
		d.RetryAfter = Never
		return d
	}
	var wait Micros
	if op.Cost > v.free {
		wait = v.wait(op.Cost)
	}
	var delay Micros
	if c.limit.Shape {
		// A queue empties by one microsecond each microsecond, so a request
		// that is too impatient by so much has to come so much later.
		delay = v.delay()
		if most := Micros(op.MaxDelay.Microseconds()); op.MaxDelay > 0 {
			wait = max(wait, delay-most)
		}
	}
	if wait > 0 {
		d.RetryAfter = (wait + v.now - now).duration()
		return d
	}
	d.Allowed = true
	d.Delay = delay.duration()
	return d
}

func (m Micros) duration() time.Duration { return time.Duration(m) * time.Microsecond }
