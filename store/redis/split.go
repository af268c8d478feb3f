package redis

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// do has the ops decided, and appends the decisions in their order.
func (s *Store) do(ctx context.Context, dst []weir.Decision, verb verb, ops []weir.Op) ([]weir.Decision, error) {
	dst, _, err := s.doParts(ctx, dst, verb, ops, false)
	return dst, err
}

// doParts is do of a [weir.PartialStore], if it is partial.
func (s *Store) doParts(ctx context.Context, dst []weir.Decision, verb verb, ops []weir.Op, partial bool) ([]weir.Decision, []error, error) {
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, nil, err
	}
	if s.isApart(ops) {
		checks, part := s.split(verb, ops)
		return s.doChecks(ctx, dst, checks, part, partial)
	}
	c := s.checkOf(verb, ops)
	defer c.recycle()
	if err := s.run(ctx, c); err != nil {
		return dst, nil, err // an error never carries a verdict
	}
	return append(dst, c.decisions...), nil, nil
}

// isApart reports whether ops may be on several slots.
func (s *Store) isApart(ops []weir.Op) bool { return s.link.cluster && len(ops) > 1 }

// checkOf makes a check of ops that are not apart.
func (s *Store) checkOf(verb verb, ops []weir.Op) *check {
	c := s.newCheck(verb, 0)
	for i := range ops {
		c.addOp(ops[i], s.keyOf(&ops[i]))
	}
	c.slot = s.slot(c.keys[0])
	return c
}

// run sends the check, or waits for the leader that sends it. A leader waits for its
// own call even if its context is cancelled, up to the timeout, because the call may contain
// checks of others.
func (s *Store) run(ctx context.Context, c *check) error {
	begun := time.Now()
	if l := s.submit(c); l != nil && s.leads(ctx) {
		s.lead(l)
	} else if l != nil {
		go s.send(l)
	}
	select {
	case <-c.done:
		return c.answered()
	default:
	}
	timeout := startTimer(begun, s.timeout)
	defer timeout.stop()
	return s.await(ctx, c, timeout)
}

// leads reports whether a caller can make a call itself: not if it has to answer before the
// timeout of the call, and not in a cluster, where a call may have to wait until others are
// connected to its node, however long these wait.
func (s *Store) leads(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !s.link.cluster && (!ok || time.Until(deadline) >= s.timeout)
}

// split makes a check of the ops of each slot, and tells for each op of which check
// it is a part.
func (s *Store) split(verb verb, ops []weir.Op) (checks []*check, part []int) {
	part = make([]int, len(ops))
	for i := range ops {
		key := s.keyOf(&ops[i])
		slot := s.slot(key)
		part[i] = slices.IndexFunc(checks, func(c *check) bool { return c.slot == slot })
		if part[i] < 0 {
			part[i] = len(checks)
			checks = append(checks, s.newCheck(verb, slot))
		}
		checks[part[i]].addOp(ops[i], key)
	}
	for _, c := range checks {
		c.verb = verbFor(verb, c.ops)
	}
	return checks, part
}

// newCheck returns a check of this store's keys.
func (s *Store) newCheck(verb verb, slot uint16) *check {
	c := newCheck(verb, slot)
	c.prefix = len(s.prefix)
	return c
}

// doChecks has checks decided that are on different slots. Part is, for each op, of which
// check it is a part. If some slots do not answer, and the others decide without them, failed is as of
// a [weir.PartialStore].
func (s *Store) doChecks(ctx context.Context, dst []weir.Decision, checks []*check, part []int, partial bool) (decisions []weir.Decision, failed []error, err error) {
	errs := s.askAll(ctx, checks, partial)
	if !partial || !slices.Contains(errs, nil) {
		err = firstOf(errs)
	}
	if err == nil {
		next := make([]int, len(checks))
		for _, p := range part {
			var d weir.Decision
			if errs == nil || errs[p] == nil {
				d = checks[p].decisions[next[p]]
			}
			if errs != nil {
				failed = append(failed, errs[p])
			}
			dst = append(dst, d)
			next[p]++
		}
	}
	for _, c := range checks {
		c.recycle()
	}
	return dst, failed, err
}

// askAll has checks on different slots answered, all or none; if it is partial, those that can be.
// It returns the error of each check, or nil if there is none.
func (s *Store) askAll(ctx context.Context, checks []*check, partial bool) (errs []error) {
	timeout := startTimer(time.Now(), s.timeout)
	defer timeout.stop()
	for _, c := range checks {
		s.sendSoon(c)
	}
	for i, c := range checks {
		if err := s.await(ctx, c, timeout); err != nil {
			if errs == nil {
				errs = make([]error, len(checks))
			}
			errs[i] = err
		}
	}
	if len(checks) == 1 || !agrees(checks) {
		return errs
	}
	if !partial {
		s.agree(ctx, checks, timeout, errs == nil)
		return errs
	}
	var decided []*check
	for i, c := range checks {
		if errs == nil || errs[i] == nil {
			decided = append(decided, c)
		}
	}
	s.agree(ctx, decided, timeout, true)
	return errs
}

// firstOf returns the first error; nil if there is none.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// agrees reports whether checks are to be charged all or none.
func agrees(checks []*check) bool {
	return slices.ContainsFunc(checks, func(c *check) bool { return c.verb.takes() }) && !slices.ContainsFunc(checks, (*check).owes)
}

// sendSoon submits a check that its caller does not send itself.
func (s *Store) sendSoon(c *check) {
	if l := s.submit(c); l != nil {
		go s.send(l)
	}
}

// agree makes the separate decisions of several slots all or none. If one slot denied
// or did not answer, agree refunds what the others charged. Until then, clients may be
// denied too early, but none is allowed too much. If the process dies in between, the
// charges expire like any others.
func (s *Store) agree(ctx context.Context, checks []*check, timeout *timer, waits bool) {
	var allowed []*check
	for _, c := range checks {
		if c.allowed() {
			allowed = append(allowed, c)
		}
	}
	if len(allowed) == len(checks) {
		return
	}
	type undoing struct{ what, by *check }
	var all []undoing
	for _, c := range allowed {
		for _, by := range c.undo() {
			all = append(all, undoing{c, by})
			if len(by.ops) > 0 {
				s.sendSoon(by)
			} else {
				by.finish(nil)
			}
		}
	}
	if !waits {
		return // no caller needs the answer
	}
	for _, u := range all {
		u.what.settle(u.by, s.await(ctx, u.by, timeout))
		u.by.recycle()
	}
}

// givesBack reports whether an op of an allowed check was charged without a hold, and is to be
// no more if another check was denied.
func (c *check) givesBack(op *weir.Op) bool {
	return c.verb.takes() && !op.Look && (c.verb != reserve || op.Final) && !op.Limit.Limit().CountDenied
}

// undo gives back what an allowed check has charged, but not to limits that count every
// request that they are asked about.
func (c *check) undo() (by []*check) {
	if c.verb == reserve {
		by = append(by, c.cancel())
	}
	r := newCheck(refund, c.slot)
	r.asks = true
	for i, op := range c.ops {
		if c.givesBack(&op) {
			op.Receipt = c.decisions[i].Receipt
			r.addOp(op, c.keys[i])
		}
	}
	return append(by, r)
}

// settle makes the decisions of an allowed check those of one that was denied
// elsewhere: what was given back stands as it does now, if that is known.
func (c *check) settle(refund *check, err error) {
	if c.verb == reserve {
		for i := range c.decisions {
			c.decisions[i].Receipt = 0
		}
		return
	}
	at := 0
	for i, op := range c.ops {
		if c.givesBack(&op) {
			if err == nil {
				c.decisions[i] = refund.decisions[at]
			}
			at++
		}
		c.decisions[i].Receipt = 0
	}
}
